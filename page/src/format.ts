// Numbers and times as people read them; every time is UTC.
const DAY_S = 86400;
const DATED = 400 * DAY_S; // an earlier time belongs to a made-up load, which begins on day 1

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1e9) return `${trimmed(value / 1e9, digits)} G`;
  if (magnitude >= 1e6) return `${trimmed(value / 1e6, digits)} M`;
  if (magnitude >= 1e4) return Math.round(value).toLocaleString("en");
  return trimmed(value, digits);
}

function trimmed(value: number, digits: number): string {
  const whole = Math.max(1, Math.floor(Math.log10(Math.abs(value))) + 1);
  return String(Number(value.toFixed(Math.max(0, Math.min(6, digits - whole + (Math.abs(value) < 1 ? 1 : 0))))));
}

export function percent(value: number | null | undefined, digits = 2): string {
  return value === null || value === undefined || !Number.isFinite(value) ? "–" : `${value.toFixed(digits)} %`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  while (value >= 1024 && index < units.length - 1) {
    value /= 1024;
    index += 1;
  }
  return `${trimmed(value, 3)} ${units[index] ?? ""}`;
}

export function cores(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value !== 0 && Math.abs(value) < 1 ? `${Math.round(value * 1000)}m` : trimmed(value, 3);
}

export function inUnit(value: number | null | undefined, unit: string): string {
  if (unit === "bytes") return bytes(value);
  return unit === "cores" ? cores(value) : number(value);
}

export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${trimmed(seconds / 60, 2)} min`;
  if (seconds < 2 * DAY_S) return `${trimmed(seconds / 3600, 2)} h`;
  return `${trimmed(seconds / DAY_S, 2)} d`;
}

export function ago(at: number, now: number): string {
  return Number.isFinite(at) ? `${duration(Math.max(0, now - at))} ago` : "–";
}

export function time(at: number, seconds = true): string {
  if (!Number.isFinite(at)) return "–";
  const iso = new Date(at * 1000).toISOString();
  const clock = iso.slice(11, seconds ? 19 : 16);
  return at < DATED ? `day ${Math.floor(at / DAY_S) + 1} ${clock}` : `${iso.slice(0, 10)} ${clock}`;
}

// Labels of a time axis: the date where a day begins, else the clock.
export function tick(at: number, step: number): string {
  const iso = new Date(at * 1000).toISOString();
  const midnight = at % DAY_S === 0;
  if (at < DATED) return midnight ? `day ${Math.floor(at / DAY_S) + 1}` : iso.slice(11, 16);
  if (midnight) return `${iso.slice(8, 10)} ${MONTHS[Number(iso.slice(5, 7)) - 1] ?? ""}`;
  return iso.slice(11, step < 60 ? 19 : 16);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
