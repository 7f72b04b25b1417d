"""HVPA weights and HVPA buckets up and down their curves: every step that was written is what the documents say of it.

The examples are the ones of `examples/`, with windows of seconds. Each workload gets one load that rises and falls
again; what was written is read from the journal and compared, step by step, with the document's own rule.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.bed import Bed, eventually
from tests.bed.manifests import deployment
from tests.live.running import ROOT, Running, install_crds, replicas
from trimtab.acts import Act, Fate
from trimtab.core.model import Missing, RuleName
from trimtab.journal import Journal
from trimtab.policy import Axis

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600), pytest.mark.xdist_group("curves")]  # one walk serves them all
RISE_S, FALL_S, WITHIN_S = 25, 30, 150
QUICK = (
    *("--usage-every", "2s", "--grow-after", "6s", "--shrink-after", "10s", "--memory-window", "10s"),
    *("--usage-half-life", "8s", "--downscale-window", "8s"),
)
SOON = {"scaleUpStabilizationWindow": "2s", "scaleDownStabilizationWindow": "3s"}
GB = 1e9


class Walk(NamedTuple):
    """An example, the size of its pods at first, and the load (cores) that drives it up."""

    file: str
    cpu: str
    low: float
    high: float
    top: int  # replicas that the high load needs


WALKS = {
    "example-1": Walk("001-weights/example-1.yaml", "1", 0.4, 16.0, 10),
    "example-2": Walk("001-weights/example-2.yaml", "500m", 0.2, 4.0, 10),
    "example-3": Walk("001-weights/example-3.yaml", "500m", 0.2, 8.0, 10),
    "story-1": Walk("004-buckets/story-1.yaml", "2", 1.0, 40.0, 4),
    "story-2": Walk("004-buckets/story-2.yaml", "500m", 0.3, 6.0, 2),
}
STAGES = {
    "example-1": [(0.0, 1, 2), (0.6, 3, 7), (0.0, 7, 10)],
    "example-2": [(1.0, 1, 1), (0.6, 2, 4), (0.0, 5, 10)],
    "example-3": [(0.0, 1, 3), (0.6, 4, 10)],
}


class Step(NamedTuple):
    """One write: what was there, what was recommended, what was written."""

    was: int
    now: int
    cpu: float
    new_cpu: float
    vertical: float | None  # the recommended request
    wanted: int  # by HPA's own rules


def _wrote(act: Act) -> bool:
    return all(part.fate is Fate.WRITTEN for part in act.outcome)


def step_of(act: Act) -> Step:
    """The horizontal wish after HPA's own rules, the vertical one after the rules that keep it safe."""
    seen, decision = act.seen, act.decision
    usage = seen.usage
    vertical = None if isinstance(usage, Missing) else usage.containers["app"].target.cpu_cores
    asked = [one.replicas for one in decision.proposals if not isinstance(one.replicas, Missing)]
    wanted = max(asked, default=seen.spec_replicas)
    for one in decision.steps:
        if one.rule in (RuleName.STABILISE, RuleName.UP_LIMIT):
            wanted = one.after
        if one.rule in (RuleName.WARM_UP, RuleName.FLOOR, RuleName.ALLOWED) and one.axis is Axis.CPU:
            vertical = one.after
    cpu, new = (sizes["app"].requests.cpu_cores or 0.0 for sizes in (seen.sizes, decision.plan.sizes))
    return Step(seen.spec_replicas, decision.plan.replicas, cpu, new, vertical, min(10, ceil(wanted)))


def hvpa_of(walk: Walk, name: str, namespace: str) -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load((ROOT / "examples" / walk.file).read_text())
    made["metadata"] = {"name": name, "namespace": namespace}
    made["spec"]["targetRef"]["name"] = name
    if "hpaTemplate" in made["spec"]:
        made["spec"] |= SOON | {"minCpuChange": {"value": "50m", "percentage": 10}}
    for policy in made["spec"].get("vpaTemplate", {}).get("resourcePolicy", {}).get("containerPolicies", []):
        policy["containerName"] = "app"
    return made


@pytest.fixture(scope="module")
def walked(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Step]]]:
    """Every write of each walk, up to the top and back."""
    install_crds(bed)
    namespace = f"curves-{uuid.uuid4().hex[:8]}"
    bed.kubectl("create", "namespace", namespace)
    for name, walk in WALKS.items():
        bed.load(namespace, name, cores=walk.low, memory_bytes=100e6)
        bed.apply(deployment(namespace, name, cpu=walk.cpu, memory="500M"), hvpa_of(walk, name, namespace))
    folder = tmp_path_factory.mktemp("operator")
    with Running(bed, namespace, folder, *QUICK) as running:
        eventually(lambda: len(bed.get("hvpa", "-n", namespace)["items"][-1]["status"]["conditions"]) > 0, 40)
        for name, walk in WALKS.items():
            bed.load(namespace, name, cores=[[0, walk.low], [RISE_S, walk.high]], memory_bytes=100e6)
        tops = {name: climb(bed, namespace, name, walk) for name, walk in WALKS.items()}
        for name in STAGES:  # at maxReplicas only the size is left to grow
            bed.load(namespace, name, cores=4 * tops[name], memory_bytes=100e6)
        for name in STAGES:
            eventually(lambda: grown(running.journal, namespace, name), WITHIN_S, f"{name} larger")  # noqa: B023
        for name, walk in WALKS.items():
            bed.load(namespace, name, cores=[[0, tops[name]], [FALL_S, walk.low]], memory_bytes=100e6)
        for name in WALKS:
            eventually(lambda: replicas(bed, namespace, name) <= 2, WITHIN_S, f"{name} back")  # noqa: B023
        eventually(lambda: shrunk(running.journal, namespace, "example-2"), WITHIN_S, "down the vertical line")
    journal = Journal.read(running.journal)
    yield {name: [step_of(act) for act in journal.acts(namespace, name) if _wrote(act)] for name in WALKS}
    journal.close()
    bed.kubectl("delete", "namespace", namespace, "--wait=false")


def climb(bed: Bed, namespace: str, name: str, walk: Walk) -> float:
    """The load at which it stands at its top: a size that has grown meanwhile needs more of it."""
    cores = walk.high
    for _ in range(6):
        over_at = time.monotonic() + RISE_S + 60
        there = lambda: replicas(bed, namespace, name) >= walk.top  # noqa: E731
        eventually(lambda: there() or time.monotonic() > over_at, RISE_S + 60)  # noqa: B023
        if there():
            return cores
        bed.load(namespace, name, cores=[[0, cores], [RISE_S, 2 * cores]], memory_bytes=100e6)
        cores *= 2
    raise TimeoutError(f"{name} did not reach {walk.top} replicas at {cores:g} cores")


def steps_until_now(path: Path, namespace: str, name: str) -> list[Step]:
    journal = Journal.read(path)
    try:
        return [step_of(act) for act in journal.acts(namespace, name) if _wrote(act)]
    finally:
        journal.close()


def grown(path: Path, namespace: str, name: str) -> bool:
    return any(step.was == 10 and step.new_cpu > step.cpu for step in steps_until_now(path, namespace, name))


def shrunk(path: Path, namespace: str, name: str) -> bool:
    """Smaller at one replica, after it was at its top."""
    steps = steps_until_now(path, namespace, name)
    top = max(index for index, step in enumerate(steps) if step.was == 10)
    return any(step.was == step.now == 1 and step.new_cpu < step.cpu for step in steps[top:])


def weights(name: str, step: Step) -> tuple[float, float]:
    """That of the sizes, and that of the replicas: out of a stage of weight 1 they go by the stage ahead."""
    stages = STAGES[name]
    index = next(i for i, (_, first, last) in enumerate(stages) if first <= step.was <= last)
    share = stages[index][0]
    if share < 1 or step.wanted == step.was or gives(step):
        return share, share
    ahead = stages[index + 1 :] if step.wanted > step.was else stages[:index][::-1]
    return share, next((other for other, _, _ in ahead if other < 1), 1.0)


def gives(step: Step) -> bool:
    """Whether the vertical recommendation has more to give than the smallest change of 50m or 10 %."""
    way = 1 if step.wanted > step.was else -1
    return step.vertical is not None and way * (step.vertical - step.cpu) >= min(0.05, 0.1 * step.cpu)


@pytest.mark.parametrize("name", STAGES)
def test_hvpa_weights_step_by_step(walked: dict[str, list[Step]], name: str) -> None:
    steps = walked[name]
    for step in steps:
        share, leaving = weights(name, step)
        moved = step.was + (step.wanted - step.was) * (1 - leaving)
        limit = ceil(moved - 1e-9) if step.wanted > step.was else floor(moved + 1e-9)
        low, high = sorted((step.was, max(1, min(10, limit))))
        assert low <= step.now <= high, f"replicas move by {1 - leaving:g} of what HPA wants at most: {step}"
        if share == 0 and step.was < 10:
            assert step.new_cpu == step.cpu, f"a horizontal stage leaves sizes alone: {step}"
        elif step.new_cpu != step.cpu:
            assert step.vertical is not None
            part = 1.0 if step.was == 10 and step.vertical > step.cpu else share
            expected = max(step.cpu + part * (step.vertical - step.cpu), 0.010)
            assert step.new_cpu == pytest.approx(expected, abs=0.0011), f"{part:g} of the way: {step}"
    ups, downs = ([step for step in steps if (step.now - step.was) * way > 0] for way in (1, -1))
    for _, first, last in STAGES[name]:
        for way in (ups, downs):
            assert any(first <= end <= last for step in way for end in step[:2]), f"through {first} to {last}: {way}"
    assert any(step.was == 10 and step.new_cpu > step.cpu for step in steps), "at maxReplicas only the size grows"


def test_hvpa_weights_example_2_has_the_shape_of_its_figures(walked: dict[str, list[Step]]) -> None:
    """Both axes move between 2 and 4 replicas, only replicas from 5 on, and it ends down the line at one replica.

    The line upwards is left as soon as the recommendation, which follows usage late, has nothing more to give; so how
    much of it is walked is a matter of seconds here, and of `tests/core/test_weight_1.py`.
    """
    steps = walked["example-2"]
    top = max(index for index, step in enumerate(steps) if step.was == 10)
    for way, part in ((1, steps[:top]), (-1, steps[top:])):
        assert any(2 <= end <= 4 for step in part for end in step[:2] if (step.now - step.was) * way > 0), part
        level = [step for step in part if 5 <= step.was < 10 and step.now != step.was]
        assert all(step.new_cpu == step.cpu for step in level), f"from 5 replicas on only these: {part}"
    assert any(step.was == step.now == 1 and step.new_cpu < step.cpu for step in steps[top:]), "down the vertical line"


def story_1(total: float) -> int:
    """Totals of 3, 12, 27, ... cores are the upper edges of 1, 2, 3, ... replicas."""
    return min(8, ceil(sqrt(total / 3.0) - 1e-9)) or 1


def story_2(total: float) -> int:
    """One replica up to a core; two to eight from there on, in seven equal steps from 1 to 9 cores for each."""
    if total <= 1.0:
        return 1
    return next((n for n in range(2, 9) if total <= n * (1.0 + (n - 1) * 8.0 / 7) * (1 + 1e-9)), 8)


@pytest.mark.parametrize("name, curve, most", [("story-1", story_1, 24.0), ("story-2", story_2, 9.0)])
def test_hvpa_buckets_step_by_step(walked: dict[str, list[Step]], name: str, curve: Any, most: float) -> None:
    steps = walked[name]
    for step in steps:
        vertical = (step.vertical or step.cpu) * step.was
        total = max(vertical, step.wanted * step.cpu) if name == "story-1" else vertical
        assert step.new_cpu <= most + 1e-9, f"the bucket's maximum: {step}"
        if name == "story-2" and step.now > 1:
            assert step.new_cpu >= 1.0, f"the second bucket's minimum: {step}"
        if step.now > step.was:
            assert step.now == curve(total), f"as many as the total of {total:g} cores needs: {step}"
            assert step.now * step.new_cpu >= total * 0.999, f"together they hold it: {step}"
        if step.now < step.was:
            assert curve(total) <= step.now, f"never fewer than the total of {total:g} cores needs: {step}"
    assert any(step.now > step.was for step in steps) and any(step.now < step.was for step in steps)
    assert any(step.new_cpu > step.cpu for step in steps) and any(step.new_cpu < step.cpu for step in steps)
