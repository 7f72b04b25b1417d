// One chart: lines over time that zoom together with their neighbours, told apart by more than colour, and in words.
import uPlot from "uplot";
import { h, table } from "./dom";
import { DATED, tick, time, timeZone, zoneName } from "./format";
import type { Numbers } from "./packing";

export interface Line {
  label: string;
  values: Numbers | (number | null)[];
  colour: string; // a custom property of the style sheet, such as --load
  dash?: number[];
  filled?: boolean;
  stepped?: boolean;
  wide?: boolean;
  faint?: boolean;
}

export interface Mark {
  at: number;
  up: boolean;
  shadow: boolean;
}

export interface ChartOptions {
  title: string;
  unit: string;
  times: Numbers;
  lines: Line[];
  bands?: [number, number][]; // from the upper to the lower line, counted from 0
  overload?: { load: Line["values"]; capacity: Line["values"] }; // shaded where the load is above the capacity
  marks?: Mark[];
  onMark?: (mark: Mark) => void;
  format: (value: number | null) => string;
  height?: number;
  group: Group;
}

const DAY = 86400;
const INCREMENTS = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 7 * DAY, 28 * DAY];
const MARK_REACH = 12; // pixels
const MARK_GAP = 9; // pixels: what stands closer would be a smear; zooming in parts them
const LEAST_SPAN_S = 60;

// Charts that share a time axis.
export class Group {
  readonly charts: uPlot[] = [];
  readonly key = `group-${Math.random()}`;
  range: [number, number] | null = null; // what is looked at; null is all
  onRange: ((from: number, to: number) => void) | null = null;

  show(from: number, to: number): void {
    if (to - from < LEAST_SPAN_S) return;
    this.range = [from, to];
    for (const chart of this.charts) chart.setScale("x", { min: from, max: to });
  }

  all(): void {
    const times = this.charts[0]?.data[0];
    if (!times || times.length === 0) return;
    this.show(times[0]!, times[times.length - 1]!);
    this.range = null;
  }

  seen(): [number, number] {
    const scale = this.charts[0]?.scales["x"];
    return [scale?.min ?? 0, scale?.max ?? 0];
  }

  // Fractions of what is seen: 0.25 right, 2 wider.
  move(shift: number, factor: number): void {
    const [from, to] = this.seen();
    const middle = (from + to) / 2 + shift * (to - from);
    const half = ((to - from) / 2) * factor;
    this.show(middle - half, middle + half);
  }
}

export function chart(place: HTMLElement, options: ChartOptions): uPlot {
  const { group, lines, times } = options;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const canvas = h("div", { class: "canvas", tabindex: 0, role: "img", "aria-label": spoken(options) });
  place.append(
    h("figure", { class: "chart" }, h("figcaption", {}, h("b", {}, options.title), ` ${options.unit}`), canvas, words(options)),
  );
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const fontSize = '11px "Inter", system-ui, sans-serif';
  const made = new uPlot(
    {
      width: Math.max(280, canvas.clientWidth || place.clientWidth),
      height: options.height ?? 200,
      tzDate: (at) => (timeZone() === "UTC" || at < DATED ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
      padding: [8, 24, 0, 0],
      scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1e-9, high * 1.08)] } },
      axes: [
        {
          ...axis,
          font: fontSize,
          space: 68,
          size: 28,
          incrs: INCREMENTS,
          values: (_, at, __, ___, step) => at.map((second) => tick(second, step)),
        },
        { ...axis, font: fontSize, size: 58, space: 32, values: (_, at) => at.map((value) => onAxis(options.format(value), options.unit)) },
      ],
      series: [
        { label: zoneName(), value: (_, at) => time(at) },
        ...lines.map((line) => series(line, colour, options.format)),
      ],
      bands: (options.bands ?? []).map(([upper, lower]) => ({
        series: [upper + 1, lower + 1] as [number, number],
        fill: colour("--band"),
      })),
      cursor: { sync: { key: group.key, scales: ["x", null] }, drag: { x: true, y: false, dist: 6 }, points: { size: 6 } },
      legend: { live: true },
      hooks: {
        draw: [
          (plot) => {
            if (options.overload) shadeOverload(plot, times, options.overload, colour("--bad"));
            drawMarks(plot, options.marks ?? [], colour);
          },
        ],
        setScale: [
          (plot, key) => {
            const { min, max } = plot.scales["x"]!;
            if (key === "x" && plot === group.charts[0] && min != null && max != null) group.onRange?.(min, max);
          },
        ],
      },
    },
    [times, ...lines.map((line) => gapped(line.values))] as uPlot.AlignedData,
    canvas,
  );
  group.charts.push(made);
  if (group.range) made.setScale("x", { min: group.range[0], max: group.range[1] });
  listen(made, canvas, options);
  return made;
}

function series(line: Line, colour: (name: string) => string, format: (value: number | null) => string): uPlot.Series {
  return {
    label: line.label,
    ...(line.faint ? { class: "faint" } : {}),
    stroke: line.faint ? "transparent" : colour(line.colour),
    width: line.wide ? 2.25 : 1.5,
    points: { show: false },
    value: (_, value) => format(value),
    ...(line.dash ? { dash: line.dash } : {}),
    ...(line.filled ? { fill: `${colour(line.colour)}22` } : {}),
    ...(line.stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
  };
}

// uPlot leaves a hole where it finds null; the wire says NaN.
export function gapped(values: Line["values"]): (number | null)[] | Numbers {
  if (Array.isArray(values)) return values;
  return values.some(Number.isNaN) ? Array.from(values, (value) => (Number.isNaN(value) ? null : value)) : values;
}

// The unit stands in the title, so the axis leaves words such as cores out; GiB and percent stay.
function onAxis(text: string, unit: string): string {
  const word = text.slice(text.indexOf(" ") + 1);
  return text.includes(" ") && (word === "core" || word === "cores" || unit.includes(word)) ? text.slice(0, text.indexOf(" ")) : text;
}

function shadeOverload(plot: uPlot, times: Numbers, { load, capacity }: { load: Line["values"]; capacity: Line["values"] }, colour: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.55;
  for (let index = 0; index < times.length; index += 1) {
    const [above, below] = [load[index] ?? NaN, capacity[index] ?? NaN];
    if (!(above > below)) continue;
    const left = plot.valToPos(times[index]!, "x", true);
    const right = plot.valToPos(times[index + 1] ?? times[index]! + 60, "x", true);
    const top = plot.valToPos(above, "y", true);
    ctx.fillRect(left, top, Math.max(1, right - left), plot.valToPos(below, "y", true) - top);
  }
  ctx.restore();
}

function drawMarks(plot: uPlot, marks: Mark[], colour: (name: string) => string): void {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  const drawn = { up: -Infinity, down: -Infinity };
  ctx.save();
  for (const mark of marks) {
    const x = plot.valToPos(mark.at, "x", true);
    const way = mark.up ? "up" : "down";
    if (x < bbox.left || x > bbox.left + bbox.width || x - drawn[way] < MARK_GAP * ratio) continue;
    drawn[way] = x;
    const size = 4.5 * ratio;
    const y = bbox.top + bbox.height - 2 * ratio;
    ctx.beginPath();
    ctx.moveTo(x - size, mark.up ? y : y - 1.6 * size);
    ctx.lineTo(x + size, mark.up ? y : y - 1.6 * size);
    ctx.lineTo(x, mark.up ? y - 1.6 * size : y);
    ctx.closePath();
    ctx.strokeStyle = ctx.fillStyle = colour(mark.up ? "--up" : "--down");
    ctx.lineWidth = ratio;
    if (mark.shadow) ctx.stroke();
    else ctx.fill();
  }
  ctx.restore();
}

function listen(plot: uPlot, canvas: HTMLElement, options: ChartOptions): void {
  const { group } = options;
  const watcher = new ResizeObserver(() => {
    if (canvas.clientWidth > 0 && canvas.clientWidth !== plot.width) {
      plot.setSize({ width: canvas.clientWidth, height: plot.height });
    }
  });
  watcher.observe(canvas);
  canvas.addEventListener("keydown", (event) => {
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-0.25, 1],
      ArrowRight: [0.25, 1],
      "+": [0, 0.5],
      "-": [0, 2],
    };
    const move = moves[event.key];
    if (event.key === "0") group.all();
    else if (move) group.move(...move);
    else return;
    event.preventDefault();
  });
  plot.over.addEventListener("dblclick", () => {
    group.range = null;
  });
  plot.over.addEventListener("mouseup", () => {
    setTimeout(() => {
      group.range = group.seen();
    });
  });
  const { marks, onMark } = options;
  if (!marks || !onMark) return;
  plot.over.addEventListener("click", (event) => {
    const nearest = closest(marks, plot.posToVal(event.offsetX, "x"));
    if (nearest && Math.abs(plot.valToPos(nearest.at, "x") - event.offsetX) <= MARK_REACH) onMark(nearest);
  });
}

export function closest(marks: Mark[], at: number): Mark | null {
  return marks.reduce<Mark | null>(
    (best, mark) => (best === null || Math.abs(mark.at - at) < Math.abs(best.at - at) ? mark : best),
    null,
  );
}

interface Summary {
  label: string;
  least: number;
  mean: number;
  most: number;
  last: number;
}

export function summary(line: Line): Summary {
  let [least, most, sum, count, last] = [Infinity, -Infinity, 0, 0, NaN];
  for (const value of line.values) {
    if (value === null || Number.isNaN(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
    count += 1;
    last = value;
  }
  return { label: line.label, least, mean: sum / count, most, last };
}

function spoken(options: ChartOptions): string {
  const { times, lines, format } = options;
  if (times.length === 0) return `${options.title}: no data`;
  const said = lines
    .map(summary)
    .filter((line) => Number.isFinite(line.last))
    .map((line) => `${line.label} from ${format(line.least)} to ${format(line.most)}, last ${format(line.last)}`);
  const span = `${time(times[0]!, false)} to ${time(times[times.length - 1]!, false)} ${zoneName()}`;
  return `${options.title}, ${span}. ${said.join(". ")}. Arrow keys move, plus and minus zoom, 0 shows all.`;
}

// The same in a table, for those who cannot see the canvas or want the figures.
function words(options: ChartOptions): HTMLElement {
  const rows = options.lines
    .map(summary)
    .map((line) => [line.label, ...[line.least, line.mean, line.most, line.last].map((value) => options.format(value))]);
  const columns = ["line", "least", "mean", "most", "last"].map((heading, index) => ({ heading, text: index === 0 }));
  return h("details", {}, h("summary", {}, "In figures"), table(`${options.title} ${options.unit}`, columns, rows));
}
