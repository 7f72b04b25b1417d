"""`trimtab doctor` on a real API server: what it finds with all rights, and with none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bed import Bed
from tests.bed.manifests import deployment
from tests.live.running import install_crds

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

TRIMTAB = str(Path(sys.executable).with_name("trimtab"))


def examined(kubeconfig: Path, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The checks and the abilities by their names."""
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    done = subprocess.run([TRIMTAB, "doctor", "-o", "json", *options], capture_output=True, text=True, env=environment)
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == int(any(each["missing"] for each in found["works"]))
    return {each["name"]: each for each in found["checks"]}, {each["name"]: each for each in found["works"]}


def test_an_administrator_is_told_what_there_is(bed: Bed, namespace: str) -> None:
    install_crds(bed)
    bed.apply(deployment(namespace, "web", replicas=1))
    address = bed.prometheus_lane("doctor")
    checks, works = examined(bed.kubeconfig, "-n", namespace, "--prometheus", address)
    assert checks["workloads"]["found"] == "1 deployments"
    assert [name for name in ("version", "definitions", "clock", "prometheus") if not checks[name]["ok"]] == []
    assert works["scaling by Prometheus queries"]["missing"] == []


def test_somebody_without_rights_is_told_which_are_missing(bed: Bed, namespace: str) -> None:
    bed.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    checks, works = examined(bed.kubeconfig_for(namespace, "nobody"), "-n", namespace)
    assert checks["version"]["ok"]
    assert checks["workloads"]["found"] == "deployments refused (403)"
    assert works["recommend for this cluster"]["missing"][0] == "workloads"
