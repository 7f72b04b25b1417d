"""The operator on a real control plane: it scales, says why, and touches only what it may."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.live.running import Running, autoscaler, conditions, install_crds, replicas, trimtab
from trimtab.journal_replay import replay

pytestmark = pytest.mark.e2e
SCALED_WITHIN_S = 60


@pytest.fixture
def operator(bed: Bed, namespace: str, tmp_path: Path) -> Iterator[Running]:
    install_crds(bed)
    with Running(bed, namespace, tmp_path) as running:
        yield running


@pytest.mark.smoke
def test_it_scales_a_deployment_and_says_so(bed: Bed, namespace: str, operator: Running) -> None:
    bed.apply(deployment(namespace, "web", replicas=2, cpu="250m"), autoscaler(namespace))
    bed.load(namespace, "web", cores=0.5)  # / (50 % of 0.25) = 4
    eventually(lambda: replicas(bed, namespace) == 4, SCALED_WITHIN_S, "4 replicas")
    eventually(lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["currentReplicas"] == 4, 10)
    found = eventually(lambda: conditions(bed, namespace), 10)
    assert {
        kind: one["status"] for kind, one in found.items() if kind in ("AbleToScale", "ScalingActive", "Ready")
    } == {
        "AbleToScale": "True",
        "ScalingActive": "True",
        "Ready": "True",
    }
    rescaled = ("get", "events", "-n", namespace, "--field-selector=reason=SuccessfulRescale")
    eventually(lambda: "New size: 4" in bed.kubectl(*rescaled), 10)
    assert operator.stop() == 0
    assert replay(operator.journal).checked >= 1
    assert replay(operator.journal).differences == ()


def test_nothing_is_written_when_nothing_changes(bed: Bed, namespace: str, operator: Running) -> None:
    bed.apply(deployment(namespace, "web", replicas=4, cpu="250m"), autoscaler(namespace))
    bed.load(namespace, "web", cores=0.5)
    eventually(lambda: conditions(bed, namespace)["ScalingActive"]["status"] == "True", SCALED_WITHIN_S)
    before = bed.get("autoscaler", "web", "-n", namespace)["metadata"]["resourceVersion"]
    always(lambda: replicas(bed, namespace) == 4, 8)
    after = bed.get("autoscaler", "web", "-n", namespace)["metadata"]["resourceVersion"]
    assert after == before


def test_kubectl_shows_it_as_hpa_users_know_it(bed: Bed, namespace: str, operator: Running) -> None:
    bed.apply(deployment(namespace, "web", replicas=4, cpu="250m"), autoscaler(namespace))
    bed.load(namespace, "web", cores=0.5)
    eventually(lambda: "cpu: 50%/50%" in bed.kubectl("get", "autoscaler", "-n", namespace), SCALED_WITHIN_S)
    header, row = bed.kubectl("get", "asc", "-n", namespace).splitlines()
    assert header.split()[:4] == ["NAME", "REFERENCE", "TARGETS", "MINPODS"] and row.split()[0] == "web"
    described = bed.kubectl("describe", "autoscaler", "web", "-n", namespace)
    assert "ValidMetricFound" in described and "Current Replicas" in described
    assert "scaleTargetRef" in bed.kubectl("explain", "autoscaler.spec")
    found = trimtab("explain", f"{namespace}/web", "--journal", str(operator.journal))
    assert found.returncode == 0 and "Nothing asked for a change" in found.stdout, "it has not moved"


@pytest.mark.smoke
def test_it_ends_within_the_grace_of_a_pod_and_gives_the_lease_back(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    with Running(bed, namespace, tmp_path) as running:
        eventually(lambda: "leading" in running.get("/readyz"), 20)
        assert "trimtab_leader 1" in running.get("/metrics") and running.get("/healthz") == "ok\n"
        assert running.stop(within_s=30) == 0
    assert bed.get("lease", "trimtab", "-n", namespace)["spec"]["holderIdentity"] == ""
