// Addresses behind the #: the page, the object, and how it is looked at; links that can be shared and gone back from.
import type { Name } from "./api";

export type View = "fleet" | "workload" | "whatif" | "advice" | "health";
const VIEWS: readonly View[] = ["fleet", "workload", "whatif", "advice", "health"];

export interface Route {
  view: View;
  name: Name | null;
}

export function read(hash: string): Route {
  const [view = "", kind = "", namespace = "", name = ""] = hash.replace(/^#\/?/, "").split("/").map(decoded);
  const found = VIEWS.find((known) => known === view) ?? "fleet";
  return { view: found, name: kind && namespace && name ? { kind, namespace, name } : null };
}

export function write(view: View, name: Name | null = null): string {
  const parts = name ? [view, name.kind, name.namespace, name.name] : [view];
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
