"""Limits follow requests, bounds hold, and the QoS class never changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.core.limits import (
    guaranteed,
    limit_for,
    resized,
    round_up_to,
    rule_for,
    within,
)
from trimtab.core.model import ContainerSize
from trimtab.errors import InvalidInput
from trimtab.policy import ContainerRule, Gap, Limits, Size, Vertical

MIB = 1024.0**2
ANY = ContainerRule()


def size(cpu: float | None = None, memory: float | None = None) -> Size:
    return Size(cpu_cores=cpu, memory_bytes=memory)


@pytest.mark.parametrize(
    "old_request, old_limit, new_request, gap, limit",
    [
        pytest.param(0.5, None, 1.0, None, None, id="no limit stays no limit"),
        pytest.param(None, 0.4, 0.3, None, 0.3, id="no request before: limit is the request"),
        pytest.param(0.4, 0.4, 0.7, Gap(percent=50), 0.7, id="equal stays equal, whatever the gap"),
        pytest.param(0.4, 0.6, 0.8, None, 1.2, id="the ratio 3:2 is kept"),
        pytest.param(0.3, 0.4, 0.1, None, 0.133, id="the ratio is rounded down to a millicore"),
        pytest.param(0.4, 0.6, 1.0, Gap(percent=20), 1.2, id="gap of 20 %"),
        pytest.param(0.4, 0.6, 1.0, Gap(value=0.5), 1.5, id="gap of half a core"),
        pytest.param(0.4, 0.6, 1.0, Gap(percent=20, value=0.5), 1.5, id="the larger gap wins"),
        pytest.param(0.4, 0.6, 5.0, Gap(percent=20, value=0.5), 6.0, id="the larger gap wins, percent"),
        pytest.param(0.4, 0.6, 0.8, Gap(), 1.2, id="an empty gap is no gap"),
        pytest.param(0.4, 0.6, 0.0, None, None, id="no request, no limit"),
    ],
)
def test_limit_for(
    old_request: float | None, old_limit: float | None, new_request: float, gap: Gap | None, limit: float | None
) -> None:
    assert limit_for(old_request, old_limit, new_request, gap) == limit


def test_resized_rounds_up_and_takes_the_limits_along() -> None:
    now = ContainerSize(requests=size(0.2, 100e6), limits=size(0.4, 200e6))
    after = resized(now, size(0.3001, 150_000_001.0), ANY, Limits(memory=Gap(value=50e6)))
    assert after == ContainerSize(requests=size(0.301, 150_001_000.0), limits=size(0.602, 200_001_000.0))


def test_a_limit_changes_only_where_its_request_does() -> None:
    now = ContainerSize(requests=size(0.2, 128 * MIB), limits=size(0.4, 256 * MIB))
    after = resized(now, size(0.4, 128 * MIB), ANY, Limits())
    assert after == ContainerSize(requests=size(0.4, 128 * MIB), limits=size(0.8, 256 * MIB))


def test_only_controlled_resources_move() -> None:
    now = ContainerSize(requests=size(0.2, 128 * MIB))
    after = resized(now, size(0.4, 256 * MIB), ContainerRule(memory=False), Limits())
    assert after.requests == size(0.4, 128 * MIB)


def test_rounding_never_passes_the_maximum() -> None:
    now = ContainerSize(requests=size(0.2, 128 * MIB))
    rule = ContainerRule(most=size(memory=512 * MIB))
    assert resized(now, size(memory=512 * MIB), rule, Limits()).requests.memory_bytes == 512 * MIB


def test_requests_only_stops_at_the_limit() -> None:
    now = ContainerSize(requests=size(0.2, 100e6), limits=size(1.0, 150e6))
    after = resized(now, size(0.5, 400e6), ContainerRule(requests_only=True), Limits())
    assert after == ContainerSize(requests=size(0.5, 150e6), limits=size(1.0, 150e6))


def test_guaranteed_stays_guaranteed() -> None:
    now = ContainerSize(requests=size(1.0, 1e9), limits=size(1.0, 1e9))
    after = resized(now, size(0.3333, 2e9 + 1), ANY, Limits(cpu=Gap(percent=50)))
    assert after.requests == after.limits == size(0.334, 2e9 + 1000)


def test_guaranteed_with_fixed_limits_cannot_move() -> None:
    now = ContainerSize(requests=size(1.0, 1e9), limits=size(1.0, 1e9))
    assert resized(now, size(0.5, 5e8), ContainerRule(requests_only=True), Limits()) == now


def test_burstable_does_not_become_guaranteed() -> None:
    now = ContainerSize(requests=size(1.0, 1e9), limits=size(2.0, 1e9))
    after = resized(now, size(5.0), ContainerRule(requests_only=True), Limits())
    assert after.requests == size(1.999, 1e9)


def test_best_effort_is_left_alone() -> None:
    now = ContainerSize(requests=Size())
    assert resized(now, size(0.5, 1e9), ANY, Limits()) == now


@given(
    old=st.tuples(st.integers(10, 4000), st.integers(10**7, 10**10)),
    room=st.tuples(st.integers(0, 2000), st.integers(0, 10**9)),
    new=st.tuples(st.floats(0.01, 8.0), st.floats(1e7, 1e10)),
    requests_only=st.booleans(),
    gap=st.none() | st.builds(Gap, percent=st.floats(0, 200), value=st.just(0.0)),
)
def test_class_and_order_always_hold(
    old: tuple[int, int],
    room: tuple[int, int],
    new: tuple[float, float],
    requests_only: bool,
    gap: Gap | None,
) -> None:
    now = ContainerSize(
        requests=size(old[0] / 1000, float(old[1])),
        limits=size((old[0] + room[0]) / 1000, float(old[1] + room[1])),
    )
    after = resized(now, size(*new), ContainerRule(requests_only=requests_only), Limits(cpu=gap, memory=gap))
    assert guaranteed(after) == guaranteed(now)
    assert (after.requests.cpu_cores or 0) <= (after.limits.cpu_cores or 0)
    assert (after.requests.memory_bytes or 0) <= (after.limits.memory_bytes or 0)
    assert not requests_only or after.limits == now.limits


def test_the_maximum_wins_over_the_minimum() -> None:
    assert within(size(1.0, 1e9), size(3.0, None), size(2.0, 5e8)) == size(2.0, 5e8)
    assert within(Size(), size(3.0, 1.0), size(9.0, 9.0)) == Size()


def test_rounding_to_a_multiple() -> None:
    assert round_up_to(1001.0, 1000.0) == 2000.0
    with pytest.raises(InvalidInput, match="positive"):
        round_up_to(5.0, 0.0)


def test_rule_for_takes_the_name_then_the_star() -> None:
    vertical = Vertical(
        containers=(
            ContainerRule(most=size(1.0)),
            ContainerRule(name="app", most=size(2.0)),
            ContainerRule(name="log", off=True),
        ),
        most=size(9.0, 8e9),
    )
    other, app = rule_for(vertical, "other"), rule_for(vertical, "app")
    assert other is not None and other.most == size(1.0, 8e9)
    assert app is not None and app.most == size(2.0, 8e9)
    assert rule_for(vertical, "log") is None
    assert rule_for(Vertical(containers=(ContainerRule(name="app"),)), "other") is None
