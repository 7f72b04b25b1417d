"""`trimtab freeze` on the real control plane: nothing is written any more, sizes in force go back, and on again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.e2e.test_operator_sizes import QUICK, SIZED_WITHIN_S, cpus, milli, vertical_only
from tests.live.running import Running, autoscaler, install_crds, replicas, trimtab

pytestmark = pytest.mark.e2e


def test_freeze_stops_every_write_and_unfreeze_goes_on(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    words = ("-n", namespace, "--kubeconfig", str(bed.kubeconfig))
    bed.load(namespace, "web", cores=0.5)
    bed.apply(deployment(namespace, "web", replicas=4, cpu="250m"), autoscaler(namespace))
    ready_pods(bed, namespace, 4)
    with Running(bed, namespace, tmp_path) as running:
        eventually(lambda: bed.get("autoscaler", "web", "-n", namespace).get("status"), 30)
        done = trimtab("freeze", *words)
        assert done.returncode == 0 and "frozen" in done.stdout, done.stderr
        eventually(lambda: "FROZEN" in running.get("/readyz"), 20)
        eventually(lambda: bed.get("autoscaler", "web", "-n", namespace)["status"].get("mode") == "Frozen", 30)
        version = bed.get("autoscaler", "web", "-n", namespace)["metadata"]["resourceVersion"]
        bed.load(namespace, "web", cores=2.0)
        eventually(lambda: 'trimtab_desired_replicas{kind="Autoscaler"' in running.get("/metrics"), 20)
        always(lambda: replicas(bed, namespace) == 4, 10)
        assert bed.get("autoscaler", "web", "-n", namespace)["metadata"]["resourceVersion"] == version
        table = bed.kubectl("get", "autoscaler", "-n", namespace)
        assert "Frozen" in table
        assert trimtab("unfreeze", *words).returncode == 0
        eventually(lambda: replicas(bed, namespace) > 4, 60)


def test_freeze_with_undo_takes_sizes_in_force_back(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.8)
    bed.apply(deployment(namespace, "web", replicas=2, cpu="100m"), vertical_only(namespace))
    ready_pods(bed, namespace, 2)
    with Running(bed, namespace, tmp_path, *QUICK):
        eventually(lambda: all(milli(cpu) > 300 for cpu in cpus(bed, namespace).values()), SIZED_WITHIN_S)
        eventually(lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["memory"].get("sizes"), 30)
        done = trimtab("freeze", "--undo", "-n", namespace, "--kubeconfig", str(bed.kubeconfig))
        assert done.returncode == 0 and "back to the size of their template" in done.stdout, done.stderr
        eventually(lambda: {milli(cpu) for cpu in cpus(bed, namespace).values()} == {100}, 30)
        always(lambda: {milli(cpu) for cpu in cpus(bed, namespace).values()} == {100}, 6)
