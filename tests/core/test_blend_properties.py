"""What must hold for every blend, found by looking for the opposite."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.core.wishes import G
from trimtab.core.blend import AxisWishes, blend
from trimtab.core.blend.replica import replica_needs, total
from trimtab.core.model import ContainerSize, Plan, RuleName, Step
from trimtab.policy import (
    RESOURCES,
    Axis,
    Blend,
    Bucket,
    Buckets,
    BucketSizing,
    Capacity,
    ContainerRule,
    Margin,
    Margins,
    Size,
    Stage,
    Vertical,
    Weights,
)

house = settings(max_examples=80)

cores = st.integers(1, 8000).map(lambda value: value / 1000)
kilobytes = st.integers(1000, 8_000_000).map(lambda value: value * 1000.0)
sizes = st.builds(Size, cpu_cores=cores, memory_bytes=kilobytes)
bounds = st.none() | st.integers(10, 16000).map(lambda value: value / 1000)


@st.composite
def asks(draw: st.DrawFn) -> AxisWishes:
    names = draw(st.sampled_from([("app",), ("app", "car")]))
    least = draw(st.integers(1, 5))
    most = draw(st.integers(least, 30))
    return AxisWishes(
        current=draw(st.integers(least, most)),
        wanted=draw(st.integers(1, 40)),
        sizes={name: ContainerSize(requests=draw(sizes)) for name in names},
        targets={name: draw(sizes) for name in names},
        min_replicas=least,
        max_replicas=most,
        overloaded=draw(st.booleans()),
        speaks_for=frozenset(draw(st.sets(st.sampled_from(RESOURCES)))),
        blind=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def verticals(draw: st.DrawFn) -> Vertical:
    cpu, memory = draw(bounds), draw(bounds)
    most = Size(cpu_cores=cpu, memory_bytes=None if memory is None else memory * G)
    return Vertical(containers=(ContainerRule(least=Size(cpu_cores=0.01, memory_bytes=1e6), most=most),), floor=Size())


@st.composite
def ladders(draw: st.DrawFn, overlaps: tuple[float, ...] = (0.0, 10.0, 30.0)) -> Buckets:
    """One to three buckets, from few and small to many and large; with gaps, or horizontal only."""
    found: list[Bucket] = []
    first, cpu, memory = draw(st.integers(1, 3)), 0.0, 0.0
    for _ in range(draw(st.integers(1, 3))):
        last = first + draw(st.integers(0, 8))
        low = Size(cpu_cores=cpu, memory_bytes=memory * G)
        fixed = cpu > 0 and draw(st.booleans())
        cpu += 0 if fixed else draw(st.integers(1, 4000)) / 1000
        memory += 0 if fixed else draw(st.integers(1, 4000)) / 1000
        high = Size(cpu_cores=cpu, memory_bytes=memory * G)
        found.append(Bucket(replicas_min=first, replicas_max=last, least=low, most=high))
        first = last + draw(st.integers(1, 2))
    overlap = Margin(percent=draw(st.sampled_from(overlaps)))
    return Buckets(
        buckets=tuple(found),
        sizing=draw(st.sampled_from(BucketSizing)),
        overlap=Margins(cpu=overlap, memory=overlap),
        grow_past_last=draw(st.booleans()),
    )


capacities = st.builds(
    Capacity,
    base=st.builds(Size, cpu_cores=st.sampled_from([None, 0.1, 1.0]), memory_bytes=st.sampled_from([None, 1e8])),
    hysteresis=st.sampled_from([0.0, 0.1, 0.3]),
    preferred=st.none() | sizes,
)
weights = st.builds(
    lambda shares: Weights(
        stages=tuple(Stage(vertical_share=share, first=1 + 10 * i, last=10 + 10 * i) for i, share in enumerate(shares))
    ),
    st.lists(st.sampled_from([0.0, 0.3, 0.6, 1.0]), min_size=1, max_size=4),
)
joint = st.one_of(ladders(), capacities)
blends = st.one_of(joint, weights, st.none())


def capacity_of(plan: Plan, axis: Axis) -> float:
    return plan.replicas * sum(one.requests.amount(axis) or 0.0 for one in plan.sizes.values())


def recommended(vertical: Vertical, ask: AxisWishes) -> dict[Axis, float]:
    found = replica_needs(vertical, ask)
    return {axis: total(need, ask, axis) for axis, need in found.items()}


@house
@given(blends, verticals(), asks())
def test_replicas_and_sizes_are_within_their_bounds(rule: Blend | None, vertical: Vertical, ask: AxisWishes) -> None:
    assume(rule is not None or ask.min_replicas <= ask.wanted <= ask.max_replicas)
    plan = blend(rule, vertical, ask, [])
    assert ask.min_replicas <= plan.replicas <= ask.max_replicas
    for name, size in plan.sizes.items():
        for axis in RESOURCES:
            after, before = size.requests.amount(axis), ask.sizes[name].requests.amount(axis)
            most = vertical.containers[0].most.amount(axis)
            assert after == before or most is None or (after or 0.0) <= most + 1e-9


@house
@given(joint, verticals(), asks())
def test_a_plan_holds_what_was_recommended_unless_it_says_otherwise(
    rule: Blend, vertical: Vertical, ask: AxisWishes
) -> None:
    steps: list[Step] = []
    plan = blend(rule, vertical, ask, steps)
    bounded = {step.axis for step in steps if step.rule in (RuleName.ALLOWED, RuleName.CAPPED_BY_BUCKET)}
    for axis, need in recommended(vertical, ask).items():
        assert axis in bounded or capacity_of(plan, axis) >= need * (1 - 1e-9)


@house
@given(ladders(), asks())
def test_sizes_stay_within_their_bucket_at_every_replica_count(rule: Buckets, ask: AxisWishes) -> None:
    """HVPA buckets: "the resource per replica can be capped to a certain maximum value"."""
    held = Buckets(buckets=rule.buckets, sizing=rule.sizing, overlap=rule.overlap)
    plan = blend(held, Vertical(floor=Size()), ask, [])
    if plan.sizes == ask.sizes:  # nothing moves, whatever it was before
        return
    below = [bucket for bucket in held.buckets if bucket.replicas_min <= plan.replicas]
    bucket = below[-1] if below else held.buckets[0]
    for axis, grain in ((Axis.CPU, 0.001), (Axis.MEMORY, 1000.0)):
        replica = capacity_of(plan, axis) / plan.replicas
        assert (bucket.least.amount(axis) or 0.0) - 2 * grain <= replica
        assert replica <= (bucket.most.amount(axis) or 0.0) + 2 * grain


@house
@given(joint, verticals(), asks(), st.floats(1.0, 3.0), st.integers(0, 10))
def test_more_load_never_means_less_capacity(
    rule: Blend, vertical: Vertical, ask: AxisWishes, factor: float, more: int
) -> None:
    """Except where scaling in was held as paradoxical, which keeps more than is needed."""
    larger = {
        name: Size(cpu_cores=(one.cpu_cores or 0) * factor, memory_bytes=(one.memory_bytes or 0) * factor)
        for name, one in ask.targets.items()
    }
    steps: list[Step] = []
    less = blend(rule, vertical, ask, steps)
    if any(step.rule is RuleName.PARADOX for step in steps):
        return
    after = blend(rule, vertical, ask._replace(targets=larger, wanted=ask.wanted + more), [])
    for axis in RESOURCES:
        grain = (0.001 if axis is Axis.CPU else 1000.0) * 2 * (less.replicas + after.replicas)
        assert capacity_of(after, axis) >= capacity_of(less, axis) - grain


@house
@given(joint, verticals(), asks())
def test_a_plan_carried_out_is_a_plan_kept(rule: Blend, vertical: Vertical, ask: AxisWishes) -> None:
    """The same total asked again, in replicas of the new size, changes nothing."""
    calm = ask._replace(overloaded=False, speaks_for=frozenset(), blind=False)
    for _ in range(6):
        plan = blend(rule, vertical, calm, [])
        if (plan.replicas, plan.sizes) == (calm.current, calm.sizes):
            return
        targets = {
            name: Size(
                cpu_cores=(one.cpu_cores or 0) * calm.current / plan.replicas,
                memory_bytes=(one.memory_bytes or 0) * calm.current / plan.replicas,
            )
            for name, one in calm.targets.items()
        }
        calm = calm._replace(current=plan.replicas, wanted=plan.replicas, sizes=plan.sizes, targets=targets)
    raise AssertionError(f"still moving after six plans: {plan}")


@house
@given(joint, verticals(), asks())
def test_without_a_signal_replicas_never_fall(rule: Blend, vertical: Vertical, ask: AxisWishes) -> None:
    blind = ask._replace(blind=True, wanted=ask.current, speaks_for=frozenset(RESOURCES))
    plan = blend(rule, vertical, blind, [])
    assert plan.replicas >= ask.current
