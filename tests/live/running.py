"""An operator as a process of its own, under the chart's service account, serving one namespace of the bed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bed import PATIENCE_S, Bed, eventually
from tests.bed.ports import free_port
from tests.live.accounts import INSTANCE, chart_account
from tests.live.process import ServingProcess
from trimtab.journal_replay import replay
from trimtab.kinds.crd import CRDS, definitions

ROOT = Path(__file__).parents[2]
TRIMTAB = [sys.executable, "-c", "from trimtab.cli import main; main()"]


def trimtab(*args: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """A command of ours, run to its end."""
    return subprocess.run(
        [*TRIMTAB, *args], capture_output=True, text=True, cwd=ROOT, env=os.environ | (env or {}), timeout=PATIENCE_S
    )


def install_crds(bed: Bed) -> None:
    """Ours, as `trimtab crds` prints them; installing them again changes nothing."""
    items = {"apiVersion": "v1", "kind": "List", "items": definitions()}
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=json.dumps(items))
    for one in CRDS:
        bed.kubectl("wait", "--for=condition=Established", f"crd/{one.name}", "--timeout=300s")


class Running(ServingProcess):
    """`with Running(bed, namespace, tmp_path)`: started, ready, ended with SIGTERM, and its journal replayed."""

    def __init__(self, bed: Bed, namespace: str, folder: Path, *options: str, kubeconfig: Path | None = None) -> None:
        port = free_port()
        self.journal = folder / "journal.db"
        self.bed, self.release = bed, "" if kubeconfig else f"trimtab-{namespace}-{port}"
        account = kubeconfig or chart_account(bed, namespace, self.release, everywhere=True)
        words = {"--kubeconfig": account, "--namespace": namespace, "--tick": "1s"}
        words |= {"--journal": self.journal, "--listen": f"127.0.0.1:{port}", "--prometheus": bed.prometheus_url}
        words |= {"--scrape-interval": "30s"}
        command = [*TRIMTAB, "run", *(str(part) for pair in words.items() for part in pair), *options]
        super().__init__(command, port, folder / f"operator-{port}.log")

    def __enter__(self) -> Running:
        self.start()
        try:
            eventually(lambda: self.get("/readyz").startswith("ok"), 120, "the operator is ready", every_s=0.2)
        except TimeoutError as error:
            self.kill()
            raise TimeoutError(f"{error}\n{self.last_words()}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            eventually(self.journal.exists, 120, "a tick is in the journal", every_s=0.2)
        self.stop()
        if self.release:
            self.bed.kubectl("delete", "clusterrole,clusterrolebinding", "-l", f"{INSTANCE}={self.release}")
        if kind is not None:
            print(self.last_words())
        else:
            assert replay(self.journal).differences == (), "every run's journal replays clean"

    def start(self, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> None:
        super().start(cwd, env)


def autoscaler(namespace: str, name: str = "web", **spec: Any) -> dict[str, Any]:
    """An Autoscaler of CPU at 50 % for the Deployment of the same name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    full = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 10}
    full |= {"metrics": [{"type": "Resource", "resource": cpu}]} | spec
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": name, "namespace": namespace},
        "spec": full,
    }


def replicas(bed: Bed, namespace: str, name: str = "web") -> int:
    found: int = bed.get("deployment", name, "-n", namespace)["spec"]["replicas"]
    return found


def conditions(bed: Bed, namespace: str, name: str = "web", kind: str = "autoscaler") -> dict[str, dict[str, Any]]:
    status = bed.get(kind, name, "-n", namespace).get("status", {})
    return {one["type"]: one for one in status.get("conditions", [])}
