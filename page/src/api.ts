// Questions to the server that served this page; a refusal becomes an error with its own words.
import { unpack, type Packed } from "./packing";

export interface Name {
  kind: string;
  namespace: string;
  name: string;
}

type Query = Record<string, string | number>;

async function ask(question: string, query: Query): Promise<Response> {
  const text = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)])).toString();
  let response: Response;
  try {
    response = await fetch(`/api/${question}${text ? `?${text}` : ""}`);
  } catch {
    throw new Error("The dashboard's server does not answer: is `trimtab dashboard` still running?");
  }
  if (!response.ok) {
    const said = (await response.json().catch(() => ({}))) as { error?: string };
    throw new Error(said.error ?? `the server answered ${response.status}`);
  }
  return response;
}

export async function plain<Answer>(question: string, query: Query = {}): Promise<Answer> {
  return (await (await ask(question, query)).json()) as Answer;
}

export async function packed<About>(question: string, query: Query = {}): Promise<Packed<About>> {
  return unpack<About>(await (await ask(question, query)).arrayBuffer());
}

// Calls back whenever the source has something new; gives the way to stop it.
export function follow(news: () => void): () => void {
  const events = new EventSource("/api/events");
  let first = true;
  events.onmessage = () => {
    if (!first) news();
    first = false;
  };
  return () => {
    events.close();
  };
}
