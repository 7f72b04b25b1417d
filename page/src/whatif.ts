// What if: another setting on the workload's own history, with the optimum beside it and two settings side by side.
import { packed, plain, type Name } from "./api";
import { chart, Group, type Line } from "./chart";
import { h, table, type Cell, type TableColumn } from "./dom";
import { duration, number, percent, time, zoneName } from "./format";
import type { Packed } from "./packing";
import { write } from "./route";

export type Knobs = Record<Knob, number>;
type Knob = "target" | "tolerance" | "up_window_s" | "down_window_s" | "least" | "most" | "startup_s" | "price" | "bridge" | "ceiling" | "priced";

interface About {
  knobs: Knobs;
  mayBridge: boolean;
  capacity: number;
  unit: string;
  days: number;
  start: number;
  figures: Record<string, number>;
  optimumPodHours: number;
  notes: string[];
  yaml: string;
  command: string;
}
type Answer = Packed<About>;

// What `trimtab tune` finds on the same history: the settings in force and the best, with the figures of both.
export interface Advice {
  changed: boolean;
  days: number;
  daysWon: number;
  was: string;
  now: string;
  figures: [Record<string, number>, Record<string, number>];
  knobs: Knobs;
  notes: string[];
  yaml: string;
  command: string;
}

interface Slider {
  key: Knob;
  label: string;
  steps: number[];
  format: (value: number) => string;
}

const range = (from: number, to: number, step: number): number[] =>
  Array.from({ length: Math.round((to - from) / step) + 1 }, (_, index) => Number((from + index * step).toFixed(6)));
const PRICES: [string, number][] = [["savings", 8], ["balanced", 32], ["reliability", 128]];
const COUNTS = [...range(1, 20, 1), ...range(22, 60, 2), ...range(65, 200, 5), ...range(220, 1000, 20)];
const WAITS = [0, 15, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1200, 1800, 2700, 3600];

const SLIDERS: Slider[] = [
  { key: "target", label: "Target", steps: range(0.2, 0.95, 0.01), format: (value) => percent(100 * value, 0) },
  { key: "tolerance", label: "Tolerance", steps: range(0, 0.3, 0.01), format: (value) => percent(100 * value, 0) },
  { key: "down_window_s", label: "Scale-down window", steps: WAITS, format: duration },
  { key: "up_window_s", label: "Scale-up window", steps: WAITS, format: duration },
  { key: "least", label: "Min replicas", steps: COUNTS, format: number },
  { key: "most", label: "Max replicas", steps: COUNTS, format: number },
  { key: "startup_s", label: "Start-up time", steps: WAITS, format: duration },
  { key: "ceiling", label: "Bridge from", steps: [0.6, 0.65, 0.7, 0.75, 0.78], format: (value) => `${percent(100 * value, 0)} of the request` },
  { key: "bridge", label: "Bridge", steps: [1, 1.25, 1.5], format: (value) => (value > 1 ? `${value} × CPU` : "none") },
];
const WAIT_MS = 80; // after the last move of a slider

// Steps with the present value among them, so that "as it is" can always be chosen.
export function stepsWith(steps: number[], value: number): number[] {
  return steps.includes(value) ? steps : [...steps, value].sort((a, b) => a - b);
}

const FIGURES: { key: string; heading: string; title: string; format: (value: number) => string }[] = [
  { key: "podHours", heading: "pod hours", title: "What was paid for: replicas times hours", format: (value) => number(value, 4) },
  { key: "cost", heading: "cost", title: "Pod hours in proportion to the optimum's", format: (value) => value.toFixed(2) },
  { key: "violations", heading: "violations", title: "Load that met too little capacity, in percent of all load", format: (value) => percent(value) },
  { key: "churn", heading: "churn/day", title: "Pods started and removed on an average day", format: (value) => value.toFixed(0) },
  { key: "j", heading: "J", title: "All costs together: pods, violations at their price and starts, in proportion to the optimum (1.00)", format: (value) => value.toFixed(2) },
  { key: "regret", heading: "regret", title: "How far J is above the clairvoyant optimum", format: (value) => `${value >= 0 ? "+" : ""}${(100 * value).toFixed(0)} %` },
  { key: "resizes", heading: "resizes", title: "How often the bridge resizes a pod on an average day; its CPU is in the pod hours", format: (value) => value.toFixed(1) },
];

export async function whatifPage(place: HTMLElement, name: Name): Promise<() => Promise<void>> {
  const first = await packed<About>("whatif", { ...name });
  let [a, b, asked, shown] = [first, first, 0, 0];
  const knobs: Knobs = { ...first.about.knobs };
  const results = h("div", { "aria-live": "polite" });
  const charts = h("div", { class: "panel" });
  const copies = h("div", { class: "panel" });
  const failure = h("div");

  const draw = (): void => {
    results.replaceChildren(compared(first, a, b));
    charts.replaceChildren();
    const group = new Group();
    drawCharts(charts, a, b, group);
    copies.replaceChildren(...takeAway(b.about, name));
  };
  const ask = async (): Promise<void> => {
    const number_ = (asked += 1);
    try {
      const found = await packed<About>("whatif", { ...name, ...knobs });
      if (number_ < shown) return; // a younger answer is there already
      [shown, b] = [number_, found];
      failure.replaceChildren();
      draw();
    } catch (error) {
      failure.replaceChildren(h("p", { class: "error" }, (error as Error).message));
    }
  };
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const moved = (): void => {
    clearTimeout(waiting);
    waiting = setTimeout(() => void ask(), WAIT_MS);
  };
  const controls = h("form", { class: "panel", "aria-label": "Settings" }, h("h2", {}, "Settings"));
  const reset = (values: Knobs): void => {
    Object.assign(knobs, values);
    controls.replaceChildren(h("h2", {}, "Settings"), ...sliders(knobs, first.about, moved), ...buttons);
    moved();
  };
  const best = async (): Promise<void> => {
    try {
      const { price, startup_s } = knobs;
      reset((await plain<Advice>("advice", { ...name, price, startup_s })).knobs);
    } catch (error) {
      failure.replaceChildren(h("p", { class: "error" }, (error as Error).message));
    }
  };
  const buttons = [
    h("div", { class: "tools" },
      h("button", { type: "button", click: () => { a = b; draw(); } }, "Keep as A"),
      h("button", { type: "button", title: "The settings that `trimtab tune` finds for this start-up time and objective", click: () => { void best(); } }, "Best"),
      h("button", { type: "button", click: () => { a = first; reset(first.about.knobs); } }, "As it is"),
    ),
  ];
  controls.append(...sliders(knobs, first.about, moved), ...buttons);
  const { about } = first;
  place.append(
    h("h1", {}, "What if: ", h("a", { href: write("workload", name) }, `${name.namespace}/${name.name}`)),
    h("p", { class: "soft" }, `${about.days.toFixed(1)} days of its own load from ${time(about.start, false)} ${zoneName()}, replayed with the code that runs in the cluster. A is what is in force until you keep another; B follows the sliders.`),
    h("div", { class: "split" }, controls, h("div", {}, failure, results, charts, copies)),
  );
  draw();
  return () => Promise.resolve();
}

function sliders(knobs: Knobs, { knobs: present, mayBridge }: About, moved: () => void): HTMLElement[] {
  const made = SLIDERS.filter(({ key }) => mayBridge || !["bridge", "ceiling"].includes(key)).map((slider) => {
    const steps = stepsWith(slider.steps, present[slider.key]);
    const output = h("output", {}, slider.format(knobs[slider.key]));
    const input = h("input", {
      type: "range",
      name: slider.key,
      min: 0,
      max: steps.length - 1,
      value: nearest(steps, knobs[slider.key]),
      "aria-valuetext": slider.format(knobs[slider.key]),
    });
    input.addEventListener("input", () => {
      knobs[slider.key] = steps[Number(input.value)]!;
      output.textContent = slider.format(knobs[slider.key]);
      input.setAttribute("aria-valuetext", output.textContent);
      moved();
    });
    return h("label", { class: "knob" }, slider.label, output, input, h("span", { class: "was" }, `is ${slider.format(present[slider.key])}`));
  });
  const known = PRICES.some(([, value]) => value === present.price);
  const prices: [string, number][] = known ? PRICES : [["as written", present.price], ...PRICES];
  const select = h("select", { name: "price" }, ...prices.map(([label, value]) => h("option", { value, selected: value === knobs.price }, `${label} (${value})`)));
  select.addEventListener("change", () => {
    knobs.price = Number(select.value);
    moved();
  });
  const price = h("label", { class: "knob", title: "Pod-minutes that one violated pod-minute of load is worth" }, "Objective", select);
  return [...made, price];
}

export function nearest(steps: number[], value: number): number {
  return steps.reduce((best, step, index) => (Math.abs(step - value) < Math.abs(steps[best]! - value) ? index : best), 0);
}

function compared(first: Answer, a: Answer, b: Answer): HTMLElement {
  const columns: TableColumn[] = [{ heading: "setting", text: true }, ...FIGURES.map(({ heading, title }) => ({ heading, title }))];
  const optimum: Record<string, number> = { podHours: b.about.optimumPodHours, cost: 1, violations: 0, churn: NaN, resizes: NaN, j: 1, regret: 0 };
  const row = (label: string, figures: Record<string, number>, against?: Record<string, number>): (string | Cell)[] => [
    label,
    ...FIGURES.map(({ key, format }) => {
      const value = figures[key]!;
      const text = Number.isNaN(value) ? "–" : format(value);
      const before = against?.[key];
      const kind = before === undefined || value === before ? "" : value < before ? "better" : "worse";
      return { text: kind ? `${text} ${kind === "better" ? "↓" : "↑"}` : text, kind };
    }),
  ];
  return h(
    "section",
    { class: "panel" },
    h("p", { class: "verdict", id: "verdict" }, verdict(a.about, b.about)),
    table("Over the whole history; arrows: B against A", columns, [
      row("optimum", optimum),
      row(a === first ? "A, as it is" : "A, kept", a.about.figures),
      row("B", b.about.figures, a.about.figures),
    ]),
    ...b.about.notes.map((note) => h("p", { class: "soft" }, `note: ${note}`)),
  );
}

export function verdict(a: About, b: About): string {
  const same = (Object.keys(a.knobs) as Knob[]).every((key) => a.knobs[key] === b.knobs[key]);
  if (same) return "Move a slider: B is as it is now.";
  const change = (key: string): number => 100 * (b.figures[key]! / a.figures[key]! - 1);
  const by = (value: number): string => `${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(1)} %`;
  const [before, after] = [a.figures["violations"]!, b.figures["violations"]!];
  const word = b.figures["j"]! < a.figures["j"]! ? "better" : "worse";
  return `B is ${word}: all costs together ${by(change("j"))}, pod hours ${by(change("podHours"))}, violations ${percent(before)} to ${percent(after)} of the load.`;
}

function drawCharts(place: HTMLElement, a: Answer, b: Answer, group: Group): void {
  const lines: Line[] = [
    { label: "load", values: b.columns["load"]!, colour: "--load", filled: true },
    { label: "optimum", values: b.columns["optimum"]!, colour: "--optimum", stepped: true, dash: [2, 2] },
    { label: "A", values: a.columns["replicas"]!, colour: "--replicas", stepped: true },
  ];
  if (a !== b) lines.push({ label: "B", values: b.columns["replicas"]!, colour: "--forecast", stepped: true, wide: true, dash: [8, 3] });
  chart(place, {
    title: "Replicas",
    unit: "in pods; load in pods at 100 %",
    times: b.columns["at"]!,
    lines,
    format: (value) => number(value),
    height: 300,
    group,
  });
}

export function takeAway(about: { yaml: string; command: string }, name: Name): HTMLElement[] {
  return [
    h("h2", {}, "Take it away"),
    ...copy("Copy as YAML", about.yaml),
    ...copy("Copy as kubectl command", about.command),
    h("p", {}, h("a", { href: `/api/history.csv?${new URLSearchParams({ ...name }).toString()}`, download: `${name.name}.csv` }, "The history as CSV"), h("span", { class: "soft" }, " for `trimtab backtest --load`, which gives the same figures")),
  ];
}

function copy(label: string, text: string): HTMLElement[] {
  const button = h("button", { type: "button" }, label);
  button.addEventListener("click", () => {
    void navigator.clipboard.writeText(text).then(
      () => { button.textContent = "Copied"; },
      () => { button.textContent = "Select the text below"; },
    );
  });
  return [button, h("pre", { tabindex: 0, "aria-label": label }, text)];
}
