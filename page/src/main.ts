// Where it begins: a report shows what it carries, the dashboard what its address says.
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { advicePage } from "./advice";
import { follow, plain } from "./api";
import { h } from "./dom";
import { fleetPage } from "./fleet";
import { setTimeZone, time, timeZone, zoneName } from "./format";
import { healthPage } from "./health";
import { showReport, type Report } from "./report";
import { read, write, type Route, type View } from "./route";
import { whatifPage } from "./whatif";
import { workloadPage } from "./workload";

interface About {
  title: string;
  note: string;
  now: number;
  version: string;
}
type Refresh = () => Promise<void>;
const NAMES: [View, string][] = [["fleet", "Fleet"], ["workload", "Workload"], ["whatif", "What if"], ["advice", "Advice"], ["health", "Health"]];

const COMPILING = "Replaying the history… the first time after an update this takes half a minute, while it is compiled.";

async function open(route: Route, place: HTMLElement): Promise<Refresh> {
  if (route.view === "health") return healthPage(place);
  if (route.view === "fleet" || !route.name) return fleetPage(place);
  if (route.view === "whatif") return whatifPage(place, route.name);
  return route.view === "advice" ? advicePage(place, route.name) : workloadPage(place, route.name);
}

function navigation(route: Route): HTMLElement[] {
  return NAMES.filter(([view]) => view === "fleet" || view === "health" || route.name).map(([view, label]) =>
    h("a", { href: write(view, view === "fleet" || view === "health" ? null : route.name), "aria-current": view === route.view ? "page" : null }, label),
  );
}

function dashboard(): void {
  const where = h("span", { class: "where soft" });
  const nav = h("nav", { "aria-label": "Pages" });
  const zone = h("button", { class: "zone", title: "Show times in local time or in UTC" });
  const main = h("main", { id: "main", tabindex: -1 });
  document.body.append(
    h("a", { class: "skip", href: "#main", click: (event) => { event.preventDefault(); main.focus(); } }, "To the content"),
    h("header", {}, h("strong", {}, "trimtab"), nav, where, zone),
    main,
  );
  let refresh: Refresh = () => Promise.resolve();
  let turn = 0;
  let busy = false;
  const fail = (error: unknown): void => {
    const said = h("p", { class: "error", role: "alert" }, (error as Error).message);
    const old = main.querySelector(".error[role]");
    if (old) old.replaceWith(said);
    else main.prepend(said);
  };
  const about = async (): Promise<void> => {
    const found = await plain<About>("about");
    document.title = `trimtab: ${found.title}`;
    where.textContent = `${found.title} · ${time(found.now)} ${zoneName()}${found.note ? ` · ${found.note}` : ""}`;
  };
  const go = async (): Promise<void> => {
    const mine = (turn += 1);
    const route = read(location.hash);
    nav.replaceChildren(...navigation(route));
    const place = h("div");
    const wait = h("p", { class: "soft wait", role: "status" }, route.view === "whatif" ? COMPILING : "Reading…");
    main.replaceChildren(place, wait);
    main.dataset["ready"] = "";
    try {
      const next = await open(route, place);
      if (mine !== turn) return;
      refresh = next;
    } catch (error) {
      if (mine === turn) fail(error);
      refresh = go;
    }
    wait.remove();
    if (mine === turn) main.dataset["ready"] = route.view;
    await about().catch(() => null);
  };
  const nameZone = (): void => { zone.textContent = timeZone() === "UTC" ? "UTC" : "Local time"; };
  zone.addEventListener("click", () => {
    setTimeZone(timeZone() === "UTC" ? "local" : "UTC");
    nameZone();
    void go();
  });
  nameZone();
  addEventListener("hashchange", () => void go());
  follow(() => {
    if (busy || document.hidden) return;
    busy = true;
    const mine = turn;
    void refresh()
      .then(about)
      .then(() => main.querySelector(".error[role]")?.remove())
      .catch((error: unknown) => { if (mine === turn) fail(error); })
      .finally(() => { busy = false; });
  });
  void go();
}

const embedded = document.getElementById("report");
if (embedded) showReport(JSON.parse(embedded.textContent) as Report);
else dashboard();
