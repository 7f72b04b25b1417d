import { describe, expect, it } from "vitest";
import { closest, gapped, summary } from "../src/chart";
import { h } from "../src/dom";
import { bytes, cores, duration, inUnit, number, setTimeZone, tick, time } from "../src/format";
import { period } from "../src/health";
import { floats } from "../src/report";
import { read, write } from "../src/route";
import { sparkline } from "../src/sparkline";
import { nearest, stepsWith } from "../src/whatif";
import { arrived, tally, written } from "../src/workload";

setTimeZone("UTC"); // whatever the zone of this machine

describe("figures", () => {
  it.each([
    [number(0), "0"],
    [number(NaN), "–"],
    [number(1234), "1,234"],
    [number(0.1234), "0.123"],
    [number(15.55), "15.6"],
    [number(12_345_678), "12.3 M"],
    [cores(0), "0 cores"],
    [cores(0.25), "0.25 cores"],
    [cores(1), "1 core"],
    [cores(2), "2 cores"],
    [inUnit(3784, "requests"), "3,784 requests"],
    [bytes(1536 * 1024 ** 2), "1.5 GiB"],
    [duration(45), "45 s"],
    [duration(300), "5 min"],
    [duration(7200), "2 h"],
    [time(1_760_000_400), "2025-10-09 09:00:00"],
    [time(90_000), "day 2 01:00:00"],
    [tick(1_759_968_000, 86400), "09 Oct"],
    [tick(1_760_000_400, 3600), "09:00"],
  ])("%s", (found, wanted) => {
    expect(found).toBe(wanted);
  });
});

describe("a hostile name", () => {
  const name = { kind: "Autoscaler", namespace: "a/b", name: "<img src=x onerror=alert(1)>%" };
  it("is text in an element", () => {
    const element = h("b", {}, name.name);
    expect(element.children).toHaveLength(0);
    expect(element.textContent).toBe(name.name);
  });
  it("survives the address", () => {
    expect(read(write("workload", name))).toEqual({ view: "workload", name });
  });
  it("is never followed where it is broken", () => {
    expect(read("#/nowhere/%E0%A4%A")).toEqual({ view: "fleet", name: null });
  });
});

describe("lines", () => {
  it("have holes where nothing is known", () => {
    expect(gapped(Float32Array.of(1, NaN, 3))).toEqual([1, null, 3]);
  });
  it("are told in figures without them", () => {
    expect(summary({ label: "load", values: Float32Array.of(1, NaN, 3), colour: "" })).toEqual({ label: "load", least: 1, mean: 2, most: 3, last: 3 });
  });
  it("show a forecast at the time it was made for", () => {
    expect(arrived(Float32Array.of(5, 6, 7), Float32Array.of(60, 60, 60))).toEqual([null, 5, 6]);
  });
  it("find the nearest mark", () => {
    const marks = [10, 20, 40].map((at) => ({ at, up: true, shadow: false }));
    expect(closest(marks, 27)?.at).toBe(20);
    expect(closest([], 1)).toBeNull();
  });
  it("come out of a report as they went in", () => {
    const text = btoa(String.fromCharCode(...new Uint8Array(Float32Array.of(1.5, 2).buffer)));
    expect(Array.from(floats(text))).toEqual([1.5, 2]);
  });
});

describe("a workload", () => {
  it("costs its pods and violates where the load is above the capacity", () => {
    const columns = {
      load: Float32Array.of(10, 30, NaN),
      capacity: Float32Array.of(20, 20, 20),
      ready: Float32Array.of(2, 2, 2),
      replicas: Float32Array.of(2, 2, 2),
      planned: Float32Array.of(1, 3, 2),
    };
    expect(tally(columns, "replicas")).toEqual({ podHours: 0.1, violations: 75 });
    expect(tally(columns, "planned").violations).toBe(0);
  });
});

describe("a sparkline", () => {
  it("has a bar for each known hour and says which hurt", () => {
    const drawing = sparkline({ load: Float32Array.of(1, NaN, 3), overloaded: Float32Array.of(0, 0, 0.2) });
    expect(drawing?.querySelectorAll("rect")).toHaveLength(2);
    expect(drawing?.getAttribute("aria-label")).toBe("load of the last 2 hours, 1 of them overloaded");
  });
  it("is nothing before there are two hours", () => {
    expect(sparkline({ load: Float32Array.of(NaN, 3), overloaded: Float32Array.of(0, 0) })).toBeNull();
  });
});

describe("sliders", () => {
  it("hold the present value among their steps", () => {
    expect(stepsWith([1, 2, 4], 3)).toEqual([1, 2, 3, 4]);
    expect(stepsWith([1, 2, 4], 2)).toEqual([1, 2, 4]);
    expect(nearest([1, 2, 4], 3.4)).toBe(2);
  });
});

describe("the operator", () => {
  it("ticks at the usual distance of its ticks", () => {
    expect(period([[0, 1], [15, 1], [30, 1], [90, 1]])).toBe(15);
  });
});

describe("capacity", () => {
  it("stands without its bridge, where there is one", () => {
    const columns = { capacity: Float32Array.of(120, 80, NaN, 60), bridge: Float32Array.of(1.5, 1, 1.25, NaN) };
    expect(written(columns)).toEqual([80, 80, null, 60]);
  });
});
