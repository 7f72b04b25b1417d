"""How fast the page is, measured in a real browser: 10,000 workloads, a chart of 100,000 points, what-if of two weeks;
and what ten open pages cost the tick of an operator.

python benchmarks/page.py                      print the figures
python benchmarks/page.py --pictures docs/pictures   and take the pictures of the documentation
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.web import browser
from tests.web.conftest import serving
from tests.web.recorded import CPU, PLAIN, START
from tests.web.ticking import OPERATOR
from trimtab.journal import HEALTH, Journal, ObjectName
from trimtab.live.act.breaker import Breaker, FleetWish
from trimtab.live.tell.record import health_of
from trimtab.policy import Admit, Bridge, ForecastChoice, Mode
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.sim.grid import DAY_STEPS
from trimtab.ticks import Tick
from trimtab.tune.recording import record
from trimtab.wire.budget import Budget

OBJECTS, MINUTES, TRIES = 10_000, 100_000, 20
PICTURED = (
    "Autoscaler/shop/web",
    "Autoscaler/shop/cart",
    "Autoscaler/shop/payment",
    "Autoscaler/shop/recommendations",
    "HorizontalPodAutoscaler/media/thumbnails",
    "Autoscaler/media/upload",
    "Autoscaler/media/stream",
    "Autoscaler/back-office/mailer",
    "Autoscaler/back-office/invoices",
    "HorizontalPodAutoscaler/back-office/reports",
    "Autoscaler/edge/gateway",
    "Autoscaler/edge/login",
)
BRIDGED = "Autoscaler/edge/checkout"
LIMITS = {"first_paint_s": 1.5, "chart_s": 0.3, "whatif_p95_s": 1.0, "tick_slower_share": 0.1}
ROOT = Path(__file__).parents[1]
TICKED_OBJECTS, TICKS, PAGES = 1_000, 7, 10
OPEN = ("#/fleet", "#/workload/Autoscaler/shop/web-1", "#/health", "#/fleet", "#/workload/Autoscaler/shop/web-2")
DRAW = """async () => {
  const started = performance.now();
  location.hash = "#/workload/Autoscaler/shop/long";
  await new Promise((done) => new MutationObserver((_, seen) => {
    if (document.querySelector('main[data-ready="workload"] canvas')) { seen.disconnect(); done(); }
  }).observe(document.body, { childList: true, subtree: true, attributes: true }));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const fetched = performance.getEntriesByType("resource").filter((one) => one.name.includes("/api/workload")).at(-1);
  return [performance.now() - started, fetched.responseEnd - fetched.startTime];
}"""


def large_fleet(path: Path) -> None:
    """Every object with an hour of ticks, and one whose minutes fill a chart."""
    journal, draw = Journal(path), np.random.default_rng(1)
    names = [ObjectName("Autoscaler", f"team-{number % 50}", f"service-{number}") for number in range(OBJECTS)]
    for minute in range(0, 60, 10):
        loads = draw.uniform(10, 90, OBJECTS)
        ticks = [
            Tick(name, START + 60.0 * minute, 3, 3, 3, load, load, 80.0, held="stabilisation allows 3", policy=PLAIN)
            for name, load in zip(names, loads.tolist(), strict=True)
        ]
        journal.write([], ticks)
    load = 500 + 300 * np.sin(np.arange(MINUTES) / 200) + draw.normal(0, 20, MINUTES)
    long = ObjectName("Autoscaler", "shop", "long")
    ticks = [
        Tick(long, START - 60.0 * (MINUTES - minute), 9, 9, 9, None, value, 900.0, policy=PLAIN)
        for minute, value in enumerate(load.tolist())
    ]
    journal.write([], ticks)
    journal.prune(START)
    journal.close()


def measured(path: Path) -> dict[str, float]:
    with serving(path) as address, browser.chromium() as chromium:
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        paints = [first_paint(page, address) for _ in range(5)]
        page.goto(f"{address}/#/workload/Autoscaler/team-1/service-1")
        page.wait_for_selector('main[data-ready="workload"]')
        draws = []
        for _ in range(5):
            page.evaluate('location.hash = "#/health"')
            page.wait_for_selector('main[data-ready="health"]')
            draws.append([value / 1000 for value in page.evaluate(DRAW)])
        page.goto(f"{address}/#/whatif/Autoscaler/shop/long")
        page.wait_for_selector('main[data-ready="whatif"]')
        waits = [what_if(page, number) for number in range(TRIES)]
    drawn, fetched = np.median(draws, axis=0).tolist()
    return {
        "first_paint_s": float(np.median(paints)),
        "chart_s": drawn - fetched,
        "chart_with_its_data_s": drawn,
        "whatif_p95_s": float(np.quantile(waits, 0.95)),
    }


def first_paint(page: Any, address: str) -> float:
    """From the address to rows on the screen."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(f"{address}/")
    page.wait_for_selector("table.fleet tbody tr:not(.spacer)")
    return time.perf_counter() - began


def what_if(page: Any, number: int) -> float:
    began = time.perf_counter()
    with page.expect_response(lambda response: "/api/whatif" in response.url):
        page.locator("input[name=target]").fill(str(10 + number))
    return time.perf_counter() - began


def tick_with_pages(folder: Path) -> dict[str, float]:
    """Seconds of CPU of the operator's loop in one tick, while nobody looks and while ten pages are open."""
    command = (sys.executable, "-m", "tests.web.ticking", str(TICKED_OBJECTS))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as operator:
        assert operator.stdin is not None and operator.stdout is not None
        port = operator.stdout.readline().strip()

        def ticks() -> list[float]:
            print(TICKS, file=operator.stdin, flush=True)
            return np.median(json.loads(operator.stdout.readline()), axis=0).tolist()  # type: ignore[union-attr]

        ticks()  # imports, caches
        alone = ticks()
        options = ("--operator", OPERATOR, "--kubeconfig", str(kubeconfig(folder, port)))
        with serving(None, *options) as address, browser.chromium() as chromium:
            for number in range(PAGES):
                page = chromium.new_page()
                page.goto(f"{address}/{OPEN[number % len(OPEN)]}")
                page.wait_for_selector('main[data-ready]:not([data-ready=""])')
            watched = ticks()
        operator.stdin.close()
    return {
        "tick_cpu_s": alone[0],
        "tick_cpu_with_10_pages_s": watched[0],
        "tick_slower_share": watched[0] / alone[0] - 1,
        "tick_wall_s": alone[1],
        "tick_wall_with_10_pages_s": watched[1],
    }


def kubeconfig(folder: Path, port: str) -> Path:
    cluster = {"name": "here", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "here", "context": {"cluster": "here", "user": "me"}}
    config = {"clusters": [cluster], "contexts": [context], "users": [{"name": "me", "user": {}}]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config | {"current-context": "here"}))
    return path


def picture_shop(path: Path) -> None:
    """A fleet such as one team may have, three days of it for one workload and half a day for the others."""
    journal, short = Journal(path), round(0.6 * DAY_STEPS)
    ahead = replace(PLAIN, forecast=ForecastChoice(model="seasonal", horizon_s=600.0, quantile=0.9))
    shadow = replace(PLAIN, admit=Admit(mode=Mode.SHADOW))
    cpu = replace(PLAIN, signals=(CPU,))
    load = generate(LoadShape(peak=1300, valley=0.25, noise=0.04, days=5, seed=3))[: 4 * DAY_STEPS + short]
    cluster = ClusterSpec(startup_s=120, pod_capacity=100.0)
    name = ObjectName("Autoscaler", "shop", "search")
    record(journal, name, ahead, load, cluster, first_pods=6, start=START - 4 * 86400)
    for number, target in enumerate(PICTURED):
        shape = LoadShape(
            peak=300.0 + 130 * number, bursts_a_day=number % 5, burst=0.6, noise=0.05, days=1, seed=number
        )
        kind, namespace, word = target.split("/")
        policy = cpu if kind.startswith("H") else shadow if word == "mailer" else PLAIN
        values = generate(shape)[:short] / (60 if policy is cpu else 1)
        spec = ClusterSpec() if policy is cpu else cluster
        record(journal, ObjectName(kind, namespace, word), policy, values, spec, first_pods=8, start=START)
    gateway = replace(cpu, bridge=Bridge())
    jumps = generate(LoadShape(peak=11, valley=0.4, bursts_a_day=9, burst=0.8, noise=0.03, days=1, seed=6))[:short]
    name, slow = ObjectName(*BRIDGED.split("/")), ClusterSpec(startup_s=420)
    record(journal, name, gateway, jumps, slow, first_pods=6, start=START)
    note_health(journal, START + short * 15)
    journal.prune(START + short * 15 - 900)
    journal.close()


def note_health(journal: Journal, at: float) -> None:
    """What an operator of this fleet would have noted of itself."""
    breaker = Breaker()
    breaker.trip([FleetWish(str(number), "media", True) for number in range(10)], at - 4000)
    found = health_of([], at, Budget(), breaker, frozen=False)
    conflict = "HorizontalPodAutoscaler thumbnails moves it, too: kubectl delete hpa thumbnails -n media"
    found["conflicts"] = [("HorizontalPodAutoscaler", "media", "thumbnails", conflict, None)]
    found["muted"] = [
        ("Autoscaler", "back-office", "invoices", "paused", at + 7200),
        ("Autoscaler", "shop", "cart", "no forecast of requests: it loses to the last value in its own backtest", None),
    ]
    found["counts"] |= {"conflicts": 1, "muted": 2}
    journal.note(HEALTH, msgspec.json.encode(found).decode())


def take_pictures(folder: Path, shop: Path) -> None:
    views = {
        "fleet": "#/fleet",
        "workload": "#/workload/Autoscaler/shop/search",
        "bridge": f"#/workload/{BRIDGED}",
        "whatif": f"#/whatif/{BRIDGED}",
        "advice": "#/advice/HorizontalPodAutoscaler/media/thumbnails",
        "health": "#/health",
    }
    with serving(shop) as address, browser.chromium() as chromium:
        for name, view in views.items():
            page = chromium.new_page(viewport={"width": 1240, "height": 720})
            page.set_default_timeout(120_000)  # the first what-if may have to be compiled
            page.goto(f"{address}/{view}")
            page.wait_for_selector('main[data-ready]:not([data-ready=""])')
            if name == "whatif":
                page.locator("input[name=bridge]").fill("0")
                page.locator("#verdict", has_text="all costs together").wait_for()
            page.screenshot(path=folder / f"{name}.png")
            page.close()


def main() -> None:
    if reason := browser.missing():
        sys.exit(f"page: skipped, {reason}")
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:2] == ["--pictures"]:
            picture_shop(Path(folder) / "shop.db")
            take_pictures(Path(sys.argv[2]), Path(folder) / "shop.db")
            return
        path = Path(folder) / "fleet.db"
        large_fleet(path)
        found = measured(path) | tick_with_pages(Path(folder))
    for name, value in found.items():
        limit = f" (at most {LIMITS[name]:g})" if name in LIMITS else ""
        print(f"{name:24}{value:8.3f}{limit}")
    print(json.dumps({"benchmark": "page", "objects": OBJECTS, "points": MINUTES, **found}))


if __name__ == "__main__":
    main()
