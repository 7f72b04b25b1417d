"""`trimtab handover` from a real HPA under load, and back: nothing is felt at either switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.e2e.test_dashboard import SERVICE, SPEC, publish, remember_hours, token_file
from tests.live.running import Running, install_crds, replicas, trimtab

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
WITHIN_S = 180
CALM_S = 25  # two scrapes and several syncs of both


def hpa(namespace: str) -> dict[str, Any]:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": namespace, "labels": {"team": "shop"}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 12,
            "metrics": [{"type": "Resource", "resource": cpu}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
        },
    }


def scalings(bed: Bed, namespace: str) -> list[tuple[str, int]]:
    """Every write of the scale: by whom, to how many."""
    return [
        (event["user"]["username"].rpartition(":")[2], event["requestObject"]["spec"]["replicas"])
        for event in bed.audit()
        if event["verb"] in ("update", "patch")
        and event["responseStatus"]["code"] == 200
        and event["objectRef"].get("subresource") == "scale"
        and event["objectRef"].get("namespace") == namespace
    ]


def test_there_and_back_under_load(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    env = {"KUBECONFIG": str(bed.kubeconfig)}
    word = f"{namespace}/web"
    bed.load(namespace, "web", cores=1.0)  # half of four pods of 500m
    bed.apply(deployment(namespace, "web", replicas=4, cpu="500m"), hpa(namespace))
    ready_pods(bed, namespace, 4)
    with Running(bed, namespace, tmp_path):
        done = trimtab("handover", word, env=env)
        assert done.returncode == 0 and "watches in Shadow beside" in done.stdout, done.stderr
        early = trimtab("handover", word, "--take", env=env)
        assert early.returncode == 1 and "not handed over" in early.stderr, early.stderr

        def taken() -> bool:
            tried = trimtab("handover", word, "--take", env=env)
            assert tried.returncode == 0, tried.stderr
            return True

        before = scalings(bed, namespace)
        eventually(taken, WITHIN_S, "handed over", every_s=3)
        always(lambda: replicas(bed, namespace) == 4, CALM_S, "four replicas after the switch")
        assert scalings(bed, namespace) == before, "nobody wrote a scale"
        assert "hpa" not in bed.kubectl("get", "hpa", "-n", namespace, "-o", "name")

        bed.load(namespace, "web", cores=2.0)
        eventually(lambda: replicas(bed, namespace) == 8, WITHIN_S, "ours scales")
        ready_pods(bed, namespace, 8)
        always(lambda: replicas(bed, namespace) == 8, CALM_S, "eight replicas")
        ours = scalings(bed, namespace)
        assert ours[-1][1] == 8 and ours[-1][0] != "horizontal-pod-autoscaler"
        done = trimtab("handover", word, "--back", env=env)
        assert done.returncode == 0 and "scales again" in done.stdout, done.stderr
        always(lambda: replicas(bed, namespace) == 8, CALM_S, "eight replicas after the switch back")
        assert scalings(bed, namespace) == ours, "nobody wrote a scale"
        returned = bed.get("hpa", "web", "-n", namespace)
        assert returned["spec"] == hpa(namespace)["spec"] | {"behavior": returned["spec"]["behavior"]}
        assert returned["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 30
        assert returned["metadata"]["labels"] == {"team": "shop"}

        bed.load(namespace, "web", cores=1.0)
        eventually(lambda: replicas(bed, namespace) == 4, WITHIN_S, "the HPA scales")
        assert scalings(bed, namespace)[-1] == ("horizontal-pod-autoscaler", 4)


def test_the_comparison_asks_the_operator_through_the_api_server(bed: Bed, namespace: str, tmp_path: Path) -> None:
    """What it did and what ours would have done, over hours of a journal: the same as from the file itself."""
    install_crds(bed)
    remember_hours(tmp_path / "journal.db", namespace)
    bed.load(namespace, "web", queue=40)
    other = hpa(namespace)
    other["spec"] = {"scaleTargetRef": other["spec"]["scaleTargetRef"]} | SPEC
    bed.apply(deployment(namespace, "web", replicas=4), other)
    running = Running(bed, namespace, tmp_path)
    running.command += ["--listen", f":{running.port}", "--api-token-file", token_file(tmp_path)]
    publish(bed, namespace, running.port)
    env = {"KUBECONFIG": str(bed.kubeconfig)}

    def compared(*source: str) -> str:
        done = trimtab("handover", f"{namespace}/web", *source, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with running:
        assert "watches in Shadow beside" in compared()
        asked = ("--operator", f"{namespace}/{SERVICE}")
        said = eventually(lambda: compared(*asked), WITHIN_S, "the operator compares", every_s=2)
        assert "HorizontalPodAutoscaler" in said and f"Autoscaler {namespace}/web would have" in said
        assert "VIOLATIONS" in said and "days, each judged by the same load" in said
        # Both look at a journal that goes on meanwhile.
        eventually(lambda: compared(*asked) == compared("--journal", str(running.journal)), WITHIN_S, every_s=2)
