"""HVPA's example 2 walked up and down on the real control plane: every point that is written is on its figure.

The load is stepped, and each step waits until the plan has settled, so the walk takes as long as the metrics take.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.example_2 import DOWN, QUIET, UP, Point, check_figure, hvpa
from tests.live.running import Running, install_crds
from trimtab.acts import Fate
from trimtab.errors import InvalidInput
from trimtab.journal import Journal
from trimtab.ticks import Tick

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]
WINDOW_S = 12  # longer than from one sample to the next
REST_S = 25  # longer than metrics take to show a scaling, and than wishes from before them last
CALM_S = REST_S + 4.0
WITHIN_S = 600  # a walk to the next point takes a minute or two
QUICK = (
    *("--usage-every", "2s", "--grow-after", "6s", "--shrink-after", "10s", "--memory-window", "10s"),
    *("--usage-half-life", "4s", "--downscale-window", f"{WINDOW_S}s"),
)


def same_state(tick: Tick) -> tuple[int, int, int, float | None]:
    return tick.replicas, tick.planned, tick.ready, tick.cpu_cores


def is_settled(ticks: list[Tick], load: float) -> bool:
    """Nothing has moved, and this load is all that was measured, for longer than anything rests."""
    calm = [tick for tick in ticks if tick.at >= ticks[-1].at - CALM_S]
    return (
        ticks[0].at < calm[0].at
        and all(tick.load is not None and abs(tick.load / load - 1) < 0.05 for tick in calm)
        and all(same_state(tick) == same_state(ticks[-1]) for tick in calm)
        and ticks[-1].replicas == ticks[-1].planned == ticks[-1].ready
    )


def ticks_until_now(path: Path, namespace: str) -> list[Tick]:
    try:
        journal = Journal.read(path)
    except InvalidInput:  # its first tick is not written yet
        return []
    try:
        return list(journal.ticks(namespace, "web"))
    finally:
        journal.close()


def point_of(tick: Tick) -> Point:
    return Point(tick.replicas, tick.cpu_cores or 0.0)


def points_written(path: Path, namespace: str, start_at: float, top_at: float) -> tuple[list[Point], list[Point]]:
    """From where it was quiet up to the top, and from there on."""
    journal = Journal.read(path)
    try:
        acts = [act for act in journal.acts(namespace, "web") if all(part.fate is Fate.WRITTEN for part in act.outcome)]
    finally:
        journal.close()
    ways: tuple[list[Point], list[Point]] = ([], [])
    for act in [act for act in acts if act.seen.at > start_at]:
        cores = act.decision.plan.sizes["app"].requests.cpu_cores or 0.0
        ways[act.seen.at > top_at].append(Point(act.decision.plan.replicas, cores))
    return ways


def test_example_2_up_and_down(bed: Bed, namespace: str, tmp_path: Path) -> None:
    install_crds(bed)
    bed.load(namespace, "web", cores=QUIET, memory_bytes=100e6)
    bed.apply(deployment(namespace, "web", cpu="60m"), hvpa(namespace, "web", f"{REST_S}s", f"{REST_S}s"))
    with Running(bed, namespace, tmp_path, *QUICK) as running:

        def settled_at(load: float) -> Tick:
            """Takes the load there and waits until it is answered; how that looks."""
            bed.load(namespace, "web", cores=load, memory_bytes=100e6)
            found: list[Tick] = []

            def settled() -> bool:
                found[:] = ticks_until_now(running.journal, namespace)
                return bool(found) and is_settled(found, load)

            eventually(settled, WITHIN_S, f"settled at {load:g} cores", every_s=1.0)
            return found[-1]

        up = [settled_at(load) for load in (QUIET, *UP)]
        down = [up[-1], *(settled_at(load) for load in DOWN)]
    written = points_written(running.journal, namespace, up[0].at, up[-1].at)
    check_figure(written, ([point_of(tick) for tick in up], [point_of(tick) for tick in down]))
