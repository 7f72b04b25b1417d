"""The page over a live operator, through the API server with a user's own kubeconfig, and over its journal."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.bed import PATIENCE_S, Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import TRIMTAB, Running, autoscaler, install_crds, replicas, trimtab
from tests.web import browser
from tests.web.conftest import serving
from trimtab.core.explain import sentence
from trimtab.journal import HEALTH, Journal, ObjectName
from trimtab.kinds import read
from trimtab.kinds.annotations import API_CREDENTIAL
from trimtab.live.settings import OperatorSettings
from trimtab.sim.cluster_spec import ClusterSpec
from trimtab.sim.generate import LoadShape, generate
from trimtab.tune.recording import record
from trimtab.web.packing import PageTable
from trimtab.web.sources import JournalSource, base_query
from trimtab.web.whatif import History, history_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(browser.missing()), reason=browser.missing()),
]
SERVICE, PORT, VIEWER = "operator", 8080, "viewer"
QUEUE = {"metric": {"name": "queue_length", "selector": {"matchLabels": {"app": "web"}}}}
SPEC: dict[str, Any] = {
    "minReplicas": 1,
    "maxReplicas": 10,
    "metrics": [{"type": "External", "external": QUEUE | {"target": {"type": "AverageValue", "averageValue": "10"}}}],
    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 4}},
}
HOURS_BEFORE = 3
SECRET, TOKEN = "operator-api", "a token for tests"


def own_address() -> str:
    """Of this machine, as others see it: the API server proxies to no loopback address. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def publish(bed: Bed, namespace: str, *ports: int) -> None:
    """A Service whose endpoints are processes of this machine, each in the name of a pod."""
    address, subsets = own_address(), []
    for port in ports:
        name = f"operator-{port}"
        spec = {"schedulerName": "nobody", "containers": [{"name": "trimtab", "image": "example.test/trimtab:1"}]}
        bed.apply({"apiVersion": "v1", "kind": "Pod", "metadata": _meta(namespace, name), "spec": spec})
        status = json.dumps({"status": {"podIP": address, "podIPs": [{"ip": address}]}})
        bed.kubectl("patch", "pod", name, "-n", namespace, "--subresource=status", "--type=merge", "-p", status)
        pod = {"kind": "Pod", "name": name, "namespace": namespace}
        subsets.append({"addresses": [{"ip": address, "targetRef": pod}], "ports": [{"name": "http", "port": port}]})
    meta = _meta(namespace, SERVICE)
    kept = {"apiVersion": "v1", "kind": "Secret", "metadata": _meta(namespace, SECRET), "stringData": {"token": TOKEN}}
    bed.apply(kept)
    noted = meta | {"annotations": {API_CREDENTIAL: SECRET}}
    bed.apply(
        {"apiVersion": "v1", "kind": "Service", "metadata": noted, "spec": {"ports": [{"name": "http", "port": PORT}]}},
        {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets},
    )


def token_file(folder: Path) -> str:
    (folder / "token").write_text(f"{TOKEN}\n")
    return str(folder / "token")


def _meta(namespace: str, name: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace}


def viewer(bed: Bed, namespace: str) -> Path:
    """A user who may look at the page and do nothing else."""
    bed.kubectl("create", "serviceaccount", VIEWER, "-n", namespace)
    bed.kubectl("create", "role", VIEWER, "-n", namespace, "--verb=get", "--resource=services/proxy,services,secrets")
    account = f"--serviceaccount={namespace}:{VIEWER}"
    bed.kubectl("create", "rolebinding", VIEWER, "-n", namespace, f"--role={VIEWER}", account)
    return bed.kubeconfig_for(namespace, VIEWER)


def remember_hours(path: Path, namespace: str) -> None:
    """A journal with some hours in it: what an operator that starts now would have left."""
    start = time.time() - HOURS_BEFORE * 3600 - 60
    policy = read(autoscaler(namespace, **SPEC)).to_policy(start)  # type: ignore[attr-defined]
    load = generate(LoadShape(peak=70, valley=0.3, noise=0.05, days=1, seed=2))[: HOURS_BEFORE * 240]
    journal, cluster = Journal(path), ClusterSpec(startup_s=30, pod_capacity=10 / 0.7)
    record(journal, ObjectName("Autoscaler", namespace, "web"), policy, load, cluster, first_pods=3, start=start)
    journal.close()


def open_page(chromium: Browser, address: str, view: str) -> Page:
    page = chromium.new_page(viewport={"width": 1300, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(f"{address}/#/{view}")
    page.wait_for_selector('main[data-ready]:not([data-ready=""])')
    return page


@pytest.fixture
def chromium() -> Iterator[Browser]:
    with browser.chromium() as found:
        yield found


@pytest.fixture
def two_operators(bed: Bed, namespace: str, tmp_path: Path) -> Iterator[Running]:
    """One leads, one stands by; both are behind the same Service."""
    install_crds(bed)
    remember_hours(tmp_path / "journal.db", namespace)
    bed.load(namespace, "web", queue=40)
    bed.apply(deployment(namespace, "web", replicas=1), autoscaler(namespace, **SPEC))
    (tmp_path / "other").mkdir()
    leader, other = Running(bed, namespace, tmp_path), Running(bed, namespace, tmp_path / "other")
    for running in (leader, other):
        running.command += ["--listen", f":{running.port}", "--api-token-file", token_file(tmp_path)]
    publish(bed, namespace, leader.port, other.port)
    with leader:
        eventually(lambda: "leading" in leader.get("/readyz"), 60)
        other.start()
        try:
            eventually(lambda: "standing by" in other.get("/readyz"), 60)
            yield leader
        finally:
            other.stop()


@pytest.mark.smoke
def test_the_page_of_a_live_operator_says_what_its_journal_says(
    bed: Bed, namespace: str, two_operators: Running, chromium: Browser
) -> None:
    options = ("--operator", f"{namespace}/{SERVICE}", "--kubeconfig", str(viewer(bed, namespace)))
    eventually(lambda: replicas(bed, namespace) == 4, 120, "40 queued, 10 for each")
    name = f"Autoscaler/{namespace}/web"
    with serving(None, *options) as address:
        page = open_page(chromium, address, "fleet")
        page.locator("tr", has_text=f"{namespace}/web").get_by_text("4/4").wait_for()
        bed.load(namespace, "web", queue=60)
        page.locator("tr", has_text=f"{namespace}/web").get_by_text("6/6").wait_for()  # it arrives by itself
        page.goto(f"{address}/#/workload/{name}")
        page.get_by_text("6 ready of 6, from 1 to 10").wait_for()
        acts = changes(two_operators.journal, namespace)
        page.locator(".changes h2", has_text=f"{len(acts)} changes").wait_for()
        assert acts[-1] in page.locator(".changes button").first.inner_text()
        page.goto(f"{address}/#/health")
        page.get_by_text("Nobody else moves what trimtab moves.").wait_for()
        assert f"{OperatorSettings().api_per_s:g}/s" in page.locator(".card", has_text="API budget").inner_text()
        page.goto(f"{address}/#/whatif/{name}")
        page.locator("input[name=target]").wait_for()
        page.goto(f"{address}/#/advice/{name}")
        refusal = page.get_by_role("alert")
        refusal.wait_for()  # minutes of history are too few to tune on
        assert "needs" in refusal.inner_text(), refusal.inner_text()


def changes(journal: Path, namespace: str) -> list[str]:
    """What each change said, the oldest first."""
    found = Journal.read(journal)
    try:
        acts = [act for act in found.acts(namespace, "web") if act.outcome]
    finally:
        found.close()
    return [sentence(act.policy, act.seen, act.memory, act.decision) for act in acts]


def test_who_may_not_read_the_token_is_told_what_is_missing(bed: Bed, namespace: str, two_operators: Running) -> None:
    """The service proxy alone is not enough: the journal names the workloads of every tenant."""
    bed.kubectl("create", "serviceaccount", "proxied", "-n", namespace)
    bed.kubectl("create", "role", "proxied", "-n", namespace, "--verb=get", "--resource=services/proxy")
    account = f"--serviceaccount={namespace}:proxied"
    bed.kubectl("create", "rolebinding", "proxied", "-n", namespace, "--role=proxied", account)
    kubeconfig = bed.kubeconfig_for(namespace, "proxied")
    command = [*TRIMTAB, "dashboard", "--operator", f"{namespace}/{SERVICE}", "--kubeconfig", str(kubeconfig)]
    done = subprocess.run([*command, "--port", "0", "--no-open"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "token of the operator's Secret" in done.stderr


def test_who_may_not_look_is_told_so(bed: Bed, namespace: str, two_operators: Running) -> None:
    bed.kubectl("create", "serviceaccount", "stranger", "-n", namespace)
    stranger = bed.kubeconfig_for(namespace, "stranger")
    command = [*TRIMTAB, "dashboard", "--operator", f"{namespace}/{SERVICE}", "--kubeconfig", str(stranger)]
    done = subprocess.run([*command, "--port", "0", "--no-open"], capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 2 and "cannot get resource" in done.stderr and "services/proxy" in done.stderr


@pytest.mark.smoke
def test_the_journal_it_left_says_the_same_and_what_if_equals_the_backtest(
    bed: Bed, namespace: str, tmp_path: Path, chromium: Browser
) -> None:
    install_crds(bed)
    remember_hours(tmp_path / "journal.db", namespace)
    bed.load(namespace, "web", queue=40)
    bed.apply(deployment(namespace, "web", replicas=1), autoscaler(namespace, **SPEC))
    with Running(bed, namespace, tmp_path) as running:
        eventually(lambda: replicas(bed, namespace) == 4, 120, "40 queued, 10 for each")
        eventually(lambda: last_tick(running.journal, namespace)[:2] == (4, 4), 60)
    ready, wanted, load, capacity = last_tick(running.journal, namespace)
    with serving(running.journal) as address:
        page = open_page(chromium, address, "fleet")
        cells = page.locator("tr", has_text=f"{namespace}/web").locator("th, td").all_inner_texts()
        assert cells[2].startswith(f"{ready}/{wanted}")
        assert cells[3].replace("−", "-") == f"{100 * (1 - load / capacity):.0f} %"
        page.goto(f"{address}/#/whatif/Autoscaler/{namespace}/web")
        page.locator("input[name=target]").fill(str(round((0.5 - 0.2) / 0.01)))
        page.locator("#verdict", has_text="all costs together").wait_for()
        shown = [row.split("\t") for row in page.locator("section.panel tbody tr").all_inner_texts()][2]
        csv = page.evaluate(HISTORY)
        patch = yaml.safe_load(page.locator("pre").first.inner_text())
    found = Journal.read(running.journal)
    noted = found.noted(HEALTH)
    found.close()
    asked = base_query(ObjectName("Autoscaler", namespace, "web")._asdict())
    minutes = JournalSource(running.journal, "shop").answer("workload", asked)
    assert isinstance(minutes, PageTable)
    known = history_of(minutes)
    manifest = autoscaler(namespace, **SPEC)
    manifest["spec"] |= patch["spec"]
    figures = backtested(tmp_path, csv, manifest, known)
    assert [shown[1].split()[0], shown[2].split()[0]] == [f"{figures['podHours']:.4g}", f"{figures['cost']:.2f}"]
    assert shown[3].split(" %")[0].strip() == f"{figures['violations']:.2f}"
    assert noted is not None and json.loads(noted)["counts"]["conflicts"] == 0


HISTORY = "async () => await (await fetch(document.querySelector('a[download]').href)).text()"


def last_tick(path: Path, namespace: str) -> tuple[int, int, float, float]:
    journal = Journal.read(path)
    try:
        last = list(journal.ticks(namespace, "web"))[-1]
    finally:
        journal.close()
    assert last.load is not None and last.capacity is not None
    return last.ready, last.replicas, last.load, last.capacity


def backtested(folder: Path, csv: str, manifest: dict[str, Any], known: History) -> dict[str, float]:
    """`trimtab backtest` of what the page gave to take away."""
    (folder / "load.csv").write_text(csv)
    (folder / "web.yaml").write_text(yaml.safe_dump(manifest))
    words = ("-f", folder / "web.yaml", "--load", folder / "load.csv", "-o", "json")
    pod = ("--startup", f"{known.startup_s:g}s", "--pod-capacity", known.capacity)
    done = trimtab("backtest", *map(str, (*words, *pod)))
    assert done.returncode == 0, done.stderr
    figures: dict[str, float] = json.loads(done.stdout)["policies"][0]
    return figures
