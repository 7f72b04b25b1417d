// The last hours of one workload in the space of a word: its load by the hour, hours with overload in red.
const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [96, 20];

export interface LastHours {
  load: Float32Array; // one value per hour, NaN where nothing was seen
  overloaded: Float32Array; // the share of that hour's load that met overloaded pods
}

export function sparkline({ load, overloaded }: LastHours): SVGElement | null {
  const known = load.filter((value) => !Number.isNaN(value));
  if (known.length < 2) return null;
  const most = Math.max(...known, 1e-9);
  const bar = WIDTH / load.length;
  const drawing = element("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": spoken(load, overloaded) });
  load.forEach((value, hour) => {
    if (Number.isNaN(value)) return;
    const height = Math.max(1, (value / most) * HEIGHT);
    const kind = (overloaded[hour] ?? 0) > 0.01 ? "spark over" : "spark";
    drawing.append(element("rect", { x: hour * bar, y: HEIGHT - height, width: Math.max(1, bar - 0.8), height, class: kind }));
  });
  return drawing;
}

function spoken(load: Float32Array, overloaded: Float32Array): string {
  const hours = load.filter((value) => !Number.isNaN(value)).length;
  const hurt = overloaded.filter((share) => share > 0.01).length;
  return `load of the last ${hours} hours, ${hurt === 0 ? "none" : hurt} of them overloaded`;
}

function element(tag: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
