// Advice: the best settings of an object on the dashboard, and recommended workloads as pictures in reports.
import { plain, type Name } from "./api";
import { chart, Group, type Line } from "./chart";
import { h, table } from "./dom";
import { number, percent, time, zoneName } from "./format";
import { write } from "./route";
import { takeAway, type Advice } from "./whatif";

export interface RecommendedWorkload {
  title: string;
  severity: string;
  short: string;
  now: string;
  saved: string;
  start: number;
  step: number;
  usage: (number | null)[];
  forecast: (number | null)[];
  thresholds: [string, number][];
  medians: number[];
  because: string[];
  against: string[];
}

const FIGURES: [string, string, (value: number) => string][] = [
  ["j", "J", (value) => value.toFixed(2)],
  ["cost", "cost", (value) => value.toFixed(2)],
  ["violations", "violations", (value) => percent(value)],
  ["churn_per_day", "churn/day", (value) => value.toFixed(0)],
];

// The best settings of one object, as `trimtab tune` finds them on the load that the journal holds.
export async function advicePage(place: HTMLElement, name: Name): Promise<() => Promise<void>> {
  const found = await plain<Advice>("advice", { ...name });
  const { changed, days, daysWon, was, now, figures, notes } = found;
  const row = (label: string, settings: string, judged: Record<string, number>): string[] => [label, settings, ...FIGURES.map(([key, , format]) => format(judged[key]!))];
  const columns = [...["", "settings"].map((heading) => ({ heading, text: true })), ...FIGURES.map(([, heading]) => ({ heading }))];
  const rows = changed ? [row("in force", was, figures[0]), row("best", now, figures[1])] : [row("in force", was, figures[0])];
  const verdict = changed ? `Better: ${now}. ${daysWon} of ${days} days would have been better.` : "Stay: no other settings are 2 % better.";
  place.append(
    h("h1", {}, "Advice: ", h("a", { href: write("workload", name) }, `${name.namespace}/${name.name}`)),
    h("p", { class: "soft" }, `What \`trimtab tune\` finds on ${days} days of its own load. Other objectives and start-up times: `, h("a", { href: write("whatif", name) }, "What if →")),
    h("div", { class: "panel" }, h("p", { class: "verdict", id: "verdict" }, verdict), table("Over the whole history", columns, rows), ...notes.map((note) => h("p", { class: "soft" }, `note: ${note}`))),
  );
  if (changed) place.append(h("div", { class: "panel" }, ...takeAway(found, name)));
  return () => Promise.resolve();
}

export function adviceSections(place: HTMLElement, all: RecommendedWorkload[]): void {
  const columns = ["workload", "what", "now", "advised", "saves"].map((heading) => ({ heading, text: true }));
  const rows = all.map((one) => [one.title, { text: one.severity, kind: one.severity }, one.now, one.short, one.saved]);
  place.append(h("div", { class: "panel" }, table("Now against advised", columns, rows)));
  for (const one of all) card(place, one);
}

function card(place: HTMLElement, one: RecommendedWorkload): void {
  const article = h("article", {}, h("h2", {}, one.title), h("p", { class: one.severity }, `${one.severity}: ${one.short}`));
  place.append(article);
  const count = one.usage.length + one.forecast.length;
  if (count > 0) {
    const nothing = (length: number): null[] => new Array<null>(length).fill(null);
    const lines: Line[] = [{ label: "usage", values: [...one.usage, ...nothing(one.forecast.length)], colour: "--load", filled: true }];
    if (one.forecast.length > 0) {
      lines.push({ label: "forecast", values: [...nothing(one.usage.length), ...one.forecast], colour: "--forecast", dash: [4, 3] });
    }
    one.thresholds.forEach(([label, value], index) => {
      const dash = [[2, 3], [6, 3], [10, 3], [4, 2, 1, 2]][index % 4]!;
      lines.push({ label, values: new Array<number>(count).fill(value), colour: ["--capacity", "--ready", "--other", "--planned"][index % 4]!, dash });
    });
    chart(article, {
      title: "Usage and what it was compared with",
      unit: `in cores; by the hour, ${one.start > 0 ? `from ${time(one.start, false)} ${zoneName()}` : "hours of the history counted from day 1"}`,
      times: Float64Array.from({ length: count }, (_, index) => one.start + index * one.step),
      lines,
      format: (value) => number(value),
      height: 200,
      group: new Group(),
    });
  }
  if (one.medians.length > 0) article.append(hours(one.medians));
  const reasons = [...one.because, ...one.against];
  if (reasons.length > 0) article.append(h("ul", { class: "plain" }, ...reasons.map((reason) => h("li", {}, reason))));
}

// The median of each hour of the day: the lowest one sets minReplicas.
function hours(medians: number[]): HTMLElement {
  const most = Math.max(...medians, 1e-9);
  const lowest = Math.min(...medians);
  const bars = medians.map((value, hour) => {
    const bar = h("div", { title: `${hour} h: ${number(value)} cores`, class: value === lowest ? "hour lowest" : "hour" });
    bar.style.height = `${Math.max(1, (100 * value) / most)}%`;
    return bar;
  });
  const said = `Medians of the hours of the day, in cores: from ${number(lowest)} to ${number(most)}; the lowest is hatched`;
  return h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, "Hours of the day"), ` ${said}`), h("div", { class: "bars", role: "img", "aria-label": said }, ...bars));
}
