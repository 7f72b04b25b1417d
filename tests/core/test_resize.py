"""The vertical safety rules: when a container may grow, when it may shrink, and what always holds."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.core.decide import decide
from trimtab.core.explain import rule_text
from trimtab.core.model import (
    Change,
    ContainerSize,
    Estimate,
    Memory,
    Missing,
    Observation,
    Reason,
    RuleName,
    Step,
    UsageEstimates,
)
from trimtab.core.resize import floor_share, resize
from trimtab.core.usage import VPA_FLOOR
from trimtab.policy import Axis, ContainerRule, Policy, Size, Vertical

NOW, HOUR, DAY = 1_700_000_000.0, 3600.0, 86400.0
MIB = 1024.0**2
NOW_SIZE = Size(cpu_cores=1.0, memory_bytes=1e9)
WARM = Estimate(target=Size(cpu_cores=0.5, memory_bytes=5e8), observed_s=2 * DAY, memory_peak_bytes=1e8)


def seen(
    *estimates: Estimate, requests: Size = NOW_SIZE, expires_at: float = NOW + HOUR, names: str = "abc"
) -> Observation:
    containers = dict(zip(names, estimates, strict=False))
    return Observation(
        at=NOW,
        spec_replicas=1,
        status_replicas=1,
        sizes={name: ContainerSize(requests=requests) for name in containers},
        usage=UsageEstimates(made_at=NOW, expires_at=expires_at, containers=containers),
    )


def sized(
    estimate: Estimate, vertical: Vertical | None = None, memory: Memory | None = None, requests: Size = NOW_SIZE
) -> tuple[Size | None, list[Step]]:
    steps: list[Step] = []
    found = resize(vertical or Vertical(), seen(estimate, requests=requests), memory or Memory(), steps)
    return found.get("a"), steps


def rules(steps: list[Step]) -> list[RuleName]:
    return [step.rule for step in steps]


def needs(cpu: float | None = None, memory: float | None = None, **facts: object) -> Estimate:
    return replace(WARM, target=Size(cpu_cores=cpu, memory_bytes=memory), **facts)


# --- what is known ---------------------------------------------------------------------------------------------------


def test_a_warm_container_gets_its_estimate_in_both_directions() -> None:
    assert sized(needs(2.0, 5e8)) == (Size(cpu_cores=2.0, memory_bytes=5e8), [])


@pytest.mark.parametrize("usage", [Missing(reason=Reason.UNREACHABLE), "expired"])
def test_missing_and_expired_usage_moves_nothing(usage: Missing | str) -> None:
    observation = seen(needs(2.0, 2e9), expires_at=NOW) if usage == "expired" else replace(seen(), usage=usage)
    assert resize(Vertical(), observation, Memory(), []) == {}


def test_a_container_without_an_estimate_or_unknown_to_the_pod_is_left_out() -> None:
    observation = replace(seen(needs(2.0, 2e9)), sizes={"b": ContainerSize(requests=NOW_SIZE)})
    assert resize(Vertical(), observation, Memory(), []) == {}


@pytest.mark.parametrize("bad", [None, nan, inf, -1.0])
def test_a_bad_estimate_of_one_resource_leaves_the_other(bad: float | None) -> None:
    size, _ = sized(needs(bad, 2e9))
    assert size == Size(memory_bytes=2e9)


def test_an_idle_switch_and_controlled_resources_decide_what_may_move() -> None:
    vertical = Vertical(containers=(ContainerRule(name="a", memory=False), ContainerRule(name="b", off=True)))
    observation = seen(needs(2.0, 2e9), needs(2.0, 2e9), needs(2.0, 2e9))
    assert resize(vertical, observation, Memory(), []) == {"a": Size(cpu_cores=2.0)}


def test_a_container_without_requests_is_only_advised() -> None:
    size, steps = sized(needs(2.0, 2e9), requests=Size())
    assert size is None
    assert [(step.rule, step.axis, step.before) for step in steps] == [
        (RuleName.ADVISED, Axis.CPU, 2.0),
        (RuleName.ADVISED, Axis.MEMORY, 2e9),
    ]


def test_a_single_missing_request_is_set_once_warm() -> None:
    half = Size(memory_bytes=1e9)
    assert sized(needs(2.0, 2e9), requests=half)[0] == Size(cpu_cores=2.0, memory_bytes=2e9)
    least = Vertical(containers=(ContainerRule(least=Size(cpu_cores=0.1)),))
    assert sized(needs(2.0, 2e9, observed_s=60.0), least, requests=half)[0] == Size(memory_bytes=1e9)


# --- up --------------------------------------------------------------------------------------------------------------


def test_growth_waits_for_ten_minutes_of_samples() -> None:
    size, steps = sized(needs(2.0, 2e9, observed_s=599.0))
    assert size == NOW_SIZE
    assert [(step.rule, step.after, step.until) for step in steps] == [
        (RuleName.WARM_UP, 1.0, NOW + 1.0),
        (RuleName.WARM_UP, 1e9, NOW + 1.0),
    ]
    assert sized(needs(2.0, 2e9, observed_s=600.0))[0] == Size(cpu_cores=2.0, memory_bytes=2e9)


@pytest.mark.parametrize(
    "oom_at, overloaded", [pytest.param(NOW - 5.0, False, id="kill"), pytest.param(None, True, id="eviction")]
)
def test_after_an_oom_kill_memory_grows_at_once_and_cpu_waits(oom_at: float | None, overloaded: bool) -> None:
    size, _ = sized(needs(2.0, 2e9, observed_s=60.0, oom_at=oom_at), memory=Memory(overloaded=overloaded))
    assert size == Size(cpu_cores=1.0, memory_bytes=2e9)


def test_memory_is_never_below_what_would_have_survived_the_last_kill() -> None:
    size, steps = sized(needs(None, 5e8, oom_at=NOW - 3 * DAY, oom_need_bytes=1.2e9))
    assert size == Size(memory_bytes=1.2e9)
    assert [(step.rule, step.before, step.after) for step in steps] == [(RuleName.OOM_NEED, 5e8, 1.2e9)]


# --- down ------------------------------------------------------------------------------------------------------------


def test_shrinking_waits_for_a_day() -> None:
    size, steps = sized(needs(0.5, 5e8, observed_s=DAY - 1))
    assert size == NOW_SIZE and rules(steps) == [RuleName.WARM_UP] * 2
    assert sized(needs(0.5, 5e8, observed_s=DAY))[0] == Size(cpu_cores=0.5, memory_bytes=5e8)


def test_memory_also_waits_for_a_full_window() -> None:
    size, _ = sized(needs(0.5, 5e8, memory_window_s=3 * DAY))
    assert size == Size(cpu_cores=0.5, memory_bytes=1e9)


def test_memory_stays_above_the_peak_and_its_margin() -> None:
    size, steps = sized(needs(None, 5e8, memory_peak_bytes=6e8))
    assert size == Size(memory_bytes=7.2e8)
    assert steps == [Step(rule=RuleName.PEAK, axis=Axis.MEMORY, before=5e8, after=7.2e8, container="a")]


def test_a_peak_above_the_request_holds_but_does_not_raise() -> None:
    assert sized(needs(None, 5e8, memory_peak_bytes=9e8))[0] == Size(memory_bytes=1e9)


@pytest.mark.parametrize("peak", [None, nan])
def test_an_unknown_peak_lowers_nothing(peak: float | None) -> None:
    assert sized(needs(0.5, 5e8, memory_peak_bytes=peak))[0] == Size(cpu_cores=0.5, memory_bytes=1e9)


def test_a_day_of_rest_after_an_oom_kill() -> None:
    size, steps = sized(needs(0.5, 5e8, oom_at=NOW - HOUR))
    assert size == NOW_SIZE
    assert [(step.rule, step.until) for step in steps] == [(RuleName.OOM_REST, NOW + 23 * HOUR)] * 2
    assert "not lowered after an OOM kill until" in rule_text(steps[0])
    assert sized(needs(0.5, 5e8, oom_at=NOW - DAY))[0] == Size(cpu_cores=0.5, memory_bytes=5e8)


def test_an_overloaded_workload_is_not_lowered() -> None:
    size, steps = sized(needs(0.5, 5e8), memory=Memory(overloaded=True))
    assert size == NOW_SIZE and rules(steps) == [RuleName.OOM_REST] * 2


def test_some_images_keep_their_memory() -> None:
    size, steps = sized(needs(0.5, 5e8), Vertical(keep_memory=True))
    assert size == Size(cpu_cores=0.5, memory_bytes=1e9) and rules(steps) == [RuleName.KEEP_MEMORY]


# --- bounds ----------------------------------------------------------------------------------------------------------


def test_bounds_come_last_and_the_maximum_wins() -> None:
    rule = ContainerRule(least=Size(cpu_cores=0.8), most=Size(memory_bytes=1.5e9))
    size, steps = sized(needs(0.5, 9e9), Vertical(containers=(rule,)))
    assert size == Size(cpu_cores=0.8, memory_bytes=1.5e9) and rules(steps) == [RuleName.ALLOWED] * 2


def test_a_request_above_its_maximum_comes_down_even_when_cold() -> None:
    rule = ContainerRule(most=Size(cpu_cores=0.6))
    assert sized(needs(0.5, None, observed_s=0.0), Vertical(containers=(rule,)))[0] == Size(cpu_cores=0.6)


def test_the_operators_maximum_holds_where_a_rule_is_open() -> None:
    vertical = Vertical(
        containers=(ContainerRule(most=Size(cpu_cores=3.0)),), most=Size(cpu_cores=2.0, memory_bytes=2e9)
    )
    assert sized(needs(8.0, 8e9), vertical)[0] == Size(cpu_cores=3.0, memory_bytes=2e9)


def test_whole_cores_are_rounded_up_before_the_bounds() -> None:
    rule = ContainerRule(whole_cores=True, most=Size(cpu_cores=2.5))
    size, steps = sized(needs(2.2, None), Vertical(containers=(rule,)))
    assert size == Size(cpu_cores=2.5) and rules(steps) == [RuleName.WHOLE_CORES, RuleName.ALLOWED]


def test_the_floor_of_a_pod_is_shared() -> None:
    assert floor_share(Size(cpu_cores=0.010, memory_bytes=32 * MIB), 3) == Size(
        cpu_cores=0.003, memory_bytes=11184810.0
    )
    tiny = needs(0.0001, 1e6, memory_peak_bytes=1e6)
    found = resize(Vertical(), seen(tiny, tiny), Memory(), [])
    assert found == dict.fromkeys("ab", Size(cpu_cores=0.005, memory_bytes=16 * MIB))
    upstream = resize(Vertical(floor=VPA_FLOOR), seen(tiny), Memory(), [])
    assert upstream == {"a": Size(cpu_cores=0.025, memory_bytes=250 * MIB)}


AMOUNT = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.floats(0.001, 100)
ESTIMATES = st.builds(
    Estimate,
    target=st.builds(Size, cpu_cores=AMOUNT, memory_bytes=AMOUNT),
    observed_s=st.sampled_from([0.0, 700.0, DAY, 9 * DAY, nan]),
    memory_peak_bytes=AMOUNT,
    oom_at=st.none() | st.floats(NOW - 3 * DAY, NOW),
)
REQUESTS = st.builds(Size, cpu_cores=st.floats(0.01, 50), memory_bytes=st.floats(0.01, 50))


@given(ESTIMATES, REQUESTS, st.floats(0, 10), st.floats(0, 90))
def test_every_size_is_within_its_bounds(estimate: Estimate, requests: Size, least: float, room: float) -> None:
    most = least + room
    both = Size(cpu_cores=least, memory_bytes=least), Size(cpu_cores=most, memory_bytes=most)
    size, _ = sized(estimate, Vertical(containers=(ContainerRule(least=both[0], most=both[1]),)), requests=requests)
    for amount in (size.cpu_cores, size.memory_bytes) if size else ():
        assert amount is None or least <= amount <= most


@given(ESTIMATES, REQUESTS)
def test_what_is_missing_lowers_nothing(estimate: Estimate, requests: Size) -> None:
    cold = replace(estimate, observed_s=0.0)
    peakless = replace(estimate, memory_peak_bytes=None)
    for one, axes in ((cold, "both"), (peakless, "memory")):
        size, _ = sized(one, requests=requests)
        if size is None:
            continue
        assert size.memory_bytes is None or size.memory_bytes >= (requests.memory_bytes or 0)
        if axes == "both":
            assert size.cpu_cores is None or size.cpu_cores >= (requests.cpu_cores or 0)


@given(ESTIMATES, REQUESTS)
def test_every_change_is_explained_by_a_chain_of_steps(estimate: Estimate, requests: Size) -> None:
    size, steps = sized(estimate, requests=requests)
    if size is None or size.cpu_cores is None:
        return
    amount = estimate.target.cpu_cores
    for step in steps:
        if step.axis is Axis.CPU:
            assert step.before == amount and step.after != amount and rule_text(step)
            amount = step.after
    assert amount == size.cpu_cores


# --- the whole decision ----------------------------------------------------------------------------------------------


def test_a_decision_resizes_requests_and_limits_with_its_reason() -> None:
    observation = replace(
        seen(needs(2.0, 5e8, memory_peak_bytes=6e8)),
        sizes={"a": ContainerSize(requests=NOW_SIZE, limits=Size(cpu_cores=1.5, memory_bytes=1e9))},
    )
    decision = decide(Policy(vertical=Vertical()), observation, Memory())
    after = ContainerSize(
        requests=Size(cpu_cores=2.0, memory_bytes=7.2e8), limits=Size(cpu_cores=3.0, memory_bytes=7.2e8)
    )
    assert decision.change == Change(was=1, sizes={"a": after})
    assert RuleName.PEAK in rules(list(decision.steps))
    assert decide(Policy(vertical=Vertical()), replace(observation, sizes={"a": after}), Memory()).change is None
