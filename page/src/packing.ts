// The binary tables of trimtab/web/packing.py: views on the received bytes, nothing is copied.
export type Numbers = Float32Array | Float64Array;

export interface Packed<About> {
  about: About;
  columns: Record<string, Numbers>;
}

interface Header<About> {
  about: About;
  columns: { name: string; bits: number; length: number }[];
}

export function unpack<About>(buffer: ArrayBuffer): Packed<About> {
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, 4));
  if (magic !== "TTP1") throw new Error("the answer is no table of trimtab");
  const length = new DataView(buffer).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as Header<About>;
  const columns: Record<string, Numbers> = {};
  let place = 8 + length;
  for (const { name, bits, length: count } of header.columns) {
    columns[name] = bits === 64 ? new Float64Array(buffer, place, count) : new Float32Array(buffer, place, count);
    place += Math.ceil((count * bits) / 64) * 8;
  }
  return { about: header.about, columns };
}
