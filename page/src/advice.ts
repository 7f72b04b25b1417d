// Advice as pictures: the usage it rests on, the hours of the day, now against advised.
import { plain, type Name } from "./api";
import { chart, Group, type Line } from "./chart";
import { h, table } from "./dom";
import { number, time, zoneName } from "./format";

export interface Advice {
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

export async function advicePage(place: HTMLElement, name: Name): Promise<() => Promise<void>> {
  const found = await plain<Advice>("advice", { ...name });
  place.append(h("h1", {}, "Advice"));
  adviceSections(place, [found]);
  return () => Promise.resolve();
}

export function adviceSections(place: HTMLElement, all: Advice[]): void {
  const columns = ["workload", "what", "now", "advised", "saves"].map((heading) => ({ heading, text: true }));
  const rows = all.map((one) => [one.title, { text: one.severity, kind: one.severity }, one.now, one.short, one.saved]);
  place.append(h("div", { class: "panel" }, table("Now against advised", columns, rows)));
  for (const one of all) card(place, one);
}

function card(place: HTMLElement, one: Advice): void {
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
