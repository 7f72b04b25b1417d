import { describe, expect, it } from "vitest";
import { arranged, type Fleet } from "../src/fleet";

function fleet(rows: { name: string; severity: number; replicas: number; load?: number; mode?: string }[]): Fleet {
  const texts = (value: (row: (typeof rows)[number]) => string): string[] => rows.map(value);
  const numbers = (value: (row: (typeof rows)[number]) => number): Float32Array => Float32Array.from(rows, value);
  return {
    about: {
      now: 0,
      count: rows.length,
      text: {
        kind: texts(() => "Autoscaler"),
        namespace: texts(() => "shop"),
        name: texts((row) => row.name),
        mode: texts((row) => row.mode ?? "Auto"),
        held: texts(() => ""),
        fate: texts(() => ""),
        said: texts(() => ""),
        problem: texts(() => ""),
      },
    },
    columns: {
      severity: numbers((row) => row.severity),
      violations: numbers(() => 0),
      replicas: numbers((row) => row.replicas),
      load: numbers((row) => row.load ?? NaN),
      capacity: numbers(() => 10),
    },
  };
}

const some = fleet([
  { name: "web", severity: 0, replicas: 3, load: 9 },
  { name: "api", severity: 3, replicas: 9, load: 1, mode: "Shadow" },
  { name: "cache", severity: 0, replicas: 1 },
]);
const worst = { key: "problem", descending: true };
const names = (rows: number[]): string[] => rows.map((row) => some.about.text.name[row]!);

describe("the fleet", () => {
  it("shows problems first and breaks ties by name", () => {
    expect(names(arranged(some, "", "all", worst))).toEqual(["api", "cache", "web"]);
  });
  it("sorts by any column in both directions", () => {
    expect(names(arranged(some, "", "all", { key: "replicas", descending: true }))).toEqual(["api", "web", "cache"]);
    expect(names(arranged(some, "", "all", { key: "replicas", descending: false }))).toEqual(["cache", "web", "api"]);
  });
  it("puts what is not known last in either direction", () => {
    expect(names(arranged(some, "", "all", { key: "headroom", descending: false })).at(-1)).toBe("cache");
    expect(names(arranged(some, "", "all", { key: "headroom", descending: true })).at(-1)).toBe("cache");
  });
  it("finds every word, wherever it stands", () => {
    expect(names(arranged(some, "SHOP cac", "all", worst))).toEqual(["cache"]);
    expect(arranged(some, "nothing", "all", worst)).toEqual([]);
  });
  it("filters", () => {
    expect(names(arranged(some, "", "problems", worst))).toEqual(["api"]);
    expect(names(arranged(some, "", "shadow", worst))).toEqual(["api"]);
  });
});
