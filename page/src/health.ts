// How the operator is doing: its ticks, what it could not measure or write, and what it holds back.
import { plain } from "./api";
import { chart, Group } from "./chart";
import { h, table } from "./dom";
import { card } from "./fleet";
import { ago, bytes, duration, number, time } from "./format";

interface Health {
  now: number;
  first: number;
  sizeBytes: number;
  objects: number;
  ticks: [number, number][];
  fates: [string, number][];
  modes: [string, number][];
  silent: string[][];
  held: [string, number][];
  refused: [number, string, string, string, string, string][];
  operator: Operator | null;
}

type Held = [string, string, string, string, number | null]; // kind, namespace, name, why, until when

interface Operator {
  at: number;
  frozen: boolean;
  budget: { perSecond: number; spent: number; waitedSeconds: number };
  breaker: { trips: number; held: [string, number][] };
  counts: Record<string, number>;
  conflicts: Held[];
  reverts: Held[];
  muted: Held[];
  sources: [string, string, number, number | null][];
}

export async function healthPage(place: HTMLElement): Promise<() => Promise<void>> {
  const draw = async (): Promise<void> => {
    const found = await plain<Health>("health");
    place.replaceChildren(h("h1", {}, "Health of the operator"), ...content(found));
    const ticks = found.ticks;
    if (ticks.length < 2) return;
    const panel = h("div", { class: "panel" });
    place.append(panel);
    chart(panel, {
      title: "Objects looked at in each tick",
      unit: "the last hour at most",
      times: Float64Array.from(ticks, ([at]) => at),
      lines: [{ label: "objects", values: ticks.map(([, count]) => count), colour: "--replicas", stepped: true }],
      format: (value) => number(value),
      height: 130,
      group: new Group(),
    });
  };
  await draw();
  return draw;
}

// The usual distance between two ticks.
export function period(ticks: [number, number][]): number {
  const gaps = ticks.slice(1).map(([at], index) => at - ticks[index]![0]);
  gaps.sort((a, b) => a - b);
  return gaps[Math.floor(gaps.length / 2)] ?? NaN;
}

function content(found: Health): HTMLElement[] {
  const last = found.ticks[found.ticks.length - 1];
  return [
    h(
      "div",
      { class: "cards" },
      card("Last tick", last ? ago(last[0], found.now) : "none"),
      card("Every", duration(period(found.ticks))),
      card("Workloads", number(found.objects)),
      card("Silent metrics", String(found.silent.length), found.silent.length > 0 ? "bad" : ""),
      card("Refused writes", String(found.refused.length), found.refused.length > 0 ? "bad" : "", "in the last hour"),
      card("Journal", bytes(found.sizeBytes)),
      card("It reaches back", duration(found.now - found.first)),
      ...(found.operator ? operatorCards(found.operator) : []),
    ),
    ...(found.operator ? operatorSections(found.operator) : [noOperator()]),
    section("Workloads without a value", "Workloads whose first metric has no value now", ["kind", "namespace", "name", "what happens meanwhile"], found.silent, "Every metric answers."),
    section("Held back now", "Rules that stand between a wish and the pods", ["rule", "workloads"], counted(found.held), "Nothing is held back."),
    section("Writes that did not happen", "In the last hour, the newest first", ["at", "kind", "namespace", "name", "outcome", "wish"], found.refused.map(([at, ...others]) => [time(at), ...others]), "Every write was accepted."),
    section("Decisions", "Acting decisions of the last hour, by what became of them", ["outcome", "count"], counted(found.fates), "Nothing was decided anew in the last hour."),
    section("Modes", "Workloads by mode", ["mode", "workloads"], counted(found.modes), "The journal holds no policies."),
  ];
}

function noOperator(): HTMLElement {
  return h("p", { class: "soft" }, "No operator wrote this journal: it tells nothing of budget, breaker, conflicts and silent sources.");
}

function operatorCards({ frozen, budget, breaker, counts }: Operator): HTMLElement[] {
  const open = breaker.held.length > 0;
  return [
    card("Breaker", open ? "open" : "closed", open ? "bad" : "", `tripped ${breaker.trips} times`),
    card("Brake", frozen ? "frozen" : "off", frozen ? "bad" : "", frozen ? "nothing is written" : ""),
    card("API budget", `${number(budget.perSecond)}/s`, "", `${number(budget.spent)} requests, waited ${duration(budget.waitedSeconds)}`),
    card("Conflicts", String(counts["conflicts"] ?? 0), counts["conflicts"] ? "bad" : ""),
    card("Put back by others", String(counts["reverts"] ?? 0), counts["reverts"] ? "bad" : ""),
  ];
}

function operatorSections({ breaker, conflicts, reverts, muted, sources, counts }: Operator): HTMLElement[] {
  const who = ["kind", "namespace", "name", "why", "until"];
  const rows = (held: Held[]): string[][] => held.map(([kind, namespace, name, why, until]) => [kind, namespace, name, why, until === null ? "" : time(until)]);
  const of = (name: string, listed: unknown[]): string => ((counts[name] ?? 0) > listed.length ? `; the first ${listed.length} of ${counts[name]}` : "");
  return [
    section("Sources that are silent", `Metrics without a value now, and of how many workloads${of("sources", sources)}`, ["metric", "why", "workloads", "since"], sources.map(([metric, why, count, since]) => [metric, why, String(count), since === null ? "" : time(since)]), "Every source answers."),
    section("Breaker", "Whose decreases are held, because too many fell at once", ["namespace", "until"], breaker.held.map(([place, until]) => [place || "all", time(until)]), "It is closed."),
    section("Conflicts", `Targets that somebody else moves, too${of("conflicts", conflicts)}`, who, rows(conflicts), "Nobody else moves what trimtab moves."),
    section("Put back by others", `Who puts back what trimtab writes${of("reverts", reverts)}`, who, rows(reverts), "What is written stays."),
    section("Muted", `Pauses, pins and forecasts with nothing to say${of("muted", muted)}`, who, rows(muted), "Nothing is paused or pinned, and every forecast speaks."),
  ];
}

function counted(pairs: [string, number][]): string[][] {
  return pairs.map(([label, count]) => [label, String(count)]);
}

function section(title: string, caption: string, headings: string[], rows: string[][], empty: string): HTMLElement {
  const columns = headings.map((heading) => ({ heading, text: !["workloads", "count"].includes(heading) }));
  const body = rows.length > 0 ? table(caption, columns, rows) : h("p", { class: "soft" }, empty);
  return h("section", { class: "panel" }, h("h2", {}, title), body);
}
