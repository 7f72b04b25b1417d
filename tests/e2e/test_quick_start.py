"""The quick start's part on a cluster: every command as the page prints it, typed in order on a real control plane."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bed import PATIENCE_S, Bed, eventually
from tests.bed.manifests import deployment
from tests.docs.blocks import FENCE
from tests.e2e.test_charts_operator import Operator
from tests.e2e.test_dashboard import own_address
from tests.e2e.test_handover import hpa, scalings
from tests.live.running import ROOT, replicas

PAGE = ROOT / "docs/quick-start.md"
# How each command begins, in the order of the page, and what it says.
SAYS = {
    "helm install trimtab deploy/trimtab": "STATUS: deployed",
    "kubectl rollout status": 'deployment "trimtab" successfully rolled out',
    "kubectl get hpa web": "",
    "kubectl apply -f web.yaml": "autoscaler.trimtab.dev/web",
    "kubectl get asc": "cpu: 50%/50%",
    "kubectl trimtab why web": "nothing has been changed yet: 4 replicas",
    "trimtab dashboard": "dashboard: http://localhost:",
}


def printed() -> list[str]:
    """The commands of the part about a cluster."""
    part = PAGE.read_text().partition("\n## 3. Your cluster")[2]
    lines = (line for _, text in FENCE.findall(part) for line in text.splitlines())
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


class Terminal:
    """Of somebody with a checkout, a kubeconfig, and trimtab, kubectl and helm on the PATH."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()
        (self.folder / "deploy").symlink_to(ROOT / "deploy")
        programs = [Path(sys.executable).parent, *(bed.binaries[name].parent for name in ("kubectl", "helm"))]
        self.env = os.environ | {"KUBECONFIG": str(bed.kubeconfig), "HOME": str(folder)}
        self.env |= {"PATH": ":".join([*map(str, programs), os.environ["PATH"]])}

    def type(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    @contextmanager
    def serving(self, command: str) -> Iterator[str]:
        """One that does not end by itself; on a port that is free, and without a browser."""
        words = [*command.split(), "--port", "0", "--no-open"]
        process = subprocess.Popen(words, cwd=self.folder, env=self.env, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.stdout.readline()
        finally:
            process.terminate()
            process.wait(60)


def stand_in_for_its_pods(bed: Bed, operator: Operator) -> None:
    """Nobody runs containers here: the Service leads to the process that was started in their place."""
    port = json.dumps([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": operator.port}])
    bed.kubectl("patch", "service", "trimtab", "-n", "trimtab", "--type=json", "-p", port)
    address = json.dumps({"status": {"podIP": own_address(), "podIPs": [{"ip": own_address()}]}})
    for pod in bed.get("pods", "-n", "trimtab")["items"]:
        name = pod["metadata"]["name"]
        bed.kubectl("patch", "pod", name, "-n", "trimtab", "--subresource=status", "--type=merge", "-p", address)
    health = "/api/v1/namespaces/trimtab/services/trimtab:8080/proxy/healthz"
    eventually(lambda: "ok" in bed.kubectl("get", "--raw", health), 120, "the operator behind its Service")


def test_the_page_prints_what_is_walked_here() -> None:
    commands = printed()
    assert len(commands) == len(SAYS)
    assert all(command.startswith(begins) for command, begins in zip(commands, SAYS, strict=True))


@pytest.mark.e2e
@pytest.mark.timeout(900)
def test_the_part_on_a_cluster_as_it_is_printed(tmp_path: Path) -> None:
    """On a control plane of its own, for it is installed for the whole cluster, in the namespaces of the page."""
    install, rollout, *asked, dashboard = printed()
    says = dict(zip(printed(), SAYS.values(), strict=True))
    with Bed.start() as bed:
        bed.kubectl("create", "namespace", "shop")
        bed.load("shop", "web", cores=1.0)  # half of four pods of 500m
        bed.apply(deployment("shop", "web", replicas=4, cpu="500m"), hpa("shop"))
        terminal = Terminal(bed, tmp_path / "checkout")
        assert says[install] in terminal.type(install)
        assert says[rollout] in terminal.type(rollout)
        operator = Operator(bed, "trimtab", tmp_path)
        operator.command.append(f"--listen=:{operator.port}")
        with operator:
            stand_in_for_its_pods(bed, operator)
            for command in asked:
                eventually(lambda: says[command] in terminal.type(command), 120, command, every_s=1)  # noqa: B023
            with terminal.serving(dashboard) as line:
                assert line.startswith(says[dashboard])
                with urllib.request.urlopen(f"{line.split()[1].rstrip('/')}/api/about", timeout=PATIENCE_S) as answer:
                    assert json.load(answer)["now"] > 0
        assert replicas(bed, "shop") == 4 and scalings(bed, "shop") == [], "in shadow, beside the HPA"
