"""Bed: a real control plane on this machine, for tests and for `make cluster`.

etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok (fake kubelets), metrics-server and
Prometheus are the real ones; the load server plays the metrics of kubelets and applications in a closed loop
with the pods.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.bed import build, manifests
from tests.bed.parts import BINARIES, PARTS, PORTS, Site, write_kubeconfig
from tests.bed.ports import free_ports, is_free
from tests.bed.processes import DETACHED, Processes
from tests.bed.waiting import PATIENCE_S, eventually

NAMED_BY = "TRIMTAB_BED"  # the environment variable that names the bed of a test run
SHARED = "default"  # the bed of `make cluster`


class Bed:
    """One running control plane; make one with `start` or `attach`, never directly."""

    def __init__(self, processes: Processes) -> None:
        state = processes.read()
        self.processes = processes
        self.binaries = {name: Path(path) for name, path in state["binaries"].items()}
        self.site = Site(processes.directory, state["ports"], self.binaries)
        self.directory = processes.directory
        self.kubeconfig = self.site.kubeconfig("admin")
        self.audit_log = self.directory / "audit.log"
        self.api_url = self.site.api_url
        self.prometheus_url = f"http://127.0.0.1:{state['ports']['prometheus']}"
        self.load_url = f"http://127.0.0.1:{state['ports']['load']}"

    @classmethod
    def start(
        cls, parts: tuple[str, ...] = PARTS, name: str | None = None, detached: bool = False, nodes: int = 3
    ) -> Bed:
        """Starts the named parts, and always etcd and the API server, in a folder of their own."""
        sweep()
        wanted = [part for part in PARTS if part in (*parts, "etcd", "apiserver")]
        needed = {binary for part in wanted for binary in BINARIES[part]}
        if set(wanted) == set(PARTS):
            needed = set(build.USUAL)
        binaries = {name: str(path) for name, path in build.binaries(tuple(needed)).items()}
        processes = Processes(beds_dir() / (name or f"{os.getpid()}-{time.monotonic_ns()}"))
        ports = dict(zip(PORTS, free_ports(), strict=False))
        processes.create(os.getpid() * (not detached) or DETACHED, ports=ports, binaries=binaries)
        bed = cls(processes)
        try:
            bed._bring_up(wanted, nodes)
        except BaseException:
            bed.stop()
            raise
        return bed

    @classmethod
    def attach(cls) -> Bed | None:
        """The bed that the environment names, else that of `make cluster`, if its API server runs."""
        processes = Processes(beds_dir() / os.environ.get(NAMED_BY, SHARED))
        running = processes.file.exists() and processes.pid("apiserver") is not None
        return cls(processes) if running else None

    def stop(self) -> None:
        """Ends what this bed started and removes its folder."""
        self.processes.stop_all()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Bed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Single parts, for the tests that break things.

    def start_part(self, part: str, *flags: str) -> None:
        """With these flags after its own: the last of a name counts."""
        # A killed process loses its command line, by which it is known, before its ports.
        eventually(lambda: is_free(self.site.ports[part]), 10, f"the port of {part} free")
        self.processes.start(part, [*self.site.command(part), *flags])
        self.await_ready(part)

    def stop_part(self, part: str, number: signal.Signals = signal.SIGKILL) -> None:
        self.processes.stop(part, number)

    def restart_apiserver(self, number: signal.Signals = signal.SIGKILL) -> None:
        self.stop_part("apiserver", number)
        self.start_part("apiserver")

    def signal_part(self, part: str, number: signal.Signals) -> None:
        """SIGSTOP and SIGCONT freeze and thaw a part."""
        self.processes.send(part, number)

    def await_ready(self, part: str) -> None:
        url = self.site.ready_url(part)

        def answers() -> bool:
            if self.processes.pid(part) is None:
                raise RuntimeError(f"{part} ended; its log ends with\n{self.processes.log_tail(part)}")
            with urllib.request.urlopen(url, timeout=30, context=_UNVERIFIED) as response:
                return bool(response.status == 200)

        eventually(answers, PATIENCE_S, f"{part} at {url} ready")

    # Talking to it.

    def kubectl(self, *args: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        return self._run("kubectl", *args, input=input, kubeconfig=kubeconfig)

    def helm(self, *args: str, kubeconfig: Path | None = None) -> str:
        return self._run("helm", *args, kubeconfig=kubeconfig)

    def get(self, *args: str) -> Any:
        """`kubectl get ... -o json`, parsed."""
        return json.loads(self.kubectl("get", *args, "-o", "json"))

    def apply(self, *manifests: dict[str, Any]) -> None:
        document = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "-f", "-", input=json.dumps(document))

    def kubeconfig_for(self, namespace: str, service_account: str) -> Path:
        """A kubeconfig with a token of that service account, so that missing permissions show."""
        token = self.kubectl("create", "token", service_account, "-n", namespace, "--duration=8h").strip()
        path = self.directory / f"{namespace}.{service_account}.kubeconfig"
        write_kubeconfig(path, self.api_url, self.directory / "pki" / "ca.crt", token)
        return path

    def load(self, namespace: str, app: str, **script: Any) -> None:
        """Sets the load of all pods labelled app=APP in NAMESPACE together; load.py lists the words."""
        self.loads([{"namespace": namespace, "app": app, **script}])

    def loads(self, scripts: list[dict[str, Any]]) -> None:
        """Of many workloads in the same moment; each names its `namespace` and `app`."""
        self._post("/load", scripts)

    def prometheus_lane(self, lane: str) -> str:
        """The address of a proxy to Prometheus of its own, which `fault(lane, ...)` can make fail."""
        return f"{self.load_url}/prometheus/{lane}"

    def fault(self, lane: str, kind: str | None, seconds: float = 0) -> None:
        self._post("/fault", {"lane": lane, "kind": kind, "seconds": seconds})

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query to Prometheus."""
        form = urllib.parse.urlencode({"query": expression}).encode()
        with urllib.request.urlopen(f"{self.prometheus_url}/api/v1/query", form, timeout=PATIENCE_S) as response:
            result: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return result

    def usage_from_prometheus(self) -> None:
        """From now on the usage of pods is as fresh as Prometheus, not as metrics-server; see adapter.py."""
        self.apply(manifests.resource_metrics(self.site.ports["load-tls"]))

    def audit(self) -> Iterator[dict[str, Any]]:
        """What the API server has recorded so far, in its order; the policy is audit.yaml."""
        with self.audit_log.open() as lines:
            yield from (json.loads(line) for line in lines if line.endswith("\n"))

    def _run(self, binary: str, *args: str, input: str | None = None, kubeconfig: Path | None = None) -> str:
        command = [str(self.binaries[binary]), *args]
        env = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig or self.kubeconfig),
            "HELM_CACHE_HOME": str(self.directory),
        }
        done = subprocess.run(command, input=input, env=env, capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, [binary, *args], done.stdout, done.stderr)
        return done.stdout

    def _post(self, path: str, body: object) -> None:
        request = urllib.request.Request(
            self.load_url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        except urllib.error.HTTPError as error:
            raise ValueError(f"POST {path} {body}: {error.read().decode()}") from None

    def _bring_up(self, parts: list[str], nodes: int) -> None:
        self.site.prepare()
        for part in ("etcd", "apiserver"):
            self.start_part(part)
        rest = [part for part in parts if part not in ("etcd", "apiserver")]
        for part in rest:  # side by side: each waits for the API server by itself
            self.processes.start(part, self.site.command(part))
        if "kwok" in rest:
            self.apply(*(manifests.node(f"node-{index}", self.site.ports["load-tls"]) for index in range(nodes)))
        if "metrics-server" in rest:
            self.apply(*manifests.metrics_apis(self.site.ports))
        for part in rest:
            self.await_ready(part)


def beds_dir() -> Path:
    return build.cache_dir() / "run"


def sweep() -> None:
    """Ends beds whose owner is gone: a test run that was killed leaves nothing behind for long."""
    beds_dir().mkdir(parents=True, exist_ok=True)
    with (beds_dir() / "sweep.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for file in beds_dir().glob("*/state.json"):
            processes = Processes(file.parent)
            with suppress(FileNotFoundError):  # its owner has just taken it away
                if processes.abandoned():
                    processes.stop_all()
                    shutil.rmtree(file.parent, ignore_errors=True)


_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE
