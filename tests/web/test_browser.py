"""The page in a real browser: its figures, its keys, its words, on a phone and in the dark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from playwright.sync_api import expect

from tests.web import browser as browsers
from tests.web.conftest import Shop, serving
from tests.web.recorded import CPU, HOSTILE, PLAIN, START
from tests.web.test_whatif import minutes_of
from trimtab.cli import main
from trimtab.journal import Journal, ObjectName
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.tune.recording import record
from trimtab.web.whatif import history_of, judge, present

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Locator, Page

pytestmark = pytest.mark.skipif(bool(browsers.missing()), reason=browsers.missing())
AXE = Path(__file__).parents[2] / "page/node_modules/axe-core/axe.min.js"
WEB = "Autoscaler/shop/web"
PAGES = {
    "fleet": "#/fleet",
    "workload": "#/workload/Autoscaler/shop/search",
    "whatif": f"#/whatif/{WEB}",
    "advice": "#/advice/HorizontalPodAutoscaler/shop/cache",
    "health": "#/health",
}
CANVAS = "document.querySelector('.canvas canvas')"
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
Open = Callable[..., "Page"]
expect.set_options(
    timeout=120_000
)  # what a page shows comes after the key or the click; how soon is the machine's affair


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsers.chromium() as found:
        yield found


@pytest.fixture
def visit(chromium: Browser, address: str) -> Iterator[Open]:
    """Open one of PAGES and wait until it is drawn; whatever the console says fails the test."""
    contexts, said = [], []

    def go(view: str = "fleet", at: str = address, **options: Any) -> Page:
        options = {"viewport": {"width": 1300, "height": 800}, "timezone_id": "UTC"} | options
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)  # the first what-if may have to be compiled
        page.on("console", lambda message: said.append(message.text) if _is_fault(message) else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{at}/{PAGES.get(view, view)}")
        page.wait_for_selector('main[data-ready]:not([data-ready=""])')
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []


def _is_fault(message: ConsoleMessage) -> bool:
    """A refused question is told on the page, and Chromium notes it too."""
    return message.type == "error" and not message.text.startswith("Failed to load resource")


def rows(page: Page) -> Locator:
    return page.locator("table.fleet tbody tr:not(.spacer)")


def cells(page: Page, row: int) -> list[str]:
    return rows(page).nth(row).locator("th, td").all_inner_texts()


def names(page: Page) -> list[str]:
    return rows(page).locator("th").all_inner_texts()


def test_figures_of_the_fleet_are_those_of_the_journal(visit: Open, shop: Shop) -> None:
    page = visit()
    shown = {row[0]: row for row in (cells(page, number) for number in range(5))}
    for name, ticks in shop.ticks.items():
        row, last = shown[f"{name.namespace}/{name.name}"], ticks[-1]
        assert row[2].startswith(f"{last.ready}/{last.replicas}")
        if last.load is not None and last.capacity is not None:
            assert row[3].replace("−", "-") == f"{100 * (1 - last.load / last.capacity):.0f} %"


def test_problems_come_first_and_a_hostile_name_is_text(visit: Open) -> None:
    page = visit()
    assert any(name == f"batch/{HOSTILE}" for name in names(page)[:2])
    assert page.locator("img").count() == 0
    page.get_by_role("link", name=HOSTILE).click()
    page.wait_for_selector('main[data-ready="workload"]')
    expect(page.locator("h1")).to_have_text(f"batch/{HOSTILE}")
    assert page.locator("img").count() == 0


def test_search_sorts_and_filters_as_you_type(visit: Open) -> None:
    page = visit()
    page.get_by_role("searchbox").fill("shop/")
    expect(rows(page)).to_have_count(3)
    assert sorted(names(page)) == ["shop/cache", "shop/search", "shop/web"]
    page.get_by_role("button", name="Replicas").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Replicas")
    ready = [int(cells(page, row)[2].split("/")[1].split()[0]) for row in range(3)]
    assert ready == sorted(ready, reverse=True)
    page.get_by_role("button", name="Replicas").click()
    expect(page.locator("th[aria-sort=ascending]")).to_contain_text("Replicas")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Show").select_option("shadow")
    expect(rows(page).locator("th")).to_have_text(["batch/worker"])


def test_a_workload_zooms_by_button_mouse_and_key(visit: Open, shop: Shop) -> None:
    page = visit("workload")
    last = shop.ticks[ObjectName("Autoscaler", "shop", "search")][-1]
    assert f"{last.ready} ready of {last.replicas}" in page.locator(".facts").inner_text()
    labels = page.locator(".chart .canvas").first.get_attribute("aria-label")
    assert labels and labels.startswith("Load and capacity, 2025-10-09")
    drawing = f"{CANVAS}.toDataURL()"
    before = page.evaluate(drawing)
    page.get_by_role("button", name="1 h").click()
    page.wait_for_function(f"before => {drawing} !== before", arg=before)
    near = page.evaluate(drawing)
    page.locator(".canvas").first.focus()
    page.keyboard.press("0")
    page.wait_for_function(f"near => {drawing} !== near", arg=near)


def test_times_are_local_until_utc_is_chosen(visit: Open) -> None:
    page = visit("workload", timezone_id="Asia/Tokyo")
    local = page.locator(".changes span").first.inner_text()
    page.get_by_role("button", name="Local time", exact=True).click()
    expect(page.get_by_role("button", name="UTC", exact=True)).to_be_visible()
    expect(page.locator(".changes span").first).not_to_have_text(local)
    utc = page.locator(".changes span").first.inner_text()
    assert datetime.fromisoformat(local) - datetime.fromisoformat(utc) == timedelta(hours=9)
    page.reload()
    expect(page.get_by_role("button", name="UTC", exact=True)).to_be_visible()


def test_the_fleet_shows_the_load_of_the_last_hours(visit: Open) -> None:
    drawing = visit().get_by_label("load of the last").first
    expect(drawing).to_be_visible()
    assert drawing.locator("rect").count() >= 2


def test_every_change_opens_its_explanation(visit: Open, shop: Shop) -> None:
    page = visit("workload")
    acts = list(Journal.read(shop.path).acts("shop", "search"))
    assert page.locator(".changes h2").inner_text().startswith(f"{len(acts)} changes")
    page.locator(".changes button").first.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.locator("table").wait_for()
    assert "Autoscaler shop/search at " in dialog.inner_text() and "value/target asks for this" in dialog.inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_best_and_advice_are_what_tune_finds(visit: Open, tmp_path: Path) -> None:
    """Three days of a workload on CPU, so that there is something to tune on."""
    journal, cache = Journal(tmp_path / "long.db"), ObjectName("HorizontalPodAutoscaler", "shop", "cache")
    load, policy = generate(LoadShape(peak=8, valley=0.3, noise=0.05, days=3, seed=4)), replace(PLAIN, signals=(CPU,))
    record(journal, cache, policy, load, ClusterSpec(), first_pods=6, start=START, seed=3)
    journal.close()
    with serving(tmp_path / "long.db") as at:
        advice = visit("advice", at)
        best = advice.locator("table tbody tr").last.locator("th, td").all_inner_texts()
        assert advice.locator("#verdict").inner_text().startswith(f"Better: {best[1]}. ")
        page = visit(f"#/whatif/{'/'.join(cache)}", at)
        page.get_by_role("button", name="Best", exact=True).click()
        expect(page.locator("#verdict")).to_contain_text("B is better")
        b = page.locator("main table").first.locator("tbody tr").last.locator("th, td").all_inner_texts()
    assert [text.split(" ↓")[0].split(" ↑")[0] for text in (b[5], b[2], b[3])] == best[2:5]


def test_what_if_shows_the_figures_of_the_backtest(visit: Open, shop: Shop) -> None:
    known = history_of(minutes_of(shop, ObjectName("Autoscaler", "shop", "web")))
    before, after = judge(known, present(known))[0], judge(known, present(known)._replace(target=0.5))[0]
    page = visit("whatif")
    page.locator("input[name=target]").fill(str(round((0.5 - 0.2) / 0.01)))
    page.locator("#verdict", has_text="all costs together").wait_for()
    rows = [row.split("\t") for row in page.locator("section.panel tbody tr").all_inner_texts()]
    assert (
        rows[1][3].strip() == f"{before.figures.violations:.2f} %"
        and rows[1][2].strip() == f"{before.figures.cost:.2f}"
    )
    assert rows[2][5].split()[0] == f"{after.figures.j:.2f}"
    expect(page.locator("pre").first).to_contain_text("averageValue: '50'")
    expect(page.locator("pre").nth(1)).to_contain_text("kubectl patch autoscaler web -n shop")


@pytest.mark.parametrize("view", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Open, view: str, scheme: str) -> None:
    page = visit(view, color_scheme=scheme, bypass_csp=True)
    page.add_script_tag(content=AXE.read_text())
    found = page.evaluate("axe.run()")
    serious = [
        f"{one['id']}: {one['nodes'][0]['html'][:120]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("view", PAGES)
def test_nothing_is_cut_off_on_a_phone(visit: Open, view: str) -> None:
    page = visit(view, viewport={"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_keys_alone_reach_a_workload_and_its_what_if(visit: Open) -> None:
    page = visit()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.get_by_role("searchbox").focus()
    page.keyboard.type("shop/web")
    expect(rows(page)).to_have_count(1)
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "shop/web":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector('main[data-ready="workload"]')
    page.get_by_role("link", name="What if", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('main[data-ready="whatif"]')
    page.locator("input[name=least]").focus()
    page.keyboard.press("ArrowRight")
    page.locator("#verdict", has_text="all costs together").wait_for()


def test_what_is_written_meanwhile_arrives_and_the_focus_stays(visit: Open, shop: Shop, copy: Path) -> None:
    with serving(copy) as address:
        page = visit(at=address)
        page.get_by_role("searchbox").fill("shop/web")
        expect(rows(page)).to_have_count(1)
        page.get_by_role("link", name="shop/web").focus()
        last = shop.ticks[ObjectName("Autoscaler", "shop", "web")][-1]
        journal = Journal(copy)
        journal.write([], [last._replace(at=last.at + 15, replicas=77, ready=76, planned=77)])
        journal.close()
        page.get_by_text("76/77").wait_for()
        expect(page.get_by_role("link", name="shop/web")).to_be_focused()


def test_a_journal_that_is_gone_is_said_and_comes_back(visit: Open, copy: Path) -> None:
    with serving(copy) as address:
        away = copy.rename(copy.with_suffix(".away"))
        page = visit(at=address)
        expect(page.get_by_role("alert")).to_contain_text("there is no such file")
        away.rename(copy)
        page.get_by_text("5 of 5 workloads").wait_for()


def test_a_report_works_from_a_file_without_a_network(chromium: Browser, tmp_path: Path) -> None:
    spec = {"minReplicas": 2, "maxReplicas": 60, "scaleTargetRef": TARGET}
    target = {"type": "AverageValue", "averageValue": "0.7"}
    metric = {"type": "External", "external": {"metric": {"name": "requests"}, "target": target}}
    manifest = {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": "web"},
        "spec": spec | {"metrics": [metric]},
    }
    (tmp_path / "web.json").write_text(json.dumps(manifest))
    page_file = tmp_path / "report.html"
    arguments = ("backtest", "-f", tmp_path / "web.json", "--load", "generate:diurnal,days=2", "--html", page_file)
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    said: list[str] = []
    for width in (1200, 390):
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme="dark", offline=True)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.goto(page_file.as_uri())
        page.wait_for_selector('main[data-ready="report"]')
        assert "above the optimum" in page.locator("#verdict").inner_text() and said == []
        assert page.get_by_role("rowheader", name="web").count() >= 1
        assert "clairvoyant optimum" in str(page.get_by_role("columnheader", name="regret").get_attribute("title"))
        assert page.locator(".canvas[role=img]").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        context.close()
