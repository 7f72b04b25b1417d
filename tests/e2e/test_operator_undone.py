"""Somebody, GitOps for one, puts a template back twice: its requests rest for a day, and the writer is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bed import Bed, always, eventually
from tests.bed.manifests import deployment
from tests.e2e.test_bed import ready_pods
from tests.e2e.test_operator_sizes import QUICK, SIZED_WITHIN_S, milli, template_cpu, vertical_only
from tests.live.running import Running, conditions, install_crds

pytestmark = pytest.mark.e2e


def test_a_template_that_somebody_puts_back_twice_is_left_alone(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=0.4)
    bed.apply(deployment(namespace, "web", cpu="100m"), vertical_only(namespace, apply="Recreate"))
    ready_pods(bed, namespace, 1)
    with Running(bed, namespace, tmp_path, *QUICK):
        git = ("--server-side", "--force-conflicts", "--field-manager=argocd-controller", "-f", "-")
        for _ in range(2):
            eventually(lambda: milli(template_cpu(bed, namespace)) > 400, SIZED_WITHIN_S)
            eventually(lambda: bed.get("autoscaler", "web", "-n", namespace)["status"]["memory"].get("patched"), 20)
            bed.kubectl("apply", *git, input=json.dumps(deployment(namespace, "web", cpu="100m")))

        def said() -> str | None:
            one = conditions(bed, namespace)["Reverted"]
            return str(one["message"]) if one["status"] == "True" else None

        message = eventually(said, 20)
        assert message and "argocd-controller puts the requests back" in message and "for 1d" in message
        always(lambda: template_cpu(bed, namespace) == "100m", 6)
