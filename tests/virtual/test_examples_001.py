"""HVPA's example 2 walked up and down by the whole operator: the shape of its figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.example_2 import DOWN, MOST, QUIET, UP, Point, check_figure, hvpa
from tests.virtual.cluster import Cluster
from trimtab.core.usage.settings import HistogramSettings
from trimtab.live.look.subject import ChangeRules


def steps(loads: Sequence[float], each_s: float) -> Callable[[float], float]:
    return lambda seconds: loads[min(int(seconds // each_s), len(loads) - 1)]


def walk(loads: Sequence[float], each_s: float, rests: tuple[str, str], **settings: float) -> list[tuple[float, Point]]:
    """When something was written, and what, under these loads of so many seconds each."""
    window_s = settings.pop("window_s")
    quick: dict[str, Any] = settings | {
        "usage": HistogramSettings(half_life_s=20.0, memory_window_s=60.0),
        "change_rules": ChangeRules(up_after_s=30.0, down_after_s=60.0, downscale_s=window_s),
    }
    with Cluster(seed=1, **quick) as cluster:
        cluster.deploy("shop/web", replicas=1, load=steps(loads, each_s), cpu="60m", startup_s=1)
        cluster.apply(hvpa("shop", "web", *rests))
        cluster.run(seconds=each_s * len(loads))
        acts = [act for act in cluster.journal().acts("shop", "web") if act.decision.change is not None]
    return [
        (act.seen.at - cluster.start, Point(act.decision.plan.replicas, size.requests.cpu_cores or 0.0))
        for act in acts
        for size in act.decision.plan.sizes.values()
    ]


def test_example_2_up_and_down() -> None:
    step_s = 1800.0
    points = walk((QUIET, *UP, *DOWN), step_s, ("2m", "3m"), usage_every_s=60.0, window_s=30.0)
    ends = [step_s * (number + 1) for number in range(1 + len(UP) + len(DOWN))]
    settled = [[point for at, point in points if at < end][-1] for end in ends]
    top = len(UP)
    written = [[point for at, point in points if way == (at >= ends[top])] for way in (False, True)]
    check_figure((written[0], written[1]), (settled[: top + 1], settled[top:]))


@pytest.mark.parametrize("usage_every_s", [15.0, 60.0], ids=["usage at every tick", "usage at every fourth tick"])
@pytest.mark.parametrize("window_s", [30.0, 300.0], ids=["a short window", "HPA's own window"])
def test_the_line_is_kept_whichever_metric_arrives_first(usage_every_s: float, window_s: float) -> None:
    """Usage may be sampled later than the utilisation, and HPA remembers what it wished before sizes grew."""
    line = [load for load in UP if load < MOST]
    points = walk((QUIET, *line), 600.0, ("1s", "1s"), usage_every_s=usage_every_s, window_s=window_s)
    assert {point.replicas for _, point in points} == {1}
    assert points[-1][1].cores >= 4 * points[0][1].cores
