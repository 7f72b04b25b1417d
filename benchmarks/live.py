"""The operator with many Autoscalers on a real control plane; the built-in HPA controller beside it.

With default settings and nothing changing it must hold its interval, cheaply, without a write and without a GET of a
single object; when the load of a tenth doubles, those are scaled within one tick. `--mixed` is a fleet as people have
it: 60 % by CPU, 20 % by queries, 10 % with forecasts, 10 % sized; then a fifth of the pods is replaced, the operator is
started again, and at last its leader is killed. Afterwards the same workloads get a HorizontalPodAutoscaler each, and
the built-in controller is measured by the same clock, unless it could not hold so many.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.scale import phases
from benchmarks.scale.control_plane import CONTROLLERS, HPA, HPA_CONTROLLER, USUAL, restarted
from benchmarks.scale.fleet import Fleet, Member, build, create, scaler
from benchmarks.scale.measure import TICK_S, DefaultRun, cpu_s, rss_mb
from benchmarks.scale.targets import holds
from tests.bed import Bed, eventually
from tests.live.running import autoscaler, install_crds

SCRAPE_S = 15  # Prometheus' own default is a minute; the bed's second is for tests


def prepare(bed: Bed, fleet: Fleet, mixed: bool) -> None:
    """Our kinds, and all pods ready and measured."""
    _prometheus(bed, mixed)
    install_crds(bed)
    build(bed, fleet)


def run(bed: Bed, fleet: Fleet, ticks: int, folder: Path, mixed: bool) -> Iterator[dict[str, Any]]:
    """Everything that happens to it: the figures of one phase after the other."""
    create(bed, [scaler(member) for member in fleet.members])
    options = ("--prometheus", bed.prometheus_url) if mixed else ()
    running = DefaultRun(bed, folder / "first", *options)
    with running:
        phases.await_quiet(bed, running, fleet)
        yield _said(STEADY, fleet, phases.steady(bed, running, fleet, ticks))
        yield phases.tick_times(running, fleet, ticks)
        yield _said(f"{STORM}\n{WRITTEN}", fleet, phases.storm_within_ticks(bed, running, fleet))
        if mixed:
            phases.await_rollouts(bed)
            phases.await_quiet(bed, running, fleet)
            yield _said(ROLLOUT, fleet, phases.rolling_restart(bed, running, fleet))
            yield _said(RESTART, fleet, phases.restart(bed, running, fleet))
            standby = DefaultRun(bed, folder / "second", *options)
            yield _said(LOST, fleet, phases.leader_change(bed, running, standby, fleet))


# --- theirs ----------------------------------------------------------------------------------------------------------


def theirs(bed: Bed, fleet: Fleet, seconds: float) -> dict[str, Any]:
    """The built-in controller as it comes, every 15 s; what the manager costs without any HPA is taken off."""
    phases.calm(bed, fleet)
    bed.kubectl("delete", "autoscalers", "--all", "-A", "--wait=false")
    pid = restarted(bed, "controller-manager", f"--controllers={CONTROLLERS},{HPA}", *USUAL)
    _cpu_during(pid, 2 * TICK_S)  # its start is not counted
    idle = _cpu_during(pid, 2 * TICK_S)
    create(bed, [_hpa(member) for member in fleet.members])
    eventually(lambda: _active(bed) == len(fleet.members), 600, f"{len(fleet.members)} HPAs active", every_s=3)
    looked, busy = _looks(bed), _cpu_during(pid, seconds)
    found = {"cpu_s_in_15_s": (busy / seconds - idle / (2 * TICK_S)) * TICK_S, "rss_mb": rss_mb(pid)}
    found |= {"interval_s": len(fleet.members) * seconds / (_looks(bed) - looked)}
    return found | phases.storm(bed, fleet, HPA_CONTROLLER)


def _hpa(member: Member) -> dict[str, Any]:
    return autoscaler(*member.key) | {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}


def _looks(bed: Bed) -> float:
    """How often a scale was read so far: the built-in controller does it once for each look at an object."""
    rows = re.findall(r"^apiserver_request_total{(.*)} (\S+)$", bed.kubectl("get", "--raw", "/metrics"), re.MULTILINE)
    wanted = ('resource="deployments"', 'subresource="scale"', 'verb="GET"')
    return sum(float(value) for labels, value in rows if all(label in labels for label in wanted))


def _cpu_during(pid: int, seconds: float) -> float:
    before, until = cpu_s(pid), time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= until, seconds + 5, every_s=0.5)
    return cpu_s(pid) - before


def _active(bed: Bed) -> int:
    found = bed.get("hpa", "-A")["items"]
    conditions = [condition for hpa in found for condition in hpa.get("status", {}).get("conditions", [])]
    return sum(1 for each in conditions if (each["type"], each["status"]) == ("ScalingActive", "True"))


# --- the whole -------------------------------------------------------------------------------------------------------


STEADY = """trimtab, {objects} Autoscalers, {pods} pods: a tick every {tick_interval_s:.2f} s \
({tick_longest_interval_s:.2f} s at most) of {tick_took_s:.2f} s and {operator_cpu_s:.3f} CPU-seconds; {rss_mb:.0f} MB
  idle: {idle_requests_per_tick:.1f} requests per tick, {idle_writes} writes, {idle_gets} GETs of single objects; \
{operator_cpu_ms_per_object:.3f} ms per object, {all_cpu_ms_per_object:.3f} ms with everything that serves it"""
STORM = """  load of {storm_objects} doubled: all scaled within {storm_writing_s:.1f} s of the first, \
{storm_p50_s:.1f} s after the change (p99 {storm_p99_s:.1f} s)"""
WRITTEN = """  {storm_scalings} writes until nothing was scaled any more, each within {storm_after_tick_s:.1f} s \
of its tick; {storm_unanswered} without an answer"""
ROLLOUT = "  {rollout_deployments} rolled out in {rollout_s:.0f} s: {rollout_scalings} scalings"
RESTART = """  started again: a whole tick after {restart_s:.1f} s, {restart_scalings} scalings, {restart_writes} \
writes, the last after {restart_settled_s:.1f} s; {restart_forgotten} statuses say something else than before"""
LOST = "  leader killed: a whole tick of the next after {leader_change_s:.1f} s, {leader_change_scalings} scalings"
THEIRS = """built-in HPA controller, {objects} HPAs: a look every {interval_s:.1f} s, {cpu_s_in_15_s:.2f} CPU-seconds \
in 15 s; {rss_mb:.0f} MB (of the whole manager)"""


def _said(text: str, fleet: Fleet, found: dict[str, Any]) -> dict[str, Any]:
    print(text.format(objects=len(fleet.members), pods=fleet.pods, **found), flush=True)
    return found


def _prometheus(bed: Bed, mixed: bool) -> None:
    """Slower than for tests, or not at all where nobody asks it."""
    bed.stop_part("prometheus")
    if mixed:
        path = bed.site.directory / "prometheus.json"
        path.write_text(path.read_text().replace('"scrape_interval": "1s"', f'"scrape_interval": "{SCRAPE_S}s"'))
        bed.start_part("prometheus")


def _write(result: dict[str, Any], path: Path | None) -> None:
    """After each phase: a long run that is ended has what it found."""
    if path:
        path.write_text(json.dumps(result, indent=1) + "\n")


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that its control plane ends with it
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=1, help="of each")
    parser.add_argument("--namespaces", type=int, default=1)
    parser.add_argument("--mixed", action="store_true", help="not by CPU alone; and everything that may happen")
    parser.add_argument("--ticks", type=int, default=8, help="idle ticks to measure")
    parser.add_argument("--without-hpa", action="store_true", help="leave out the built-in controller")
    parser.add_argument("--json", type=Path, help="write the figures to this file, too")
    args = parser.parse_args()
    fleet = Fleet.of(args.objects, args.namespaces, args.pods, args.mixed)
    result: dict[str, Any] = {"benchmark": "live", "objects": args.objects, "pods": fleet.pods}
    result |= {"namespaces": args.namespaces, "mixed": args.mixed}
    with Bed.start(nodes=fleet.nodes) as bed, tempfile.TemporaryDirectory() as folder:
        print(f"a control plane with {args.objects} Deployments, {fleet.pods} pods ...", flush=True)
        began = time.time()
        prepare(bed, fleet, args.mixed)
        print(f"  built in {time.time() - began:.0f} s", flush=True)
        for found in run(bed, fleet, args.ticks, Path(folder), args.mixed):
            result |= found
            _write(result, args.json)
        if not args.without_hpa:
            found = _said(f"{THEIRS}\n{STORM}", fleet, theirs(bed, fleet, 4 * TICK_S))
            result |= {f"hpa_{name}": value for name, value in found.items()}
    result["holds"] = holds(result)
    print(json.dumps(result))
    _write(result, args.json)
    missed = [text for text, held in result["holds"].items() if not held]
    sys.exit(f"promised of 10,000 objects, and not reached: {'; '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
