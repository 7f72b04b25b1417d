"""HVPA buckets: the proposal, both user stories, every caveat and both mitigations of the document."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.core.wishes import FREE, VERTICAL_ONLY, G, ask, bucket, container, size
from trimtab.core.blend import blend
from trimtab.core.blend.ladder import ladder, replicas_for
from trimtab.core.blend.replica import proportional
from trimtab.core.model import ContainerSize, Plan, RuleName, Step
from trimtab.policy import Axis, Buckets, BucketSizing, ContainerRule, Margin, Margins, Size, Vertical

STORY_1 = (bucket((1, 8), cpu=(0, 24), gb=(0.5, 25)),)
STORY_2 = (bucket((1, 1), cpu=(0, 1), gb=(0, 2)), bucket((2, 8), cpu=(1, 9), gb=(2, 20)))
ONLY_HORIZONTAL = (bucket((1, 3), cpu=(0, 8), gb=(0, 20)), bucket((4, 6), cpu=(8, 8), gb=(20, 20)))


def plan(buckets: tuple[object, ...], wish: object, steps: list[Step] | None = None, **rest: object) -> Plan:
    return blend(Buckets(buckets=buckets, **rest), FREE, wish, [] if steps is None else steps)  # type: ignore[arg-type]


def shape(of: Plan) -> tuple[int, float | None, float | None]:
    requests = of.sizes["app"].requests
    memory = requests.memory_bytes
    return of.replicas, requests.cpu_cores, None if memory is None else memory / G


def test_proposal_totals_are_sizes_times_replicas() -> None:
    """HVPA buckets, Proposal: 3..6 cores and 2.5..7G for 2..5 replicas are 6..30 cores and 5..35G in all."""
    rule = Buckets(buckets=(bucket((2, 5), cpu=(3, 6), gb=(2.5, 7)),))
    for axis, low, high, config in ((Axis.CPU, 6, 30, 3 * 4), (Axis.MEMORY, 5 * G, 35 * G, 3 * 6 * G)):
        rungs = ladder(rule, axis, 0.0)
        assert (rungs[0].low * 2, rungs[-1].high * 5) == (low, high)
        assert low <= config <= high


@pytest.mark.parametrize(
    "cores, replicas",
    [
        pytest.param(0, 1, id="story 1 figure: nothing is one replica"),
        pytest.param(3, 1, id="story 1 figure: 3 cores are the most of one replica"),
        pytest.param(3.001, 2, id="story 1 figure: more than 3 cores take two"),
        pytest.param(12, 2, id="story 1 figure: 12 cores are the most of two"),
        pytest.param(24, 3, id="story 1 example: 24 cores lie in the third column"),
        pytest.param(27, 3, id="story 1 figure: 27 cores are the most of three"),
        pytest.param(48, 4, id="story 1 figure: 48"),
        pytest.param(75, 5, id="story 1 figure: 75"),
        pytest.param(108, 6, id="story 1 figure: 108"),
        pytest.param(147, 7, id="story 1 figure: 147"),
        pytest.param(192, 8, id="story 1 figure: 192 is the most of all"),
        pytest.param(300, 8, id="above the last bucket: the last count"),
    ],
)
def test_story_1_linear_division(cores: float, replicas: int) -> None:
    assert replicas_for(ladder(Buckets(buckets=STORY_1), Axis.CPU, 0.0), cores, 0) == replicas


def test_story_1_each_memory_step_is_an_eighth() -> None:
    """24.5G / 8; the document's 1.18G belongs to other numbers."""
    rungs = ladder(Buckets(buckets=STORY_1), Axis.MEMORY, 0.0)
    assert [one.high / G for one in rungs][:2] == pytest.approx([3.5625, 6.625])


@pytest.mark.parametrize(
    "current, wanted, now, target, expected",
    [
        pytest.param(2, 4, 6, 12, (3, 8), id="story 1: 2 x 6 cores, VPA 12, HPA 4 become 3 x 8"),
        pytest.param(2, 5, 6, 7, (4, 7.5), id="caveat, recommendations differ: HPA's 30 cores count"),
        pytest.param(2, 2, 6, 13, (3, 26 / 3), id="caveat, recommendations differ: VPA's 26 cores count"),
    ],
)
def test_story_1_examples(current: int, wanted: int, now: float, target: float, expected: tuple[int, float]) -> None:
    found = shape(plan(STORY_1, ask(current, wanted, size(now), size(target))))
    assert found[:2] == (expected[0], pytest.approx(expected[1], abs=1e-3))


@pytest.mark.parametrize(
    "cores, gb, expected",
    [
        pytest.param(0.4, 1.5, (1, 0.4, 1.5), id="story 2: vertically with one replica"),
        pytest.param(1.0, 2.0, (1, 1.0, 2.0), id="story 2: until 1 core and 2G"),
        pytest.param(1.0, 3.0, (2, 1.0, 2.0), id="story 2: 2G to 4G belong to no bucket: two replicas of its minimum"),
        pytest.param(1.2, 2.0, (2, 1.0, 2.0), id="story 2: 1 to 2 cores likewise"),
        pytest.param(
            4.2, 4.0, (2, 2.1, 2.0), id="story 2: of seven equal steps from 1 to 9 cores two replicas have one"
        ),
        pytest.param(4.3, 4.0, (3, 1.434, 2.0), id="story 2: 2 x (1 + 8/7) cores are the most of two"),
        pytest.param(72.0, 160.0, (8, 9.0, 20.0), id="story 2: 9 cores and 20G in 8 replicas are the most"),
    ],
)
def test_story_2(cores: float, gb: float, expected: tuple[int, float, float]) -> None:
    wish = ask(1, 1, size(0.1, 0.1), size(cores, gb), speaks_for=VERTICAL_ONLY)
    assert shape(plan(STORY_2, wish, sizing=BucketSizing.SHARE)) == pytest.approx(expected)


def test_caveat_cpu_and_memory_ask_for_different_counts() -> None:
    """The higher one, and both totals are divided by it."""
    wish = ask(2, 2, size(6, 1), size(6, 15), speaks_for=VERTICAL_ONLY)
    found = plan(STORY_1, wish, sizing=BucketSizing.SHARE)
    assert shape(found) == (4, 3.0, 7.5)  # by CPU 2 (12 cores), by memory 4 (30G > 29.06G)


@pytest.mark.parametrize(
    "pod_cores, targets, expected",
    [
        pytest.param(0.9, {"app": 0.6, "car": 0.2}, {"app": 0.675, "car": 0.225}, id="in VPA's proportion"),
        pytest.param(1.0, {"app": 0.0, "car": 0.0}, {"app": 0.5, "car": 0.5}, id="all zero: evenly"),
        pytest.param(0.1, {"a": 1, "b": 1, "c": 1}, {"a": 0.034, "b": 0.033, "c": 0.033}, id="no grain is lost"),
    ],
)
def test_caveat_several_containers(pod_cores: float, targets: dict[str, float], expected: dict[str, float]) -> None:
    assert proportional(pod_cores, targets, 0.001) == pytest.approx(expected)


def test_several_containers_in_a_plan() -> None:
    """A container without a recommendation is in no sum and never written."""
    wish = ask(2, 2, size(), size(), speaks_for=VERTICAL_ONLY)._replace(
        sizes={"app": container(3.0), "car": container(1.0), "off": container(9.0)},
        targets={"app": size(9.0), "car": size(3.0)},
    )
    found = plan(STORY_1, wish)
    assert found.replicas == 3  # 24 cores
    assert {name: one.requests.cpu_cores for name, one in found.sizes.items()} == {"app": 6.0, "car": 2.0, "off": 9.0}


@pytest.mark.parametrize(
    "cores, expected",
    [
        pytest.param(24, (3, 8.0), id="horizontal only: below it the size grows to 8"),
        pytest.param(25, (4, 8.0), id="horizontal only: 24 to 32 cores belong to nobody, and to four replicas here"),
        pytest.param(33, (5, 8.0), id="horizontal only: ceil(33 / 8)"),
        pytest.param(48, (6, 8.0), id="horizontal only: 48 / 8"),
        pytest.param(60, (6, 8.0), id="horizontal only: the size is the same beyond the last count"),
    ],
)
def test_horizontal_only(cores: float, expected: tuple[int, float]) -> None:
    wish = ask(1, 1, size(1, 1), size(cores, 1), speaks_for=VERTICAL_ONLY)
    assert shape(plan(ONLY_HORIZONTAL, wish))[:2] == expected


BASE = (bucket((1, 8), gb=(0, 16)),)  # three replicas hold 12G: two hold 8G, three 18G


@pytest.mark.parametrize(
    "sizing, gb",
    [
        pytest.param(BucketSizing.SHARE, 4, id="base usage: the bare share starves what is added"),
        pytest.param(BucketSizing.GUARDED, 6, id="base usage, mitigation: 3 replicas of 6G, 18G in all"),
        pytest.param(BucketSizing.MAX_OF_VPA_AND_SHARE, 6, id="base usage, rule of thumb: the larger of both"),
        pytest.param(BucketSizing.NEVER_SHRINK, 5, id="base usage, hvpa-v2: no less than before"),
    ],
)
def test_base_usage(sizing: BucketSizing, gb: float) -> None:
    """HVPA buckets: 2 x 5G of which 2G are base, VPA recommends 6G, the bucket three replicas."""
    wish = ask(2, 2, size(None, 5), size(None, 6))
    assert shape(plan(BASE, wish, sizing=sizing)) == (3, None, gb)


def test_a_known_base_is_enough() -> None:
    """2 + 8 / 3: W = 12 - 2 * 2 is shared, each replica has its base (hvpa-v2's baseResourcesPerReplica)."""
    base = Margins(memory=Margin(value=2 * G))
    found = plan(BASE, ask(2, 2, size(None, 5), size(None, 6)), sizing=BucketSizing.SHARE, base=base)
    assert shape(found) == (3, None, pytest.approx(4.667, abs=1e-3))


def test_the_guard_is_monotone() -> None:
    """The literal rule gives 3 x 7.4G for 14.8G and 3 x 5G for 15G; a quarter over what it has is the most."""
    wide = (bucket((1, 8), gb=(0, 20)),)  # two replicas hold 10G, three 22.5G
    sizes = [shape(plan(wide, ask(2, 2, size(None, 5), size(None, v))))[2] for v in (6, 6.2, 7.4, 7.5, 9)]
    assert sizes == [6, 6.2, 6.25, 6.25, 6.25]


def test_hpa_domination_can_be_switched_off() -> None:
    """hpa.deploy: false, so that only vertical totals count."""
    wish = ask(2, 8, size(6), size(7))
    assert plan(STORY_1, wish).replicas == 4
    assert shape(plan(STORY_1, wish._replace(speaks_for=VERTICAL_ONLY)))[:2] == (3, 7.0)  # 14 / 3 < 6: guarded


def test_a_cap_wins_over_the_rule_of_thumb_and_says_so() -> None:
    steps: list[Step] = []
    wish = ask(2, 4, size(6), size(12))
    assert shape(plan(STORY_1, wish, steps, sizing=BucketSizing.MAX_OF_VPA_AND_SHARE))[:2] == (3, 9.0)
    assert [(step.before, step.after) for step in steps if step.rule is RuleName.CAPPED_BY_BUCKET] == [(12.0, 9.0)]


@pytest.mark.parametrize(
    "now, target, wanted, expected, rules",
    [
        pytest.param(
            24, 30, 8, 24, {RuleName.CAPPED_BY_BUCKET}, id="story 1, maximum CPU 24000m: VPA asks for 30 cores"
        ),
        pytest.param(
            20, 500, 8, 24, {RuleName.CAPPED_BY_BUCKET}, id="story 1, maximum CPU 24000m: VPA asks for 500 cores"
        ),
        pytest.param(
            24, 24, 16, 24, {RuleName.CAPPED_BY_BUCKET}, id="story 1, maximum CPU 24000m: HPA asks for 16 x 24"
        ),
        pytest.param(24, 24, 8, 24, set(), id="story 1, maximum CPU 24000m: just that is no cap"),
    ],
)
def test_not_more_than_the_maximum_total_for_the_last_replica_count(
    now: float, target: float, wanted: int, expected: float, rules: set[RuleName]
) -> None:
    steps: list[Step] = []
    found = plan(STORY_1, ask(8, wanted, size(now), size(target), most=20), steps)
    assert shape(found)[:2] == (8, expected)
    assert {step.rule for step in steps if step.rule is not RuleName.BUCKETS} == rules


PROPOSAL = (bucket((2, 5), cpu=(3, 6), gb=(2.5, 7)),)


@pytest.mark.parametrize(
    "current, now, target, expected",
    [
        pytest.param(
            2, (3, 2.5), (0.5, 0.5), (2, 3, 2.5), id="proposal, minimum CPU 3 and memory 2.5G: VPA asks for less"
        ),
        pytest.param(3, (4, 4), (1, 4), (3, 3, 4), id="proposal, minimum CPU 3: memory keeps three replicas"),
        pytest.param(3, (4, 4), (4, 4), (3, 4, 4), id="proposal, 3 replicas with 4 cores lie in the bucket"),
    ],
)
def test_a_bucket_has_a_minimum(
    current: int, now: tuple[float, float], target: tuple[float, float], expected: tuple[int, float, float]
) -> None:
    steps: list[Step] = []
    wish = ask(current, current, size(*now), size(*target), speaks_for=VERTICAL_ONLY)
    assert shape(plan(PROPOSAL, wish, steps)) == expected
    raised = {step.axis for step in steps if step.rule is RuleName.BUCKET_MINIMUM}
    assert (Axis.CPU in raised) == (target[0] < 3)


def test_growing_past_the_last_maximum_is_a_setting() -> None:
    wish = ask(6, 6, size(8, 20), size(10, 20), speaks_for=VERTICAL_ONLY)
    assert shape(plan(ONLY_HORIZONTAL, wish, grow_past_last=True))[:2] == (6, 10.0)
    steps: list[Step] = []
    vertical = Vertical(containers=(ContainerRule(most=size(30)),))
    rule = Buckets(buckets=STORY_1, grow_past_last=True)
    assert shape(blend(rule, vertical, ask(8, 8, size(24), size(26)), steps))[:2] == (8, 26.0)
    assert not [step for step in steps if step.rule is RuleName.ALLOWED]
    assert shape(blend(rule, vertical, ask(8, 8, size(24), size(40)), steps))[:2] == (8, 30.0)
    assert [step.after for step in steps if step.rule is RuleName.ALLOWED] == [30.0]


def test_below_the_first_bucket_the_smallest_size_is_kept() -> None:
    vertical = Vertical(containers=(ContainerRule(least=size(0.5)),))
    wish = ask(1, 1, size(1), size(0.1), speaks_for=VERTICAL_ONLY)
    assert shape(blend(Buckets(buckets=STORY_1), vertical, wish, []))[:2] == (1, 0.5)


@pytest.mark.parametrize(
    "current, cores, overlap, replicas",
    [
        pytest.param(3, 11.0, 10, 3, id="three stay down to 0.9 * 12 cores"),
        pytest.param(3, 10.7, 10, 2, id="and go below it"),
        pytest.param(2, 11.0, 10, 2, id="two stay up to 12: the count in force wins"),
        pytest.param(4, 11.0, 10, 2, id="a count that does not hold it takes the fewest that do"),
        pytest.param(3, 11.9, 0, 2, id="without overlap linearly"),
        pytest.param(3, 12.0, 0, 2, id="lower edges are exclusive"),
    ],
)
def test_scaling_in_waits_for_the_overlap(current: int, cores: float, overlap: float, replicas: int) -> None:
    margins = Margins(cpu=Margin(percent=overlap), memory=Margin(percent=overlap))
    wish = ask(current, current, size(8), size(cores / current), speaks_for=VERTICAL_ONLY)
    assert plan(STORY_1, wish, overlap=margins).replicas == replicas


def test_any_resource_that_still_fits_keeps_the_count() -> None:
    wish = ask(3, 3, size(8, 8), size(1, 5), speaks_for=VERTICAL_ONLY)  # 3 cores: 1; 15G: 3 (two hold 13.25G)
    assert plan(STORY_1, wish).replicas == 3


def test_fewer_but_larger_replicas_for_a_smaller_total_wait() -> None:
    """Paradoxical: the total falls, yet each replica would have to grow. Without overlap it is done."""
    wish = ask(3, 3, size(1.0, 1.0), size(0.9, 0.9), speaks_for=VERTICAL_ONLY)  # 2.7 cores, 2.7G: one replica
    steps: list[Step] = []
    found = plan(STORY_1, wish, steps)
    assert (found.replicas, found.sizes) == (3, wish.sizes)
    assert [step.rule for step in steps] == [RuleName.PARADOX]
    assert shape(plan(STORY_1, wish, overlap=Margins())) == (1, 2.7, 2.7)


def test_declared_overlaps_of_buckets_prefer_the_count_in_force() -> None:
    both = (bucket((1, 2), cpu=(0, 4)), bucket((3, 4), cpu=(1, 6)))  # 3 replicas from 3 cores, 2 until 8
    for current in (2, 3):
        wish = ask(current, current, size(3), size(6 / current), speaks_for=VERTICAL_ONLY)
        assert plan(both, wish, overlap=Margins()).replicas == current


def test_rounding_never_gives_less_than_the_total() -> None:
    wish = ask(2, 2, size(6), size(13 / 2), speaks_for=VERTICAL_ONLY)
    found = shape(plan(STORY_1, wish, sizing=BucketSizing.SHARE))
    assert found[:2] == (3, 4.334)  # 13 / 3 = 4.3333


def test_no_recommendation_leaves_sizes_and_follows_the_replicas() -> None:
    wish = ask(2, 5, size(1), size())._replace(targets={})
    found = plan(STORY_1, wish)
    assert (found.replicas, found.sizes, found.joint) == (5, wish.sizes, False)


def test_overload_gives_what_vertical_recommends() -> None:
    """A pod that was killed for memory needs all of it, however many there are."""
    hurt = ask(2, 2, size(None, 5), size(None, 7), overloaded=True)
    assert shape(plan(BASE, hurt, sizing=BucketSizing.SHARE)) == (3, None, pytest.approx(6.0))  # capped by the bucket
    wide = (replace(BASE[0], most=size(None, 40)),)
    assert shape(plan(wide, hurt, sizing=BucketSizing.SHARE)) == (2, None, 7.0)


def test_missing_signals_never_take_replicas_away() -> None:
    blind = ask(6, 6, size(1.0), size(0.2), blind=True)
    steps: list[Step] = []
    found = plan(STORY_1, blind, steps)
    assert shape(found)[:2] == (6, 1.0)
    assert RuleName.METRICS_MISSING in [step.rule for step in steps]


def test_limits_follow() -> None:
    wish = ask(2, 4, size(6), size(12))._replace(sizes={"app": ContainerSize(requests=size(6), limits=size(12))})
    found = plan(STORY_1, wish)
    assert found.sizes["app"] == ContainerSize(requests=size(8.0), limits=size(16.0))


def test_sizes_already_in_force_are_not_rounded() -> None:
    """400Mi are no whole kilobytes; that alone is no reason to touch a pod."""
    wish = ask(1, 1, Size(memory_bytes=400 * 2**20), Size(memory_bytes=400 * 2**20))
    found = plan((bucket((1, 2), gb=(0, 1)),), wish)
    assert found.sizes == wish.sizes
