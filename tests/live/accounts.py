"""Service accounts with exactly the permissions that the chart gives, so that a missing one shows."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bed import Bed

INSTANCE = "app.kubernetes.io/instance"  # the label that names the release
# Targets beyond the usual ones, as users may add.
OTHERS = [
    {"group": "", "resource": "replicationcontrollers"},
    {"group": "argoproj.io", "resource": "rollouts"},
]
CHART = Path(__file__).parents[2] / "deploy" / "trimtab"


def chart_account(bed: Bed, namespace: str, release: str = "trimtab", everywhere: bool = False) -> Path:
    """The kubeconfig of the service account of this release: Roles in its namespace, or a ClusterRole."""
    served = () if everywhere else ("--set", f"namespace={namespace}")
    rights = ("--set", "rights.templates=true", "--set", "rights.adoption=true")  # what users opt in to
    other = (*rights, "--set-json", f"targets={json.dumps(OTHERS)}")
    show = ("--namespace", namespace, "--show-only", "templates/rbac.yaml")
    words = ("template", release, str(CHART), *show, *served, *other)
    bed.kubectl("apply", "-n", namespace, "-f", "-", input=bed.helm(*words))
    name = release if "trimtab" in release else f"{release}-trimtab"
    return bed.kubeconfig_for(namespace, name)
