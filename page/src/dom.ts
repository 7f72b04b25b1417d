// Elements from plain values: text is always text, so that no name or message of a tenant can become markup.
export type Child = Node | string | null | false;
type Attributes = Record<string, string | number | boolean | EventListener | null>;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, String(value));
  }
  for (const child of children) if (child !== null && child !== false) element.append(child);
  return element;
}

export interface Cell {
  text: string;
  title?: string;
  kind?: string;
}

export interface TableColumn {
  heading: string;
  title?: string;
  text?: boolean; // left-aligned
}

// A small table with a caption, scoped headings, and a box of its own to scroll in on a narrow screen.
export function table(caption: string, columns: TableColumn[], rows: (string | Cell)[][]): HTMLElement {
  const head = columns.map((column) =>
    h("th", { scope: "col", class: column.text ? "" : "n", title: column.title ?? null }, column.heading),
  );
  const body = rows.map((row) =>
    h(
      "tr",
      {},
      ...row.map((given, index) => {
        const cell = typeof given === "string" ? { text: given } : given;
        const kind = `${columns[index]?.text ? "" : "n"} ${cell.kind ?? ""}`.trim();
        const attributes = { class: kind, title: cell.title ?? null };
        return index === 0
          ? h("th", { scope: "row", ...attributes }, cell.text)
          : h("td", attributes, cell.text);
      }),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...body)),
  );
}
