// Numbers and times as people read them, in local time or in UTC.
const ZONE_KEY = "trimtab-times";
export type Zone = "local" | "UTC";
let zone: Zone = stored() === "UTC" ? "UTC" : "local";

export function timeZone(): Zone {
  return zone;
}

// Remember the choice for the next visit, where the browser lets us.
export function setTimeZone(chosen: Zone): void {
  zone = chosen;
  try {
    localStorage.setItem(ZONE_KEY, chosen);
  } catch {
    // a report opened as a file may have no storage
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(ZONE_KEY);
  } catch {
    return null;
  }
}

// What to call the times on the page: "UTC", or the browser's own zone such as "Europe/Berlin".
export function zoneName(): string {
  return zone === "UTC" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone;
}

// The moment whose UTC clock shows what the chosen zone's clock shows at `at`. Made-up loads have no zone.
function shifted(at: number): number {
  return zone === "UTC" || at < DATED ? at : at - 60 * new Date(at * 1000).getTimezoneOffset();
}

const DAY_S = 86400;
export const DATED = 400 * DAY_S; // an earlier time belongs to a made-up load, which begins on day 1

export function number(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const magnitude = Math.abs(value);
  if (magnitude >= 1e9) return `${trimmed(value / 1e9, digits)} G`;
  if (magnitude >= 1e6) return `${trimmed(value / 1e6, digits)} M`;
  if (magnitude >= 1e3) return Math.round(value).toLocaleString("en");
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
  return `${value === 0 ? "0" : trimmed(value, 3)} ${value === 1 ? "core" : "cores"}`;
}

export function inUnit(value: number | null | undefined, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "cores") return cores(value);
  return unit && Number.isFinite(value) ? `${number(value)} ${unit}` : number(value);
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
  const iso = new Date(shifted(at) * 1000).toISOString();
  const clock = iso.slice(11, seconds ? 19 : 16);
  return at < DATED ? `day ${Math.floor(at / DAY_S) + 1} ${clock}` : `${iso.slice(0, 10)} ${clock}`;
}

// Labels of a time axis: the date where a day begins, else the clock.
export function tick(at: number, step: number): string {
  const iso = new Date(shifted(at) * 1000).toISOString();
  const midnight = shifted(at) % DAY_S === 0;
  if (at < DATED) return midnight ? `day ${Math.floor(at / DAY_S) + 1}` : iso.slice(11, 16);
  if (midnight) return `${iso.slice(8, 10)} ${MONTHS[Number(iso.slice(5, 7)) - 1] ?? ""}`;
  return iso.slice(11, step < 60 ? 19 : 16);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
