// The fleet: every workload in one table; only the rows in sight exist, so that ten thousand scroll like ten.
import { packed, type Name } from "./api";
import { h } from "./dom";
import { ago, bytes, cores, number, percent, time, zoneName } from "./format";
import type { Packed } from "./packing";
import { sparkline, type LastHours } from "./sparkline";
import { write } from "./route";

const ROW = 34; // pixels, as in page.css
const AROUND = 12; // rows kept ready above and below

interface About {
  now: number;
  count: number;
  text: Record<TextColumn, string[]>;
}
type TextColumn = "kind" | "namespace" | "name" | "mode" | "held" | "fate" | "said" | "problem";
export type Fleet = Packed<About> & { lastHours?: Map<number, LastHours> }; // by the id of the object
type Read = (fleet: Fleet, row: number) => number | string;

interface HoursAbout {
  hours: number; // how many values each workload has in every column
}
const HOURS_AGAIN_MS = 300_000;

interface Column {
  key: string;
  heading: string;
  title: string;
  kind: string; // classes: n is right-aligned, wide ones go on narrow screens
  value: Read;
  cell: (fleet: Fleet, row: number) => (Node | string)[];
  descending?: boolean;
}

export function text(fleet: Fleet, column: TextColumn, row: number): string {
  return fleet.about.text[column][row] ?? "";
}

export function figure(fleet: Fleet, column: string, row: number): number {
  return fleet.columns[column]?.[row] ?? NaN;
}

export function nameOf(fleet: Fleet, row: number): Name {
  return { kind: text(fleet, "kind", row), namespace: text(fleet, "namespace", row), name: text(fleet, "name", row) };
}

const headroom: Read = (fleet, row) => 100 * (1 - figure(fleet, "load", row) / figure(fleet, "capacity", row));
const surprise: Read = (fleet, row) => 100 * (figure(fleet, "expected", row) / figure(fleet, "load", row) - 1);

const COLUMNS: Column[] = [
  {
    key: "name",
    heading: "Workload",
    title: "Namespace and name of the object that decides",
    kind: "name",
    value: (fleet, row) => `${text(fleet, "namespace", row)}/${text(fleet, "name", row)}`,
    cell: (fleet, row) => [
      h(
        "a",
        { href: write("workload", nameOf(fleet, row)), title: text(fleet, "kind", row) },
        h("span", { class: "soft" }, `${text(fleet, "namespace", row)}/`),
        text(fleet, "name", row),
      ),
    ],
  },
  {
    key: "problem",
    heading: "State",
    title: "What needs a look first",
    kind: "state",
    value: (fleet, row) => figure(fleet, "severity", row) * 1e6 + figure(fleet, "violations", row),
    cell: (fleet, row) => [state(figure(fleet, "severity", row), text(fleet, "problem", row))],
    descending: true,
  },
  {
    key: "replicas",
    heading: "Replicas",
    title: "Ready of all, and what is wanted where it differs",
    kind: "n",
    value: (fleet, row) => figure(fleet, "replicas", row),
    cell: (fleet, row) => {
      const [ready, replicas, planned] = ["ready", "replicas", "planned"].map((name) => figure(fleet, name, row));
      return [`${number(ready)}/${number(replicas)}${planned === replicas ? "" : ` → ${number(planned)}`}`];
    },
    descending: true,
  },
  {
    key: "headroom",
    heading: "Headroom",
    title: "How much of what the ready pods carry within the service level is free",
    kind: "n bar",
    value: headroom,
    cell: (fleet, row) => meter(headroom(fleet, row) as number),
  },
  {
    key: "day",
    heading: "Last 24 hours",
    title: "Load by the hour; hours in which pods were overloaded are red",
    kind: "spark w1",
    value: (fleet, row) => figure(fleet, "violations", row),
    cell: (fleet, row) => {
      const hours = fleet.lastHours?.get(figure(fleet, "id", row));
      const drawing = hours ? sparkline(hours) : null;
      return [drawing ?? "–"];
    },
    descending: true,
  },
  {
    key: "size",
    heading: "Pod size",
    title: "CPU and memory that one pod requests",
    kind: "n w1 size",
    value: (fleet, row) => figure(fleet, "cpu", row),
    cell: (fleet, row) => {
      const [cpu, memory] = [figure(fleet, "cpu", row), figure(fleet, "memory", row)];
      return [Number.isFinite(cpu) || Number.isFinite(memory) ? `${cores(cpu)} · ${bytes(memory)}` : "–"];
    },
    descending: true,
  },
  {
    key: "held",
    heading: "Waiting for",
    title: "The rule that stands between the wish and the pods",
    kind: "w2 cut",
    value: (fleet, row) => text(fleet, "held", row) || "~",
    cell: (fleet, row) => [text(fleet, "held", row) || "–"],
  },
  {
    key: "changed",
    heading: "Last change",
    title: "When, from how many replicas to how many, and why",
    kind: "w1 cut",
    value: (fleet, row) => figure(fleet, "changedAt", row),
    cell: (fleet, row) => {
      const at = figure(fleet, "changedAt", row);
      if (!Number.isFinite(at)) return ["–"];
      const [from, to] = [figure(fleet, "changedFrom", row), figure(fleet, "changedTo", row)];
      return [
        `${ago(at, fleet.about.now)}, ${from} → ${to} `,
        h("span", { class: "soft", title: `${time(at)} ${zoneName()}: ${text(fleet, "said", row)}` }, text(fleet, "said", row)),
      ];
    },
    descending: true,
  },
  {
    key: "mode",
    heading: "Mode",
    title: "Auto acts; Shadow decides and records; Paused does nothing",
    kind: "w3",
    value: (fleet, row) => text(fleet, "mode", row),
    cell: (fleet, row) => [text(fleet, "mode", row) || "–"],
  },
  {
    key: "forecast",
    heading: "Forecast",
    title: "What was forecast for now, against what came",
    kind: "n w3",
    value: surprise,
    cell: (fleet, row) => {
      const off = surprise(fleet, row) as number;
      return [Number.isFinite(off) ? `${off >= 0 ? "+" : "−"}${Math.abs(off).toFixed(0)} %` : "–"];
    },
  },
  {
    key: "podHours",
    heading: "Pod hours",
    title: "Today since midnight UTC: replicas times hours",
    kind: "n w1",
    value: (fleet, row) => figure(fleet, "podHours", row),
    cell: (fleet, row) => [number(figure(fleet, "podHours", row))],
    descending: true,
  },
  {
    key: "violations",
    heading: "Overloaded",
    title: "Today since midnight UTC: load that met overloaded pods, in percent of all load",
    kind: "n",
    value: (fleet, row) => figure(fleet, "violations", row),
    cell: (fleet, row) => [percent(figure(fleet, "violations", row), 1)],
    descending: true,
  },
];

export function state(severity: number, problem: string): HTMLElement {
  const shape = ["✓", "•", "▲", "✕"][severity] ?? "•";
  return h("span", { class: `state s${severity}` }, h("span", { "aria-hidden": "true" }, shape), ` ${problem || "fine"}`);
}

function meter(free: number): (Node | string)[] {
  if (!Number.isFinite(free)) return ["–"];
  if (free < 0) return [`−${Math.abs(free).toFixed(0)} %`];
  const bar = h("meter", { min: 0, max: 100, low: 5, value: Math.max(0, free), "aria-hidden": "true" });
  return [bar, `${free.toFixed(0)} %`];
}

export interface Order {
  key: string;
  descending: boolean;
}

// The rows to show: those that match every word and the chosen filter, in order; the same name order breaks ties.
export function arranged(fleet: Fleet, search: string, only: string, order: Order): number[] {
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const rows: number[] = [];
  for (let row = 0; row < fleet.about.count; row += 1) {
    if (only === "problems" && !(figure(fleet, "severity", row) > 0)) continue;
    if (only === "shadow" && text(fleet, "mode", row) !== "Shadow") continue;
    if (only === "held" && text(fleet, "held", row) === "") continue;
    if (wanted.length > 0 && !wanted.every((word) => haystack(fleet, row).includes(word))) continue;
    rows.push(row);
  }
  const column = COLUMNS.find((known) => known.key === order.key) ?? COLUMNS[1]!;
  const keys = rows.map((row) => column.value(fleet, row));
  const names = rows.map((row) => COLUMNS[0]!.value(fleet, row) as string);
  const sign = order.descending ? -1 : 1;
  const ranks = rows.map((_, index) => index);
  ranks.sort((a, b) => sign * compared(keys[a]!, keys[b]!, sign) || compared(names[a]!, names[b]!, 1));
  return ranks.map((rank) => rows[rank]!);
}

const stacks = new WeakMap<Fleet, string[]>();

function haystack(fleet: Fleet, row: number): string {
  let known = stacks.get(fleet);
  if (!known) stacks.set(fleet, (known = []));
  return (known[row] ??= [
    `${text(fleet, "namespace", row)}/${text(fleet, "name", row)}`,
    ...(["kind", "mode", "held", "problem"] as const).map((column) => text(fleet, column, row)),
  ].join("\n").toLowerCase());
}

// What is not known comes last in either direction.
function compared(a: number | string, b: number | string, sign: number): number {
  const [noA, noB] = [Number.isNaN(a), Number.isNaN(b)];
  if (noA || noB) return noA === noB ? 0 : noA ? sign : -sign;
  return a < b ? -1 : a > b ? 1 : 0;
}

async function lastHours(): Promise<Map<number, LastHours>> {
  const { about, columns } = await packed<HoursAbout>("hours");
  const of = (name: string, row: number): Float32Array => columns[name]!.subarray(row * about.hours, (row + 1) * about.hours) as Float32Array;
  return new Map(Array.from(columns["id"]!, (id, row) => [id, { load: of("load", row), overloaded: of("overloaded", row) }]));
}

export async function fleetPage(place: HTMLElement): Promise<() => Promise<void>> {
  let fleet: Fleet = await packed<About>("fleet");
  let hours = new Map<number, LastHours>();
  let readAt = -Infinity;
  const readHours = async (): Promise<void> => {
    if (Date.now() - readAt < HOURS_AGAIN_MS) return;
    readAt = Date.now();
    hours = await lastHours();
    fleet.lastHours = hours;
    draw();
  };
  let order: Order = { key: "problem", descending: true };
  let rows: number[] = [];
  const search = h("input", { type: "search", placeholder: "Search workloads", "aria-label": "Search workloads", id: "search" });
  const only = h(
    "select",
    { "aria-label": "Show" },
    ...[["all", "All workloads"], ["problems", "With problems"], ["held", "Waiting"], ["shadow", "In Shadow"]].map(
      ([value, label]) => h("option", { value: value! }, label!),
    ),
  );
  const count = h("p", { class: "soft", role: "status", id: "count" });
  const cards = h("div", { class: "cards" });
  const body = h("tbody");
  const heads = COLUMNS.map((column) => heading(column, () => { sortBy(column); }));
  const grid = h(
    "table",
    { class: "fleet", "aria-rowcount": fleet.about.count + 1 },
    h("caption", { class: "away" }, "Workloads, problems first unless sorted otherwise"),
    h("thead", {}, h("tr", {}, ...heads)),
    body,
  );
  const scroll = h("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Workloads" }, grid);

  const draw = (): void => {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - AROUND);
    const last = Math.min(rows.length, first + Math.ceil(scroll.clientHeight / ROW) + 2 * AROUND);
    const held = body.contains(document.activeElement) ? document.activeElement!.getAttribute("href") : null;
    body.replaceChildren(
      spacer(first * ROW),
      ...rows.slice(first, last).map((row, index) => line(fleet, row, first + index + 2)),
      spacer((rows.length - last) * ROW),
    );
    // Who walks with keys stays on the workload, whatever is drawn anew.
    if (held !== null) Array.from(body.querySelectorAll("a")).find((link) => link.getAttribute("href") === held)?.focus({ preventScroll: true });
  };
  const arrange = (): void => {
    rows = arranged(fleet, search.value, only.value, order);
    count.textContent = `${rows.length.toLocaleString("en")} of ${fleet.about.count.toLocaleString("en")} workloads`;
    grid.setAttribute("aria-rowcount", String(rows.length + 1));
    COLUMNS.forEach((column, index) => {
      const sorted = column.key === order.key ? (order.descending ? "descending" : "ascending") : "none";
      heads[index]!.setAttribute("aria-sort", sorted);
    });
    draw();
  };
  const sortBy = (column: Column): void => {
    const again = column.key === order.key;
    order = { key: column.key, descending: again ? !order.descending : (column.descending ?? false) };
    scroll.scrollTop = 0;
    arrange();
  };
  const summarise = (): void => {
    cards.replaceChildren(...summaryCards(fleet));
  };
  search.addEventListener("input", () => {
    scroll.scrollTop = 0;
    arrange();
  });
  only.addEventListener("change", arrange);
  scroll.addEventListener("scroll", draw, { passive: true });
  new ResizeObserver(draw).observe(scroll);
  place.append(h("h1", { class: "away" }, "Fleet"), cards, h("div", { class: "tools" }, search, only, count), scroll);
  summarise();
  arrange();
  void readHours();
  return async () => {
    fleet = { ...(await packed<About>("fleet")), lastHours: hours };
    summarise();
    arrange();
    await readHours();
  };
}

function heading(column: Column, sort: () => void): HTMLElement {
  const button = h("button", { title: column.title, click: sort }, column.heading);
  return h("th", { scope: "col", class: column.kind }, button);
}

function line(fleet: Fleet, row: number, position: number): HTMLElement {
  const cells = COLUMNS.map((column, index) =>
    h(index === 0 ? "th" : "td", { class: column.kind, scope: index === 0 ? "row" : null }, ...column.cell(fleet, row)),
  );
  return h("tr", { "aria-rowindex": position }, ...cells);
}

function spacer(height: number): HTMLElement {
  const cell = h("td", { colspan: COLUMNS.length });
  cell.style.height = `${height}px`;
  return h("tr", { class: "spacer", "aria-hidden": "true" }, cell);
}

function summaryCards(fleet: Fleet): HTMLElement[] {
  let [pods, hours, urgent, held] = [0, 0, 0, 0];
  for (let row = 0; row < fleet.about.count; row += 1) {
    pods += figure(fleet, "replicas", row) || 0;
    hours += figure(fleet, "podHours", row) || 0;
    urgent += figure(fleet, "severity", row) >= 2 ? 1 : 0;
    held += text(fleet, "held", row) ? 1 : 0;
  }
  return [
    card("Workloads", fleet.about.count.toLocaleString("en")),
    card("Need a look", String(urgent), urgent > 0 ? "bad" : ""),
    card("Waiting", String(held)),
    card("Pods now", pods.toLocaleString("en")),
    card("Pod hours today", number(hours)),
  ];
}

export function card(label: string, value: string, kind = "", title = ""): HTMLElement {
  return h("div", { class: `card ${kind}`, title: title || null }, h("span", { class: "soft" }, label), h("b", {}, value));
}
