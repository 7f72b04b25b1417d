// A report that carries its own data: the verdict, a table and a chart for each workload, and what is said below them.
import { chart, Group, type Line } from "./chart";
import { h, table, type Cell, type TableColumn } from "./dom";
import { number, time, zoneName } from "./format";
import { adviceSections, type RecommendedWorkload } from "./advice";

interface ReportLine {
  name: string;
  role: "load" | "optimum" | "policy";
  values: string; // 32-bit floats in base 64
}

interface Section {
  title: string;
  columns: TableColumn[];
  caption: string;
  rows: (string | Cell)[][];
  start: number;
  step: number;
  lines: ReportLine[];
  notes: string[];
}

export interface Report {
  title: string;
  about: string;
  verdict: string;
  sections?: Section[];
  advice?: RecommendedWorkload[];
}

const POLICIES: [string, number[]][] = [["--replicas", []], ["--forecast", [8, 3]], ["--other", [3, 3]], ["--planned", [10, 3, 2, 3]]];

export function floats(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

export function showReport(report: Report): void {
  const main = h("main", { id: "main" });
  document.body.append(main);
  main.append(
    h("h1", {}, report.title),
    h("p", { class: "verdict", id: "verdict" }, report.verdict),
    h("p", { class: "soft" }, report.about),
  );
  for (const section of report.sections ?? []) main.append(sectionOf(section, main));
  if (report.advice) adviceSections(main, report.advice);
  main.dataset["ready"] = "report";
}

function sectionOf(section: Section, main: HTMLElement): HTMLElement {
  const place = h("article", {}, h("h2", {}, section.title), table(section.caption, section.columns, section.rows));
  main.append(place); // a chart asks how wide its place is
  let policies = 0;
  const lines: Line[] = section.lines.map((line) => {
    const values = floats(line.values);
    if (line.role === "load") return { label: line.name, values, colour: "--load", filled: true };
    if (line.role === "optimum") return { label: line.name, values, colour: "--optimum", stepped: true, dash: [2, 2] };
    const [colour, dash] = POLICIES[policies++ % POLICIES.length]!;
    return { label: line.name, values, colour, stepped: true, wide: true, ...(dash.length > 0 ? { dash } : {}) };
  });
  const count = lines[0]?.values.length ?? 0;
  const times = Float64Array.from({ length: count }, (_, index) => section.start + index * section.step);
  const group = new Group();
  chart(place, {
    title: "Replicas over time",
    unit: `in pods; load in pods at 100 %; ${time(section.start, false)} to ${time(section.start + count * section.step, false)} ${zoneName()}`,
    times,
    lines,
    format: (value) => number(value),
    height: 280,
    group,
  });
  place.append(
    h("p", { class: "soft" }, "Drag over a chart to zoom, double-click for all; with the keyboard: arrows, + and −, 0."),
    ...section.notes.map((note) => h("p", {}, note)),
  );
  return place;
}
