// Why something was changed, in the words of `trimtab explain`.
import { plain, type Name } from "./api";
import { h, table } from "./dom";

interface Explanation {
  object: string;
  time: string;
  outcome: string;
  sentence: string;
  seen: string[];
  rows: string[][];
}

export async function explain(name: Name, at: number): Promise<void> {
  const dialog = h("dialog", { "aria-label": "Explanation" });
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
  });
  dialog.append(h("p", { class: "soft" }, "Reading the journal…"));
  dialog.showModal();
  try {
    dialog.replaceChildren(...content(await plain<Explanation>("decision", { ...name, at })));
  } catch (error) {
    dialog.replaceChildren(closer(), h("p", { class: "error" }, (error as Error).message));
  }
}

function content(found: Explanation): HTMLElement[] {
  const columns = ["what", "before", "after", "why"].map((heading) => ({ heading, text: true }));
  return [
    closer(),
    h("h2", {}, `${found.object} at ${found.time}`),
    h("p", { class: "verdict" }, found.sentence),
    h("p", {}, h("span", { class: "soft" }, "Done: "), found.outcome),
    h("h2", {}, "Seen"),
    h("ul", { class: "plain" }, ...found.seen.map((line) => h("li", {}, line))),
    h("h2", {}, "Proposed, then changed by each rule"),
    table("In the order in which it happened", columns, found.rows),
  ];
}

function closer(): HTMLElement {
  return h("form", { method: "dialog" }, h("button", { class: "close" }, "Close"));
}
