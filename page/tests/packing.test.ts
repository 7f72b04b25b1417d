import { describe, expect, it } from "vitest";
import { unpack } from "../src/packing";

function table(header: object, ...columns: ArrayBufferView[]): ArrayBuffer {
  let text = JSON.stringify(header);
  text += " ".repeat((8 - (text.length % 8)) % 8);
  const parts = [new TextEncoder().encode("TTP1"), new Uint8Array(Uint32Array.of(text.length).buffer), new TextEncoder().encode(text)];
  for (const column of columns) {
    const padded = new Uint8Array(Math.ceil(column.byteLength / 8) * 8);
    padded.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength));
    parts.push(padded);
  }
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let place = 0;
  for (const part of parts) {
    whole.set(part, place);
    place += part.length;
  }
  return whole.buffer;
}

describe("a packed table", () => {
  it("gives its columns back, whatever their width and length", () => {
    const columns = [
      { name: "at", bits: 64, length: 2 },
      { name: "load", bits: 32, length: 3 },
      { name: "ready", bits: 32, length: 1 },
    ];
    const found = unpack<{ unit: string }>(
      table({ about: { unit: "cores" }, columns }, Float64Array.of(1e9, 2e9), Float32Array.of(1, 2, NaN), Float32Array.of(7)),
    );
    expect(found.about.unit).toBe("cores");
    expect(Array.from(found.columns["at"]!)).toEqual([1e9, 2e9]);
    expect(Array.from(found.columns["load"]!)).toEqual([1, 2, NaN]);
    expect(Array.from(found.columns["ready"]!)).toEqual([7]);
  });

  it("refuses what is none", () => {
    expect(() => unpack(new TextEncoder().encode('{"error": ""}').buffer)).toThrow("no table");
  });
});
