"""What a fleet costs: processes by /proc, requests by the API server's audit log, ticks by the operator's journal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scale.control_plane import HOME
from benchmarks.scale.fleet import Member
from tests.bed import Bed, eventually
from tests.live.accounts import chart_account
from tests.live.running import TRIMTAB, Running
from trimtab.errors import InvalidInput
from trimtab.journal import Journal

TICK_S = 15.0
WRITES = ("create", "update", "patch", "delete")
PARTS = ("apiserver", "etcd", "metrics-server", "prometheus")


class DefaultRun(Running):
    """The operator as the chart starts it: cluster-wide, with default settings."""

    def __init__(self, bed: Bed, folder: Path, *options: str) -> None:
        account = chart_account(bed, HOME, everywhere=True)
        folder.mkdir(exist_ok=True)
        super().__init__(bed, "", folder, kubeconfig=account)
        words = ("--kubeconfig", account, "--journal", self.journal, "--listen", f"127.0.0.1:{self.port}")
        lease = ("--lease-namespace", HOME, *options)
        self.command = [*TRIMTAB, "run", *map(str, words), *lease, "--log-level", "warning"]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def number(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def missing(self) -> int:
        """Samples that were asked for in the last tick and not given."""
        return self.get("/metrics").count("\ntrimtab_sample_missing{")

    def ticks(self, member: Member, since: float = 0.0) -> list[float]:
        """When it was looked at, by the journal: asking the operator itself would cost it CPU."""
        try:
            journal = Journal.read(self.journal)
        except InvalidInput:  # there is none yet, or it is being made
            return []
        found = [tick.at for tick in journal.ticks(*member.key) if tick.at > since]
        journal.close()
        return found

    def await_ticks(self, member: Member, count: int) -> list[float]:
        """The next ones, each noted when it is seen: the journal folds single ticks into minutes now and then."""
        last, seen = max(self.ticks(member), default=0.0), set[float]()

        def enough() -> bool:
            seen.update(self.ticks(member, last))
            return len(seen) >= count

        eventually(enough, 20 * TICK_S * count, f"{count} more ticks", every_s=0.5)
        return sorted(seen)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def received_bytes(pid: int) -> int:
    """Over all connections that this process has now; 0 where nobody knows."""
    if not shutil.which("ss"):
        return 0
    lines = subprocess.run(["ss", "-tinpH"], capture_output=True, text=True, check=True).stdout.splitlines()
    mine = [details for owner, details in zip(lines[::2], lines[1::2], strict=False) if f"pid={pid}," in owner]
    return sum(int(found[1]) for details in mine if (found := re.search(r"bytes_received:(\d+)", details)))


class Spending(NamedTuple):
    """CPU-seconds of the operator and of what serves it, since boot."""

    operator: float
    parts: dict[str, float]

    @classmethod
    def now(cls, bed: Bed, pid: int) -> Spending:
        pids = {part: bed.processes.pid(part) for part in PARTS}
        return cls(cpu_s(pid), {part: cpu_s(found) for part, found in pids.items() if found is not None})

    def since(self, before: Spending, ticks: float) -> dict[str, float]:
        found = {"operator_cpu_s": (self.operator - before.operator) / ticks}
        for part, spent in self.parts.items():
            found[f"{part.replace('-', '_')}_cpu_s"] = (spent - before.parts[part]) / ticks
        return found


class Scaling(NamedTuple):
    """A write of somebody's replicas."""

    key: tuple[str, str]  # namespace and name
    at: float


class Requests:
    """What a user asks of the API server from now on; renewing the lease is not counted."""

    def __init__(self, audit_log: Path, user: str) -> None:
        self.began, self._user = time.time(), f'"username":"{user}"'
        self._lines = audit_log.open()
        self._lines.seek(0, os.SEEK_END)
        self._partial, self._found = "", list[dict[str, Any]]()

    def so_far(self, until: float = float("inf")) -> list[dict[str, Any]]:
        """Their audit events, in order, each with the time `at` which it came."""
        *lines, self._partial = (self._partial + self._lines.read()).split("\n")
        self._found += [_event(line) for line in lines if self._user in line]
        return [event for event in self._found if self.began <= event["at"] < until and _resource(event) != "leases"]

    def writes(self) -> list[dict[str, Any]]:
        """But those of checkpoints, which have their own time."""
        return [event for event in self.so_far() if event["verb"] in WRITES and _resource(event) != "configmaps"]

    def scalings(self) -> list[Scaling]:
        """Each write of a scale that succeeded, in order."""
        return [scaling for scaling, code in self._scalings() if code == HTTPStatus.OK]

    def unanswered(self) -> list[Scaling]:
        """Those that were given up or failed midway (504 and the like): whether they were written, nobody said."""
        return [scaling for scaling, code in self._scalings() if code >= HTTPStatus.INTERNAL_SERVER_ERROR]

    def _scalings(self) -> list[tuple[Scaling, int]]:
        written = ((event, event["objectRef"]) for event in self.writes())
        return [
            (Scaling((about["namespace"], about["name"]), event["at"]), event["responseStatus"]["code"])
            for event, about in written
            if about.get("subresource") == "scale"
        ]


def _event(line: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line)
    return event | {"at": datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()}


def _resource(event: dict[str, Any]) -> str:
    found: str = event.get("objectRef", {}).get("resource", "leases")
    return found


def quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"{name}_p50_s": quantile(values, 0.5), f"{name}_p99_s": quantile(values, 0.99)}


def seconds_until(check: Any, within_s: float, what: str) -> float:
    began = time.time()
    eventually(check, within_s, what, every_s=0.2)
    return time.time() - began
