// One workload on one time axis: load, forecast and capacity, replicas, requests; every change is a mark.
import { packed, type Name } from "./api";
import { chart, Group, type Line, type Mark } from "./chart";
import { h, table } from "./dom";
import { explain } from "./explanation";
import { bytes, cores, duration, inUnit, number, percent, time } from "./format";
import { write } from "./route";
import type { Numbers, Packed } from "./packing";

interface Change {
  at: number;
  from: number;
  to: number;
  fate: string;
  said: string;
}

interface About {
  name: Name;
  unit: string;
  mode: string;
  metric: string;
  least: number;
  most: number;
  forecast: string;
  changes: Change[];
  held: string;
  startup: [number, number][];
  past?: string; // why the time before the journal is missing
}

const DAY_S = 86400;
const SPANS: [string, number][] = [
  ["1 h", 3600],
  ["6 h", 6 * 3600],
  ["1 d", DAY_S],
  ["7 d", 7 * DAY_S],
  ["All", Infinity],
];
const LISTED = 200;

export async function workloadPage(place: HTMLElement, name: Name): Promise<() => Promise<void>> {
  const group = new Group();
  let found = await packed<About>("workload", { ...name });
  const facts = h("div");
  const charts = h("div", { class: "panel" });
  const below = h("div");
  const shadow = h("div");
  place.append(
    h("h1", {}, h("span", { class: "soft" }, `${name.namespace}/`), name.name),
    facts,
    h("div", { class: "tools" }, ...spans(group), h("a", { href: write("whatif", name) }, "What if →"), hint()),
    charts,
    shadow,
    below,
  );
  const draw = (): void => {
    facts.replaceChildren(factsOf(found), ...(found.about.past ? [h("p", { class: "soft" }, `The time before the journal is missing: ${found.about.past}`)] : []));
    charts.replaceChildren();
    group.charts.length = 0;
    drawCharts(charts, found, group, name);
    shadow.replaceChildren(...shadowTable(found));
    below.replaceChildren(changesOf(found, name));
  };
  const times = found.columns["at"]!;
  const end = times[times.length - 1] ?? 0;
  if (end - (times[0] ?? 0) > 1.5 * DAY_S) group.range = [end - DAY_S, end]; // what is new comes first
  draw();
  return async () => {
    const next = await packed<About>("workload", { ...name });
    const focus = document.activeElement;
    if (document.querySelector("dialog[open]") || (focus && below.contains(focus))) return;
    found = next;
    draw();
  };
}

function hint(): HTMLElement {
  return h("p", { class: "soft" }, "Drag to zoom, double-click for all. Load above the capacity is shaded red.");
}

function spans(group: Group): HTMLElement[] {
  return SPANS.map(([label, seconds]) =>
    h(
      "button",
      {
        click: () => {
          if (!Number.isFinite(seconds)) {
            group.all();
            return;
          }
          const times = group.charts[0]?.data[0];
          const end = times?.[times.length - 1] ?? 0;
          group.show(end - seconds, end);
        },
      },
      label,
    ),
  );
}

function factsOf({ about, columns }: Packed<About>): HTMLElement {
  const last = (name: string): number => columns[name]?.[columns[name].length - 1] ?? NaN;
  const [low, high] = [about.startup[0], about.startup[about.startup.length - 1]];
  const pairs: [string, string][] = [
    ["Kind", about.name.kind],
    ["Mode", about.mode],
    ["Replicas", `${number(last("ready"))} ready of ${number(last("replicas"))}, from ${about.least} to ${about.most}`],
    ["Scaled by", about.metric || "no metric"],
    ["Load", `${inUnit(last("load"), about.unit)} of ${inUnit(last("capacity"), about.unit)}`],
    ["Waiting for", about.held || "nothing"],
  ];
  if (about.forecast) pairs.push(["Forecast", `${about.forecast}, ${accuracy(columns)}`]);
  if (low && high) pairs.push(["Start-up", `${duration(low[1])} to ${duration(high[1])}`]);
  return h("dl", { class: "facts" }, ...pairs.map(([term, said]) => h("div", {}, h("dt", {}, term), h("dd", {}, said))));
}

// The forecasts at the time they were made for: minute t holds what was said a horizon earlier.
export function arrived(values: Numbers, horizons: Numbers): (number | null)[] {
  const made: (number | null)[] = new Array<number | null>(values.length).fill(null);
  for (let minute = 0; minute < values.length; minute += 1) {
    const place = minute + Math.round((horizons[minute] ?? NaN) / 60);
    if (place < made.length) made[place] = values[minute] ?? null;
  }
  return made;
}

export function accuracy(columns: Record<string, Numbers>): string {
  const said = arrived(columns["forecast"]!, columns["horizon_s"]!);
  let [off, sum] = [0, 0];
  said.forEach((value, minute) => {
    const came = columns["load"]![minute]!;
    if (value === null || Number.isNaN(value) || Number.isNaN(came)) return;
    off += Math.abs(value - came);
    sum += came;
  });
  return sum > 0 ? `off by ${percent((100 * off) / sum, 1)} on average` : "nothing has come yet";
}

// What ready pods carry at their written size: without what a bridge gives them for a while.
export function written(columns: Record<string, Numbers>): (number | null)[] {
  const bridge = columns["bridge"];
  return Array.from(columns["capacity"]!, (value, minute) => {
    const factor = bridge?.[minute] ?? NaN;
    return Number.isNaN(value) ? null : Number.isNaN(factor) ? value : value / factor;
  });
}

function known(values: Numbers | undefined): boolean {
  return values?.some((value) => !Number.isNaN(value)) ?? false;
}

function drawCharts(place: HTMLElement, { about, columns }: Packed<About>, group: Group, name: Name): void {
  const times = columns["at"]!;
  const column = (key: string): Numbers => columns[key]!;
  const unit = about.unit ? `in ${about.unit}` : "";
  const lines: Line[] = [{ label: "load", values: column("load"), colour: "--load", filled: true }];
  const bands: [number, number][] = [];
  if (known(column("forecast"))) {
    const ahead = (key: string): (number | null)[] => arrived(column(key), column("horizon_s"));
    lines.push({ label: "forecast, high", values: ahead("forecast_high"), colour: "--forecast", faint: true });
    lines.push({ label: "forecast", values: ahead("forecast"), colour: "--forecast", dash: [4, 3] });
    lines.push({ label: "forecast, low", values: ahead("forecast_low"), colour: "--forecast", faint: true });
    bands.push([1, 3]);
  }
  const bridged = known(columns["bridge"]);
  const capacity = bridged ? written(columns) : column("capacity");
  lines.push({ label: "capacity", values: capacity, colour: "--capacity", stepped: true, wide: true });
  if (bridged) {
    lines.push({ label: "capacity with the bridge", values: column("capacity"), colour: "--bridge", stepped: true, dash: [5, 2] });
    bands.push([lines.length - 1, lines.length - 2]);
  }
  chart(place, {
    title: "Load and capacity",
    unit: `${unit}; capacity is what ready pods carry within the service level`,
    times,
    lines,
    bands,
    overload: { load: column("load"), capacity: column("capacity") },
    format: (value) => inUnit(value, about.unit),
    height: 230,
    group,
  });
  const marks: Mark[] = about.changes.map((change) => ({
    at: change.at,
    up: change.to >= change.from,
    shadow: change.fate !== "written",
  }));
  chart(place, {
    title: "Replicas",
    unit: "in pods; a triangle is a change, click it for its explanation",
    times,
    lines: [
      { label: "replicas", values: column("replicas"), colour: "--replicas", stepped: true, wide: true },
      { label: "ready", values: column("ready"), colour: "--ready", stepped: true, dash: [2, 2] },
      ...(about.mode === "Shadow"
        ? [{ label: "trimtab, in shadow", values: column("planned"), colour: "--planned", stepped: true, dash: [6, 3] }]
        : []),
    ],
    marks,
    onMark: (mark) => void explain(name, mark.at),
    format: (value) => number(value),
    height: 200,
    group,
  });
  requestCharts(place, columns, times, group);
}

function requestCharts(place: HTMLElement, columns: Record<string, Numbers>, times: Numbers, group: Group): void {
  const shown: [string, string, string, (value: number | null) => string][] = [
    ["cpu_cores", "CPU request", "cores of one pod", cores],
    ["memory_bytes", "Memory request", "of one pod", bytes],
  ];
  for (const [key, title, unit, format] of shown) {
    const values = columns[key];
    if (!values || !known(values)) continue;
    const colour = key === "cpu_cores" ? "--cpu" : "--memory";
    const lines: Line[] = [{ label: title.toLowerCase(), values, colour, stepped: true, wide: true }];
    chart(place, { title, unit, times, lines, format, height: 110, group });
  }
}

export interface Tally {
  podHours: number;
  violations: number; // percent of the load
}

// Cost and violations of so many pods against the load, by what one ready pod carries.
export function tally(columns: Record<string, Numbers>, pods: "replicas" | "planned"): Tally {
  const [load, capacity, ready] = [columns["load"]!, columns["capacity"]!, columns["ready"]!];
  let [hours, sum, violating] = [0, 0, 0];
  for (let minute = 0; minute < load.length; minute += 1) {
    const count = columns[pods]![minute]!;
    if (Number.isNaN(count)) continue;
    hours += count / 60;
    const each = capacity[minute]! / ready[minute]!;
    if (Number.isNaN(load[minute]!) || !Number.isFinite(each)) continue;
    sum += load[minute]!;
    const carried = pods === "planned" ? count * each : capacity[minute]!;
    if (load[minute]! > carried) violating += load[minute]!;
  }
  return { podHours: hours, violations: sum > 0 ? (100 * violating) / sum : 0 };
}

function shadowTable({ about, columns }: Packed<About>): HTMLElement[] {
  if (about.mode !== "Shadow") return [];
  const rows = (["replicas", "planned"] as const).map((pods) => {
    const { podHours, violations } = tally(columns, pods);
    return [pods === "replicas" ? "in force" : "trimtab, in shadow", number(podHours), percent(violations)];
  });
  const columnsOf = [{ heading: "who", text: true }, { heading: "pod hours" }, { heading: "violations" }];
  const caption = "The autoscaler in force and trimtab beside it, over the whole time shown; pods of the shadow count as ready at once";
  return [h("section", { class: "panel" }, h("h2", {}, "Shadow"), table(caption, columnsOf, rows))];
}

function changesOf({ about }: Packed<About>, name: Name): HTMLElement {
  const youngest = about.changes.slice(-LISTED).reverse();
  const items = youngest.map((change) =>
    h(
      "li",
      {},
      h(
        "button",
        { click: () => void explain(name, change.at) },
        h("span", {}, time(change.at)),
        h("span", {}, change.from === change.to ? "resize" : `${change.from} → ${change.to}`),
        h("span", {}, `${change.said}${change.fate === "written" ? "" : ` (${change.fate})`}`),
      ),
    ),
  );
  const more = about.changes.length > youngest.length ? `, the youngest ${youngest.length}` : "";
  const title = `${about.changes.length} changes${more}`;
  const list = items.length > 0 ? h("ul", {}, ...items) : h("p", { class: "soft" }, "Nothing was changed in this time.");
  return h("section", { class: "panel changes" }, h("h2", {}, title), list);
}
