"""The operator with 1,000 Autoscalers and a pod each, on a real control plane; the built-in HPA controller beside it.

With default settings and nothing changing it must hold its interval, cheaply, without a write and without a GET of a
single object; when the load of a tenth doubles, those are scaled within one tick. Then the operator goes, the same
workloads get a HorizontalPodAutoscaler each, and the built-in controller is measured by the same clock.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.accounts import chart_account
from tests.live.running import TRIMTAB, Running, autoscaler, install_crds
from trimtab.journal import Journal

NAMESPACE, TICK_S = "live", 15.0
OPERATOR = f"system:serviceaccount:{NAMESPACE}:trimtab"
HPA_CONTROLLER = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
WRITES = ("create", "update", "patch", "delete")
CORES = 0.125  # of 0.25 requested: exactly the target of 50 %


class DefaultRun(Running):
    """The operator as the chart starts it: cluster-wide, with default settings."""

    def __init__(self, bed: Bed, folder: Path) -> None:
        account = chart_account(bed, NAMESPACE, everywhere=True)
        super().__init__(bed, "", folder, kubeconfig=account)
        words = ("--kubeconfig", account, "--journal", self.journal, "--listen", f"127.0.0.1:{self.port}")
        lease = ("--lease-namespace", NAMESPACE)
        self.command = [*TRIMTAB, "run", *map(str, words), *lease, "--log-level", "warning"]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def number(self, name: str) -> float:
        found = re.search(rf"^{name} (\S+)$", self.get("/metrics"), re.MULTILINE)
        return float(found[1]) if found else 0.0


# --- measuring -------------------------------------------------------------------------------------------------------


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def requests(bed: Bed, user: str, since: float, until: float = float("inf")) -> Iterator[dict[str, Any]]:
    """What this user asked of the API server in this time; renewing the lease is not counted."""
    with bed.audit_log.open() as lines:
        mine = [json.loads(line) for line in lines if line.endswith("\n") and f'"username":"{user}"' in line]
    for event in mine:
        at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
        if since <= at < until and event.get("objectRef", {}).get("resource", "leases") != "leases":
            yield event | {"at": at}


def scalings(bed: Bed, user: str, since: float) -> list[tuple[str, float]]:
    """(name, at) of each write of a scale that succeeded, in order."""
    return [
        (event["objectRef"]["name"], event["at"])
        for event in requests(bed, user, since)
        if event["objectRef"].get("subresource") == "scale"
        and event["verb"] in WRITES
        and event["responseStatus"]["code"] == 200
    ]


def ticks(running: DefaultRun) -> list[float]:
    """When the first object was looked at, by the journal: asking the operator itself would cost it CPU."""
    journal = Journal.read(running.journal)
    found = [one.at for one in journal.ticks(NAMESPACE, names(1)[0])]
    journal.close()
    return found


def wait_ticks(running: DefaultRun, count: int) -> None:
    wanted = len(ticks(running)) + count
    eventually(lambda: len(ticks(running)) >= wanted, 10 * TICK_S * count, f"{count} more ticks", every_s=0.5)


# --- the fleet -------------------------------------------------------------------------------------------------------


def names(count: int) -> list[str]:
    return [f"web-{index:04}" for index in range(count)]


def tenth(count: int) -> list[str]:
    return names(count)[::10]


def create(bed: Bed, objects: list[dict[str, Any]]) -> None:
    """Two at a time, in lists of 100: kubectl limits its own rate."""
    lists = [objects[first : first + 100] for first in range(0, len(objects), 100)]
    texts = [json.dumps({"apiVersion": "v1", "kind": "List", "items": one}) for one in lists]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda text: bed.kubectl("create", "--validate=false", "-f", "-", input=text), texts))


def controller_manager(bed: Bed, *flags: str) -> int:
    """Started anew with these flags; its process id."""
    command = [one for one in bed.site.command("controller-manager") if "sync-period" not in one]
    bed.stop_part("controller-manager")
    bed.processes.start("controller-manager", [*command, *flags])
    bed.await_ready("controller-manager")
    pid = bed.processes.pid("controller-manager")
    assert pid is not None
    return pid


def ready(bed: Bed) -> int:
    template = "{{range .items}}{{with .status.readyReplicas}}{{.}} {{end}}{{end}}"
    return sum(map(int, bed.kubectl("get", "deploy", "-n", NAMESPACE, "-o", f"go-template={template}").split()))


def measured(bed: Bed) -> int:
    path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{NAMESPACE}/pods"
    return len(json.loads(bed.kubectl("get", "--raw", path))["items"])


def build_fleet(bed: Bed, count: int) -> None:
    load = json.dumps({"cores": CORES})
    bed.kubectl("create", "namespace", NAMESPACE)
    controller_manager(bed, "--kube-api-qps=300", "--kube-api-burst=600")  # only to build the fleet sooner
    create(bed, [deployment(NAMESPACE, name, annotations={"load": load}) for name in names(count)])
    eventually(lambda: ready(bed) == count, 600, f"{count} pods ready", every_s=2)
    eventually(lambda: measured(bed) == count, 120, f"{count} pods measured", every_s=2)


def set_load(bed: Bed, which: list[str], cores: float) -> float:
    """When the last of them had it."""
    for name in which:
        bed.load(NAMESPACE, name, cores=cores)
    return time.time()


def hpa(name: str) -> dict[str, Any]:
    return autoscaler(NAMESPACE, name) | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def doubled(bed: Bed, count: int, user: str) -> dict[str, Any]:
    """A tenth of them get twice their load: from then to the last write, and from the first write to the last."""
    chosen, began = set(tenth(count)), time.time()
    since = set_load(bed, tenth(count), 2 * CORES)
    all_scaled = lambda: {name for name, _ in scalings(bed, user, began)} >= chosen  # noqa: E731
    eventually(all_scaled, 300, f"{len(chosen)} scaled by {user}", every_s=2)
    at = [when for name, when in scalings(bed, user, began) if name in chosen]
    return {"scaled": len(chosen), "scaled_after_s": max(at) - since, "scaled_spread_s": max(at) - min(at)}


# --- ours ------------------------------------------------------------------------------------------------------------


def ours(bed: Bed, count: int, idle_ticks: int, folder: Path) -> dict[str, Any]:
    create(bed, [autoscaler(NAMESPACE, name) for name in names(count)])
    running = DefaultRun(bed, folder)
    with running:
        eventually(lambda: running.number("trimtab_objects") == count, 300, f"{count} objects served", every_s=1)
        eventually(lambda: _quiet(bed, running), 300, "ticks without a write")
        found = _idle(bed, running, idle_ticks)
        return found | doubled(bed, count, OPERATOR)


def _quiet(bed: Bed, running: DefaultRun) -> bool:
    since = time.time()
    wait_ticks(running, 2)
    return not any(event["verb"] in WRITES for event in requests(bed, OPERATOR, since))


def _idle(bed: Bed, running: DefaultRun, count: int) -> dict[str, Any]:
    wait_ticks(running, 1)
    since, first, busy = time.time(), len(ticks(running)), running.number("trimtab_tick_seconds_total")
    spent = cpu_s(running.pid)
    wait_ticks(running, count)
    spent, until = cpu_s(running.pid) - spent, time.time()
    at = ticks(running)[first - 1 :]
    done = len(at) - 1
    asked = list(requests(bed, OPERATOR, since, until))
    return {
        "tick_interval_s": (at[-1] - at[0]) / done,
        "tick_longest_interval_s": max(later - earlier for earlier, later in pairwise(at)),
        "tick_took_s": (running.number("trimtab_tick_seconds_total") - busy) / done,
        "cpu_s_a_tick": spent / done,
        "rss_mb": rss_mb(running.pid),
        "idle_writes": sum(1 for one in asked if one["verb"] in WRITES),
        "idle_gets": sum(1 for one in asked if one["verb"] == "get" and one["objectRef"].get("name")),
        "idle_requests_a_tick": len(asked) / done,
    }


# --- theirs ----------------------------------------------------------------------------------------------------------


def theirs(bed: Bed, count: int, seconds: float) -> dict[str, Any]:
    """The built-in controller, by default every 15 s; what the manager costs without any HPA is taken off."""
    set_load(bed, tenth(count), CORES)
    bed.kubectl("scale", "deployment", *tenth(count), "--replicas=1", "-n", NAMESPACE)
    eventually(lambda: ready(bed) == count, 300, "one pod each again", every_s=2)
    pid = controller_manager(bed, "--horizontal-pod-autoscaler-sync-period=15s")
    _cpu_during(pid, 2 * TICK_S)  # its start is not counted
    idle = _cpu_during(pid, 2 * TICK_S)
    create(bed, [hpa(name) for name in names(count)])
    eventually(lambda: _active(bed) == count, 600, f"{count} HPAs active", every_s=3)
    looked, busy = _looks(bed), _cpu_during(pid, seconds)
    found = {"cpu_s_in_15_s": (busy / seconds - idle / (2 * TICK_S)) * TICK_S, "rss_mb": rss_mb(pid)}
    found |= {"interval_s": count * seconds / (_looks(bed) - looked)}
    return found | doubled(bed, count, HPA_CONTROLLER)


def _looks(bed: Bed) -> float:
    """How often a scale was read so far: the built-in controller does it once for each look at an object."""
    rows = re.findall(r"^apiserver_request_total{(.*)} (\S+)$", bed.kubectl("get", "--raw", "/metrics"), re.MULTILINE)
    wanted = ('resource="deployments"', 'subresource="scale"', 'verb="GET"')
    return sum(float(value) for labels, value in rows if all(one in labels for one in wanted))


def _cpu_during(pid: int, seconds: float) -> float:
    before, until = cpu_s(pid), time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= until, seconds + 5, every_s=0.5)
    return cpu_s(pid) - before


def _active(bed: Bed) -> int:
    found = bed.get("hpa", "-n", NAMESPACE)["items"]
    kinds = [{one["type"]: one["status"] for one in each.get("status", {}).get("conditions", [])} for each in found]
    return sum(1 for one in kinds if one.get("ScalingActive") == "True")


def holds(found: dict[str, Any]) -> dict[str, bool]:
    """What is promised, and whether it held."""
    return {
        "a tick every 15 s": found["tick_interval_s"] < 1.02 * TICK_S,
        "0.5 CPU-seconds a tick": found["cpu_s_a_tick"] <= 0.5,
        "no write when nothing changes": found["idle_writes"] == 0,
        "no GET of single objects": found["idle_gets"] == 0,
        "a tenth scaled within one tick": found["scaled_spread_s"] < TICK_S,
    }


OURS = """trimtab, {objects} Autoscalers: a tick every {tick_interval_s:.2f} s \
({tick_longest_interval_s:.2f} s at most) of {tick_took_s:.2f} s and {cpu_s_a_tick:.2f} CPU-seconds; {rss_mb:.0f} MB
  idle: {idle_requests_a_tick:.1f} requests a tick, {idle_writes} writes, {idle_gets} GETs of single objects
  load of {scaled} doubled: all scaled within {scaled_spread_s:.1f} s of the first, {scaled_after_s:.1f} s after"""
THEIRS = """built-in HPA controller, {objects} HPAs: a look every {interval_s:.1f} s, {cpu_s_in_15_s:.2f} CPU-seconds \
in 15 s; {rss_mb:.0f} MB (of the whole manager)
  load of {scaled} doubled: all scaled within {scaled_spread_s:.1f} s of the first, {scaled_after_s:.1f} s after"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--ticks", type=int, default=8, help="idle ticks to measure")
    parser.add_argument("--without-hpa", action="store_true", help="leave out the built-in controller")
    args = parser.parse_args()
    result: dict[str, Any] = {"benchmark": "live", "objects": args.objects}
    with Bed.start() as bed, tempfile.TemporaryDirectory() as folder:
        print(f"a control plane with {args.objects} Deployments of one pod ...", flush=True)
        bed.stop_part("prometheus")  # nobody asks it here, and it scrapes every second
        install_crds(bed)
        build_fleet(bed, args.objects)
        result |= ours(bed, args.objects, args.ticks, Path(folder))
        print(OURS.format(**result), flush=True)
        if not args.without_hpa:
            found = theirs(bed, args.objects, 4 * TICK_S)
            print(THEIRS.format(objects=args.objects, **found), flush=True)
            result |= {f"hpa_{name}": value for name, value in found.items()}
    result["holds"] = holds(result)
    print(json.dumps(result))
    sys.exit(0 if all(result["holds"].values()) else 1)


if __name__ == "__main__":
    main()
