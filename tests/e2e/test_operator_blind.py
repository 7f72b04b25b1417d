"""Half blind: one metric of several is gone, an application stops telling, a whole fleet falls at once."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.live.accounts import chart_account
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas

pytestmark = pytest.mark.e2e
TICK_S, WINDOW_S = 2, 4
SOON_S = 40
TWENTY_EACH = {"type": "AverageValue", "averageValue": "20"}


def requests(namespace: str, app: str) -> dict[str, Any]:
    """From Prometheus: 20 requests a second for each replica."""
    query = f'sum(requests_per_second{{namespace="{namespace}",app="{app}"}})'
    return {"type": "Prometheus", "prometheus": {"query": query, "target": TWENTY_EACH}}


def queue(app: str) -> dict[str, Any]:
    """From the external metrics API, which goes on when Prometheus fails."""
    name = {"name": "queue_length", "selector": {"matchLabels": {"app": app}}}
    return {"type": "External", "external": {"metric": name, "target": TWENTY_EACH}}


class Shop:
    """A namespace with an operator whose Prometheus is a lane of its own."""

    def __init__(self, bed: Bed, namespace: str, operator: Running) -> None:
        self.bed, self.namespace, self.operator = bed, namespace, operator

    def open(self, name: str, rate: float, count: int = 1, **spec: Any) -> None:
        self.bed.load(self.namespace, name, rate=rate)
        behavior = {"scaleDown": {"stabilizationWindowSeconds": WINDOW_S}}
        full = {"metrics": [requests(self.namespace, name)], "behavior": behavior} | spec
        self.bed.apply(deployment(self.namespace, name, replicas=count), autoscaler(self.namespace, name, **full))

    def load(self, name: str, **script: Any) -> None:
        self.bed.load(self.namespace, name, **script)

    def fault(self, kind: str | None) -> None:
        self.bed.fault(self.namespace, kind)

    def replicas(self, name: str) -> int:
        return replicas(self.bed, self.namespace, name)

    def becomes(self, name: str, count: int) -> None:
        eventually(lambda: self.replicas(name) == count, SOON_S, f"{name} with {count} replicas")

    def stays(self, name: str, count: int) -> None:
        always(lambda: self.replicas(name) == count, WINDOW_S + 3 * TICK_S, f"{name} with {count} replicas")

    def says(self, name: str, kind: str, status: str, reason: str) -> str:
        def said() -> str:
            one = conditions(self.bed, self.namespace, name)[kind]
            assert (one["status"], one["reason"]) == (status, reason), one
            return str(one["message"])

        return eventually(said, SOON_S, f"{kind}={status} ({reason}) of {name}")

    def warnings(self, name: str, reason: str) -> list[str]:
        fields = f"--field-selector=type=Warning,involvedObject.name={name},reason={reason}"
        return [one["message"] for one in self.bed.get("events", "-n", self.namespace, fields)["items"]]


@pytest.fixture(scope="module")
def shop(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    install_crds(bed)
    name = f"blind-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", name)
    account, folder = chart_account(bed, name), tmp_path_factory.mktemp("operator")
    options = ("--prometheus", bed.prometheus_lane(name), "--tick", f"{TICK_S}s", "--breaker-window", "14s")
    with Running(bed, name, folder, *options, kubeconfig=account) as running:
        yield Shop(bed, name, running)
    bed.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("fault", ["nan", "silent"])
def test_no_decrease_while_the_application_itself_is_silent(shop: Shop, fault: str) -> None:
    """Prometheus is well; what it scrapes is not, at the moment the load falls."""
    name = f"app-{fault}"
    shop.open(name, rate=100)
    shop.becomes(name, 5)
    shop.says(name, "ScalingActive", "True", "ValidMetricFound")
    before = shop.warnings(name, "FailedGetPrometheusMetric")  # of the first moments, without a series
    shop.load(name, rate=20, fault=fault)
    shop.says(name, "ScalingActive", "False", "FailedGetPrometheusMetric")
    shop.stays(name, 5)
    assert len(shop.warnings(name, "FailedGetPrometheusMetric")) == len(before) + 1, "said once, however long it lasts"
    shop.load(name, rate=20)
    shop.becomes(name, 1)


def test_with_one_metric_missing_the_others_may_raise_and_not_lower(shop: Shop) -> None:
    shop.open("both", rate=40, metrics=[requests(shop.namespace, "both"), queue("both")])
    shop.becomes("both", 2)
    shop.fault("die")
    shop.load("both", rate=20, queue=80)
    shop.becomes("both", 4)
    shop.load("both", rate=20, queue=20)
    shop.says("both", "ScalingActive", "False", "FailedGetPrometheusMetric")
    shop.stays("both", 4)
    shop.fault(None)
    shop.becomes("both", 1)


def test_the_fleet_breaker_holds_decreases_only_and_says_so(shop: Shop) -> None:
    names = [f"fleet-{index}" for index in range(12)]
    for name in names:
        shop.open(name, rate=60, count=3)
    for name in names:
        shop.says(name, "ScalingActive", "True", "ValidMetricFound")
    for name in names:
        shop.load(name, rate=[[0, 60], [4, 60], [4.001, 10]])  # all at once
    eventually(lambda: "trimtab_breaker_open 1" in shop.operator.get("/metrics"), SOON_S, every_s=0.05)
    shop.load(names[0], rate=100)
    shop.becomes(names[0], 5)
    assert {shop.replicas(name) for name in names[1:]} == {3}
    assert "metrics are doubted" in shop.says(names[1], "AbleToScale", "False", "FleetBreaker")
    assert shop.warnings(names[1], "FleetBreaker")
    assert f'name="{names[1]}",reason="FleetBreaker"}} 1' in shop.operator.get("/metrics")
    for name in names[1:]:
        shop.becomes(name, 1)


def set_rules(bed: Bed, namespace: str, rules: list[dict[str, Any]]) -> None:
    """What the operator may do there, from the next request on."""
    patch = json.dumps([{"op": "replace", "path": "/rules", "value": rules}])
    bed.kubectl("patch", "role", "trimtab", "-n", namespace, "--type=json", "-p", patch)


def scalings(bed: Bed, namespace: str) -> list[int]:
    """By the API server's own list of requests."""
    abouts = [(event, event.get("objectRef") or {}) for event in bed.audit() if event["verb"] == "patch"]
    return [
        event["requestObject"]["spec"]["replicas"]
        for event, about in abouts
        if (about.get("namespace"), about.get("subresource")) == (namespace, "scale")
        and event["responseStatus"]["code"] == 200
    ]


@pytest.mark.disruptive  # the API server restarts, which ends every watch
@pytest.mark.timeout(600)
def test_no_decrease_while_pods_may_no_longer_be_seen(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """H3: what was known of pods at the first sync is old; it may raise, and nothing else. 125m are half of a pod."""
    install_crds(bed)
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    account = chart_account(bed, namespace)
    rules = bed.get("role", "trimtab", "-n", namespace)["rules"]
    bed.load(namespace, "web", cores=0.36)
    bed.apply(deployment(namespace, "web", replicas=3), autoscaler(namespace, behavior=at_once))
    ready_pods(bed, namespace, 3)
    with Running(bed, namespace, tmp_path, kubeconfig=account) as running:
        shop = Shop(bed, namespace, running)
        shop.says("web", "ScalingActive", "True", "ValidMetricFound")
        set_rules(
            bed, namespace, [rule for rule in rules if not (rule["apiGroups"] == [""] and "pods" in rule["resources"])]
        )
        bed.restart_apiserver()
        eventually(lambda: "pods: " in running.get("/readyz"), 120, "who asks is told that pods are not followed")
        assert "forbidden" in running.get("/readyz")
        bed.load(namespace, "web", cores=0.6)
        eventually(lambda: replicas(bed, namespace) > 3, 120, "more is given all the same")
        bed.load(namespace, "web", cores=0.1)
        assert "pods are not up to date" in shop.says("web", "AbleToScale", "False", "StaleView")
        held = replicas(bed, namespace)
        always(lambda: replicas(bed, namespace) == held, 10, "no decrease")
        assert scalings(bed, namespace) == sorted(scalings(bed, namespace)), "nothing but increases"
        set_rules(bed, namespace, rules)
        eventually(lambda: replicas(bed, namespace) == 1, 120, "they are seen again")
        eventually(lambda: running.get("/readyz").startswith("ok, leading"), 60)
