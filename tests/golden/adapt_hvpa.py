"""Adapters for hvpa.json: HVPA weights, HVPA buckets and hvpa-v2's, gates, limits, overload.

Where the released program differs from its document on purpose of ours, the vector runs with the setting that gives the
program's behaviour (`Weights.exact`, `Sizing.*`, no overlap).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.golden import hvpa_buckets as buckets
from tests.golden import hvpa_gates as gates
from tests.golden import hvpa_v2 as v2
from tests.golden import hvpa_weights as weights
from tests.golden.harness import Case, Excuse

ADAPTERS: dict[str, Callable[[Case], None]] = {
    "doc1-ex1-weights": weights.weights_by_replicas,
    "doc1-ex2-weights": weights.weights_by_replicas,
    "doc1-ex3-weights": weights.weights_by_replicas,
    "doc1-ex2-out-of-100": weights.weight,
    "doc1-max-unconditional": weights.unconditional_at_max,
    "doc1-formulas": weights.formulas,
    "weight": weights.weight,
    "round": weights.rounding,
    "wmem": weights.weighted_memory,
    "wcpu": weights.weighted_cpu,
    "w": weights.scenario,
    "w-replicas-zero": weights.switched_off,
    "tr-initial-hpa": weights.scenario,
    "tr-no-interval": weights.scenario,
    "ep": weights.steps_of_weight,
    "ki-multiplicative": weights.multiplies,
    "ki-single-axis": weights.single_axis,
    "ki-minchange-starve": gates.starves,
    "converge": weights.converges,
    "thr": gates.threshold,
    "lim": gates.limit,
    "tw-parse": gates.window_clock,
    "tw-add": gates.window_wraps,
    "tw-duration": gates.window_lengths,
    "tw-invalid": gates.window_refused,
    "tw-invalid-str": gates.window_refused,
    "tw-contains-16-19": gates.window_contains,
    "tw-contains-0-1": gates.window_contains,
    "tw-contains-23-1": gates.window_contains,
    "tw-contains-23-0": gates.window_contains,
    "tw-eq-begin-end": gates.window_contains,
    "oom-stale": gates.oom_stale,
    "oom-weight-bug": gates.oom_weight,
    "hpalimited": gates.limited,
    "stab": gates.rests,
    "prec-vpa": gates.precedence,
    "prec-hpa": gates.precedence,
    "prec-v2": gates.precedence,
    "mw": gates.window_missing,
    "b-story1-caps": buckets.story1_caps,
    "b-story1-example": buckets.story1_example,
    "b-hpa-vpa-disagree": lambda case: buckets.story1_example({**case, "input": {**case["input"], "bucket": STORY1}}),
    "b-story1-boundaries": buckets.boundaries,
    "b-strict-variant": buckets.strict_edges,
    "b-story1-mem-error": buckets.story1_memory,
    "b-membership": buckets.membership,
    "b-base-usage": buckets.base_usage,
    "b-story2-gap": buckets.gaps_close,
    "b-horizontal-only": buckets.gaps_close,
    "b-multi-container": buckets.containers,
    "b-multi-container-max": buckets.containers,
    "b-cpu-mem-disagree": buckets.disagree,
    "b-ep-effective": buckets.effective_totals,
    "b-ep-overlap30": buckets.overlap30,
    "b-ep-scaledownmin": buckets.explicit_minimum,
    "p88-change": buckets.either,
    "p88-delta-offbyone": buckets.counts_both_ends,
    "s": v2.bucket_scenario,
    "s-unsupported": v2.no_recommendation,
    "v2": v2.bucket_scenario,
    "v2-unsupported": v2.no_recommendation,
    "v2-effective-1": v2.effective,
    "v2-effective-2": v2.effective,
    "v2-minchange-and": v2.smallest_of_both,
    "v2-direction": v2.direction,
    "v2-piggyback": v2.piggyback,
    "v2-out-of-range-bug": v2.out_of_range,
}
# Older folders call the documents by another name.
ADAPTERS |= {name.replace("doc1-", "seed1-"): check for name, check in ADAPTERS.items() if name.startswith("doc1-")}
STORY1: Case = {"replicas": [1, 8], "cpu_m": [0, 24000]}


def key_of(case: Case) -> str:
    """The first word of the id, unless the case by itself is excused."""
    name = str(case["id"])
    return name if EXCUSED.get(name) in (Excuse.INTERNALS, Excuse.WORDS) else name.split("-")[0]


EXCUSED: dict[str, Excuse] = {
    # An abandoned experiment: thresholds at which a stage of weight 100 is left.
    "tr-initial-vpa": Excuse.INTERNALS,
    "tr-upper-crossed": Excuse.INTERNALS,
    "tr-middle-vpa": Excuse.INTERNALS,
    # Children of the object, its de-duplication of recommendations, a branch.
    "children": Excuse.INTERNALS,
    "v2-no-rescale-on-spec": Excuse.INTERNALS,
    "p88-maxres": Excuse.INTERNALS,
    "valid": Excuse.WORDS,
    # Resolved: asserted with our values.
    "w-v025-gap-min": Excuse.RESOLVED,
    "w-replicas-zero": Excuse.RESOLVED,
    "s-up": Excuse.RESOLVED,
    "s-down": Excuse.RESOLVED,
    "s-mw-down": Excuse.RESOLVED,
    "oom-weight-bug": Excuse.RESOLVED,
    "oom": Excuse.INTERNALS,
    "oom-flag": Excuse.INTERNALS,
    "evict": Excuse.INTERNALS,
    "stab-7": Excuse.RESOLVED,
    "mw-missing": Excuse.RESOLVED,
    "p88-delta-offbyone": Excuse.RESOLVED,
    "b-strict-variant": Excuse.RESOLVED,
    "b-story1-boundaries": Excuse.RESOLVED,
}
