"""Adapters for vpa.json: histograms, estimates, memory peaks, capping and limits of the VPA recommender."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.golden.harness import Case, Excuse
from trimtab.core.limits import (
    capped_to_limits,
    limit_for,
    resized,
    round_up_to,
    within,
)
from trimtab.core.model import ContainerSize, Estimate, Memory, Observation, UsageEstimates
from trimtab.core.resize import resize
from trimtab.core.usage import VPA_FLOOR, ContainerSample, HistogramSettings, UsageHistograms, usages
from trimtab.core.usage import bucket_edges as shapes
from trimtab.core.usage.bank import Bank
from trimtab.core.usage.estimate import (
    CPU_GRAIN,
    LOWER,
    UPPER,
    ConfidenceMultiplier,
    confidence,
    whole,
    with_confidence,
    with_margin,
)
from trimtab.core.usage.histogram_checkpoint import read_row, save_row
from trimtab.errors import InvalidInput
from trimtab.policy import ContainerRule, Limits, Size, Vertical
from trimtab.quantity import MIB

HOUR, DAY = 3600.0, 86400.0
START = 20_000 * DAY  # upstream's tests begin at a real date
ONE_WIDE = shapes.linear(10, 1)


# --- buckets, percentiles, decay, checkpoints ------------------------------------------------------------------------


def options(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    made = (
        shapes.linear(given["maxValue"], given["bucketSize"])
        if "bucketSize" in given
        else shapes.exponential(given["maxValue"], given["firstBucketSize"], given["ratio"])
    )
    assert len(made) == wanted["numBuckets"]
    starts = wanted["start"]
    for bucket, start in starts.items() if isinstance(starts, dict) else enumerate(starts):
        assert made.starts[int(bucket)] == pytest.approx(start)
    assert {value: int(made.find(float(value))) for value in wanted["find"]} == wanted["find"]


def default_options(case: Case) -> None:
    for name, made in (("cpu", shapes.CPU), ("memory", shapes.MEMORY)):
        wanted = case["expected"]
        assert len(made) == wanted[f"{name}_numBuckets"]
        for bucket, start in wanted[f"{name}_start"].items():
            assert made.starts[int(bucket)] == pytest.approx(start, rel=1e-12)
        found = {value: int(made.find(float(value))) for value in wanted[f"{name}_find"]}
        assert found == wanted[f"{name}_find"]


def percentiles(case: Case) -> None:
    given = case["input"]
    half_life_s = given.get("halfLife_h", 24) * HOUR
    bank = filled(given.get("samples", []), Bank(ONE_WIDE, 1, half_life_s))
    assert ask(bank, given["percentiles"]) == pytest.approx(case["expected"]["values"])


def out_of_bounds(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    bank = filled(given["samples_step1"], Bank(shapes.linear(given["maxValue"], given["bucketSize"]), 1))
    assert ask(bank, given["percentiles"]) == pytest.approx(wanted["step1"])
    filled(given["samples_step2_added"], bank)
    assert ask(bank, given["percentiles"]) == pytest.approx(wanted["step2"])


def emptied(case: Case) -> None:
    epsilon = case["input"]["epsilon"]
    bank = Bank(ONE_WIDE, 1, epsilon=epsilon)
    seen = [bool(bank.empty()[0])]
    for change, weight in ((bank.add, 2.5), (bank.subtract, 1.0), (bank.subtract, 1.0)):
        change([0], 5.0, weight * epsilon)
        seen.append(bool(bank.empty()[0]))
    assert seen == case["expected"]["isEmpty_after_each"]


def tiny_samples(case: Case) -> None:
    bank, seen = Bank(shapes.linear(1000, 1), 1), []
    for value, weight in case["input"]["adds_in_eps"]:
        bank.add([0], value, weight * bank.epsilon)
        seen.append(bool(bank.empty()[0]))
    assert seen == case["expected"]["isEmpty_after_each"]
    assert ask(bank, [0.0, 1.0]) == [10.0, 10.0]


def merged(case: Case) -> None:
    """Containers of one name share a row, so nothing is merged afterwards: both histories go into the same one."""
    given = case["input"]
    bank = Bank(ONE_WIDE, 1, given.get("halfLife_h", 24) * HOUR)
    filled(given["h1"], bank, row=0)
    filled(given["h2"], bank, row=0)
    wanted = case["expected"].get("bucket_weights") or case["expected"]["relative_weights"]
    least = min(bank.weights[0][bank.weights[0] > 0]) / min(wanted.values())
    found = {str(bucket): weight / least for bucket, weight in enumerate(bank.weights[0]) if weight > 0}
    assert found == pytest.approx(wanted)


def saved(case: Case) -> None:
    found = save_row(filled(case["input"]["samples"], Bank(ONE_WIDE, 1)), 0)
    assert found["bucketWeights"] == case["expected"]["bucketWeights"]
    assert found["totalWeight"] == pytest.approx(case["expected"]["totalWeight"])


def loaded(case: Case) -> None:
    bank = Bank(ONE_WIDE, 1)
    bank.put(0, *read_row(bank, case["input"]))
    assert bank.totals[0] == case["expected"]["totalWeight"]
    for bucket, weight in case["expected"]["bucket"].items():
        assert bank.weights[0, int(bucket)] == pytest.approx(weight)


def refused(case: Case) -> None:
    bad: dict[str, Any] = {
        "bucket -1": {"totalWeight": 1.0, "bucketWeights": {"-1": 1}},
        "bucket 99 of 11": {"totalWeight": 1.0, "bucketWeights": {"99": 1}},
        "totalWeight -1": {"totalWeight": -1.0, "bucketWeights": {"0": 1}},
        "nil": None,
    }
    assert len(ONE_WIDE) == 11
    for name, error in zip(case["input"]["cases"], case["expected"]["error"], strict=True):
        assert error
        with pytest.raises(InvalidInput):
            read_row(Bank(ONE_WIDE, 1), bad[name])


def reloaded(case: Case) -> None:
    epsilon = case["input"]["epsilon"]
    bank = Bank(ONE_WIDE, 1, epsilon=epsilon)
    filled([[value, weight * epsilon] for value, weight in case["input"]["samples_in_eps"]], bank)
    again = Bank(ONE_WIDE, 1, epsilon=epsilon)
    again.put(0, *read_row(again, save_row(bank, 0)))
    assert bool(again.empty()[0]) is case["expected"]["isEmpty_after_reload"]


def decayed(case: Case) -> None:
    given = case["input"]
    bank = filled(given["samples"], Bank(ONE_WIDE, 1, given["halfLife_h"] * HOUR))
    for name, value in case["expected"].items():
        assert ask(bank, [float(name[1:])]) == [value]


def filled(samples: list[list[float]], bank: Bank, row: int = 0) -> Bank:
    """[value, weight] or [value, weight, hours]."""
    for value, weight, *hours in samples:
        bank.add([row], value, weight, START + (hours[0] if hours else 0.0) * HOUR)
    return bank


def ask(bank: Bank, probabilities: list[float]) -> list[float]:
    found: list[float] = bank.percentiles(probabilities)[:, 0].tolist()
    return found


# --- estimates -------------------------------------------------------------------------------------------------------


def estimated(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    cpu, memory = Bank(shapes.CPU, 1), Bank(shapes.MEMORY, 1)
    cpu.add([0, 0, 0], given["cpu_samples"], 1.0)
    memory.add([0, 0, 0], given["memory_samples"], 1.0)
    cores, size = ask(cpu, [given["cpu_percentile"]])[0], ask(memory, [given["memory_percentile"]])[0]
    assert cores == pytest.approx(wanted["cpu_exact_cores"])
    assert (whole(cores * CPU_GRAIN), whole(size)) == (wanted["cpu_exact_m"], wanted["memory_exact_bytes"])
    assert cores == pytest.approx(wanted["cpu_cores_within_5pct"], rel=0.05)
    assert size == pytest.approx(wanted["memory_bytes_within_5pct"], rel=0.05)


def confident(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    interval_s = given["interval_h"] * HOUR if "interval_h" in given else given["interval_min"] * 60.0
    span_s = (given["samples"] - 1) * given["spacing_min"] * 60.0
    trust = confidence(0.0, span_s, given["samples"], interval_s)
    assert trust == pytest.approx(wanted["confidence"])
    bend = ConfidenceMultiplier(given["multiplier"], given["exponent"])
    milli = with_confidence(whole(given["base_cores"] * CPU_GRAIN), trust, bend)
    assert milli / CPU_GRAIN == pytest.approx(wanted["cpu_cores"])
    assert with_confidence(given["base_bytes"], trust, bend) == pytest.approx(wanted["memory_bytes"])


def unknown_history(case: Case) -> None:
    given = case["input"]
    trust = confidence(np.nan, np.nan, 0, DAY)
    found = [
        with_confidence(3140.0, trust, ConfidenceMultiplier(given["multiplier"], power)) for power in given["exponents"]
    ]
    assert found == case["expected"]["resourceAmount"]


def margin(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    assert with_margin(whole(given["cores"] * 1000), given["margin"]) / 1000 == pytest.approx(wanted["cores"])
    assert with_margin(given["bytes"], given["margin"]) == pytest.approx(wanted["bytes"])


def multipliers(case: Case) -> None:
    minutes = np.array(case["input"]["history_min"])
    trust = confidence(0.0, minutes * 60.0, minutes, DAY)
    large = np.full(len(minutes), 1e9)
    for name, bend in (("upper", UPPER), ("lower", LOWER)):
        found = with_confidence(large, trust, bend) / 1e9
        assert found == pytest.approx(np.array(case["expected"][name]), abs=5e-5)


def floored(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    floor = Size(cpu_cores=given["minCores"], memory_bytes=given["minBytes"]) if "minCores" in given else VPA_FLOOR
    cores, size = given.get("cores", given.get("est_cores")), given.get("bytes", given.get("est_bytes"))
    names = [f"container-{number}" for number in range(given.get("containers", 1))]
    found = recommend({name: Size(cpu_cores=cores, memory_bytes=size) for name in names}, Vertical(floor=floor))
    cpu_m = wanted.get("cpu_m", wanted.get("cpu_m_each", wanted.get("cores", 0) * 1000))
    memory = wanted.get("memory_bytes", wanted.get("memory_bytes_each", wanted.get("bytes")))
    assert found == dict.fromkeys(names, Size(cpu_cores=cpu_m / 1000, memory_bytes=memory))


def controlled(case: Case) -> None:
    for resources, present in zip(case["input"]["controlledResources"], case["expected"]["present"], strict=True):
        assert sorted(moved(rule_with(resources))) == sorted(present)


def controlled_or_default(case: Case) -> None:
    for resources, present in zip(case["input"]["controlled"], case["expected"]["result"], strict=True):
        rule = ContainerRule() if resources is None else rule_with(resources)
        assert sorted(moved(rule)) == sorted(present)


def container_mode(case: Case) -> None:
    for mode, wanted in zip(case["input"]["policy_modes"], case["expected"]["mode"], strict=True):
        rules = () if mode == "nil policy" else (ContainerRule(name="app", off=mode == "Off"),)
        vertical = Vertical(containers=(*rules, ContainerRule()))
        assert bool(recommend({"app": Size(cpu_cores=1.0)}, vertical)) is (wanted == "Auto")


def ordered(case: Case) -> None:
    found = recommend(dict.fromkeys(case["input"]["containers"], Size(cpu_cores=1.0)))
    assert list(found) == case["expected"]["order"]


def defaults(case: Case) -> None:
    wanted, ours = case["expected"], HistogramSettings()
    lower, target, upper = ours.cpu_percentiles
    assert (lower, target, upper) == tuple(wanted[f"{name}CPUPercentile"] for name in ("lower", "target", "upper"))
    lower, target, upper = ours.memory_percentiles
    names = ("lower", "target", "upper")
    assert (lower, target, upper) == tuple(wanted[f"{name}MemoryPercentile"] for name in names)
    assert ours.margin == wanted["marginFraction"]
    assert Size(cpu_cores=wanted["podMinCPU_m"] / 1000, memory_bytes=wanted["podMinMemory_MiB"] * MIB) == VPA_FLOOR
    assert ours.confidence_s == wanted["confidenceInterval_h"] * HOUR
    assert ours.memory_window_s == wanted["memoryAggregationInterval_h"] * HOUR
    assert ours.memory_windows == wanted["memoryAggregationIntervalCount"]
    assert ours.half_life_s == wanted["halfLife_h"] * HOUR
    assert ours.oom_ratio == wanted["oomBumpUpRatio"]
    assert ours.oom_least_bytes == wanted["oomMinBumpUp_bytes"]


def constant_usage(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    book = UsageHistograms()
    minutes = round(given["days"] * 1440)
    book.observe(
        [
            ContainerSample("web", "pod", "app", START + 60.0 * minute, given["cores"], given["bytes"])
            for minute in range(minutes)
        ]
    )
    trust = confidence(book.rows["cpu_first"], book.rows["cpu_last"], book.rows["count"], book.settings.confidence_s)
    assert trust[0] == pytest.approx(wanted["confidence"])
    found = usages(book, START + 60.0 * minutes)["web"].containers["app"]
    for name in ("target", "lower", "upper"):
        size: Size = getattr(found, name)
        assert size == Size(cpu_cores=wanted[name]["cpu_m"] / 1000, memory_bytes=wanted[name]["memory_bytes"]), name


def truncated(case: Case) -> None:
    assert (whole(np.array(case["input"]["cores"]) * CPU_GRAIN)).tolist() == case["expected"]["m"]


# --- samples, memory peaks and OOM kills -----------------------------------------------------------------------------


def observed(case: Case) -> None:
    """The book after the samples equals banks that were given upstream's operations one by one."""
    given, wanted = case["input"], case["expected"]
    book = UsageHistograms()
    for hours, cores in given["cpu"]:
        book.observe([sample(hours, cpu=cores)])
    for hours, size in given["memory"]:
        book.observe([sample(hours, memory=size)])
    cpu, memory = Bank(shapes.CPU, 1, DAY), Bank(shapes.MEMORY, 1, DAY)
    for cores, weight, hours in wanted["cpu_adds"]:
        cpu.add([0], cores, weight, START + hours * HOUR)
    play(memory, wanted["memory_ops"])
    assert same(book.cpu, cpu)
    assert same(book.memory, memory)
    for bad in given["invalid"]:
        book.observe([sample(bad["t"], cpu=bad.get("cpu", np.nan), memory=bad.get("memory", np.nan))])
    assert wanted["invalid_accepted"] == [False] * 3
    assert same(book.cpu, cpu)
    assert same(book.memory, memory)


def windows(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    book = UsageHistograms(HistogramSettings(memory_window_s=given["interval_h"] * HOUR))
    for hours, size in given["samples"]:
        book.observe([sample(hours, memory=size)])
    memory = Bank(shapes.MEMORY, 1, DAY)
    play(memory, wanted.get("ops") or [["add", *add] for add in wanted["adds"]])
    assert same(book.memory, memory)


def oom_sample(case: Case) -> None:
    given = case["input"]
    book = UsageHistograms()
    if given["memoryPeak_MiB"]:
        book.observe([sample(0, memory=given["memoryPeak_MiB"] * MIB)])
    assert book.observe_oom("web", "pod", "app", START, given["request_MiB"] * MIB)
    assert peak_mib(book) == pytest.approx(case["expected"]["sample_MiB"])


def oom_again(case: Case) -> None:
    book, seen = UsageHistograms(), []
    for second, request in enumerate(case["input"]["oom_requests_MiB"]):
        book.observe_oom("web", "pod", "app", START + second, request * MIB)
        seen.append(round(peak_mib(book)))
    assert seen == case["expected"]["peak_MiB_after_each"]


def oom_old(case: Case) -> None:
    given = case["input"]
    book = UsageHistograms(HistogramSettings(memory_window_s=given["interval_h"] * HOUR))
    book.observe([sample(given["oom_age_h"], memory=1000 * MIB)])
    assert book.observe_oom("web", "pod", "app", START, 1000 * MIB) is case["expected"]["accepted"]


def oom_new_window(case: Case) -> None:
    given = case["input"]
    book = UsageHistograms(HistogramSettings(memory_window_s=given.get("interval_h", 24) * HOUR))
    hours, size = given.get("sample") or given["sample_MiB"]
    book.observe([sample(hours, memory=size * MIB)])
    book.observe_oom("web", "pod", "app", START + given["oom"][0] * HOUR, given["oom"][1] * MIB)
    memory = Bank(shapes.MEMORY, 1, DAY)
    play(memory, [["add", size * MIB, hours] for size, hours in case["expected"]["adds"]])
    assert same(book.memory, memory)


def oom_at_boundary(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    book = UsageHistograms()
    for hours, size in given["samples_MiB"]:
        book.observe([sample(hours, memory=size * MIB)])
    oom = given["oom"]
    at = START + oom["t_h"] * HOUR - oom["minus_s"]
    assert book.observe_oom("web", "pod", "app", at, oom["request_MiB"] * MIB)
    assert peak_mib(book) == wanted["final_peak_MiB"]
    assert book.sources["window_end"][0] == START + wanted["window_end_h"] * HOUR


def by_name(case: Case) -> None:
    book = UsageHistograms()
    for source, cores in case["input"]["cpu"].items():
        pod, container = source.split("/")
        book.observe([ContainerSample("web", pod, container, START, cores)])
    found = {name: int(count) for (_, name), count in zip(book.keys(), book.rows["count"], strict=True)}
    assert found == case["expected"]["samples"]


def expires(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    full, empty, short = UsageHistograms(), UsageHistograms(), UsageHistograms(HistogramSettings(memory_windows=4))
    full.observe([sample(0, cpu=1.0)])
    short.observe([sample(0, cpu=1.0)])
    empty.ensure_row("web", "app", START)
    for book in (full, empty):
        assert [bool(book.expired(START + days * DAY)[0]) for days in given["days_since"]] == wanted["expired"]
    hours = given["custom_count_4_hours"]
    assert [bool(short.expired(START + hour * HOUR)[0]) for hour in hours] == wanted["expired_custom"]


def sample(hours: float, cpu: float = np.nan, memory: float = np.nan) -> ContainerSample:
    return ContainerSample("web", "pod", "app", START + hours * HOUR, cpu, memory)


def play(bank: Bank, operations: list[list[Any]]) -> None:
    for name, value, hours in operations:
        change = bank.add if name == "add" else bank.subtract
        change([0], value, 1.0, START + hours * HOUR)


def same(ours: Bank, theirs: Bank) -> bool:
    return np.array_equal(ours.weights, theirs.weights) and np.array_equal(ours.references, theirs.references)


def peak_mib(book: UsageHistograms) -> float:
    return float(max(book.sources["peak"][0], book.sources["oom_peak"][0])) / MIB


# --- rounding, capping, limits, order --------------------------------------------------------------------------------


def rounded_up(case: Case) -> None:
    wanted = case["expected"]
    for (value, scale), result, error in zip(case["input"]["cases"], wanted["values"], wanted["error"], strict=True):
        if error:
            with pytest.raises(InvalidInput):
                round_up_to(value, scale)
        else:
            assert round_up_to(value, scale) == result


def rounded_list(case: Case) -> None:
    for index, one in enumerate(case["input"]["cases"]):
        assert round_up_to(one["cpu"], one["roundCPU"]) == case["expected"]["cpu_m"][index]
        assert round_up_to(one["mem"], one["roundMem"]) == case["expected"]["mem"][index]


def whole_cores(case: Case) -> None:
    for given, wanted in zip(case["input"]["cases"], case["expected"]["cpu"], strict=True):
        rules = tuple(ContainerRule(name=name, whole_cores=True) for name in given["annotated"])
        targets = {name: Size(cpu_cores=cores) for name, cores in given["cpu"].items()}
        found = recommend(targets, Vertical(containers=(*rules, ContainerRule())))
        assert {name: size.cpu_cores for name, size in found.items()} == wanted


def whole_cores_alone(case: Case) -> None:
    vertical = Vertical(containers=(ContainerRule(whole_cores=True),))
    found = [recommend({"app": Size(cpu_cores=cores)}, vertical)["app"].cpu_cores for cores in case["input"]["cpu"]]
    assert found == case["expected"]["cpu"]


def capped(case: Case) -> None:
    """Each of target, lower and upper is capped as a recommendation of its own; the raw target is left alone."""
    given, wanted = case["input"], dict(case["expected"])
    raw = given.get("recommendation", given)
    rule = ContainerRule(least=milli_mib(given["minAllowed"]), most=milli_mib(given["maxAllowed"]))
    vertical = Vertical(containers=(rule,), most=milli_mib(given.get("globalMaxAllowed")), floor=Size())
    uncapped = wanted.pop("uncapped", None)
    assert uncapped is None or uncapped == raw["uncapped"]
    for name, amounts in wanted.items():
        found = recommend({"app": milli_mib(raw[name])}, vertical)["app"]
        assert found == milli_mib(amounts), name


def capped_to_limit(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    limit = milli_mib(given["limit"])
    for name in ("target", "upper"):
        for values, amounts in zip(given["controlledValues"], wanted[name], strict=True):
            asked = milli_mib(given[name])
            found = capped_to_limits(asked, limit) if values == "RequestsOnly" else asked
            assert found == milli_mib(amounts)


def limit_range(case: Case) -> None:
    given, wanted = case["input"], case["expected"]
    found = within(
        Size(cpu_cores=given["target"]["cpu"] / 1000, memory_bytes=given["target"]["memory"]),
        Size(memory_bytes=given["min_memory"]),
        Size(cpu_cores=given["max_cpu_m"] / 1000),
    )
    assert found == Size(cpu_cores=wanted["cpu_m"] / 1000, memory_bytes=wanted["memory"])


def proportional_limit(case: Case) -> None:
    for given, wanted in zip(case["input"]["cases"], case["expected"]["limit"], strict=True):
        limit = given.get("limit", given.get("default"))
        cores = [None if milli is None else milli / 1000 for milli in (given.get("request"), limit)]
        found = limit_for(cores[0], cores[1], given["rec"] / 1000)
        assert found == (None if wanted is None else wanted / 1000)
        if wanted is not None and cores[0] is not None:
            size = ContainerSize(requests=Size(cpu_cores=cores[0]), limits=Size(cpu_cores=cores[1]))
            asked = Size(cpu_cores=given["rec"] / 1000)
            assert resized(size, asked, ContainerRule(), Limits()).limits.cpu_cores == wanted / 1000


def cores(amounts: float | list[float] | None) -> Size:
    both = amounts if isinstance(amounts, list) else [amounts, None]
    return Size(cpu_cores=both[0], memory_bytes=both[1])


def milli_mib(amounts: list[float | None] | None) -> Size:
    cpu, memory = amounts or (None, None)
    return Size(cpu_cores=None if cpu is None else cpu / 1000, memory_bytes=None if memory is None else memory * MIB)


def rule_with(resources: list[str]) -> ContainerRule:
    return ContainerRule(cpu="cpu" in resources, memory="memory" in resources)


def moved(rule: ContainerRule) -> list[str]:
    """The resources that get a recommendation."""
    found = recommend({"app": Size(cpu_cores=1.0, memory_bytes=1e9)}, Vertical(containers=(rule,)))
    size = found.get("app", Size())
    return [name for name, amount in (("cpu", size.cpu_cores), ("memory", size.memory_bytes)) if amount is not None]


def recommend(targets: dict[str, Size], vertical: Vertical | None = None) -> dict[str, Size]:
    """resize() with so much history and so small a request that no safety rule holds anything back."""
    tiny = ContainerSize(requests=Size(cpu_cores=1e-9, memory_bytes=1e-9))
    usage = UsageEstimates(
        made_at=0.0,
        expires_at=1.0,
        containers={name: Estimate(target=target, observed_s=30 * DAY) for name, target in targets.items()},
    )
    seen = Observation(at=0.0, spec_replicas=1, status_replicas=1, sizes=dict.fromkeys(targets, tiny), usage=usage)
    return resize(vertical or Vertical(), seen, Memory(), [])


ADAPTERS: dict[str, Callable[[Case], None]] = {
    "opt-linear": options,
    "opt-exp": options,
    "opt-defaults": default_options,
    "pct-basic": percentiles,
    "pct-empty": percentiles,
    "pct-oob": out_of_bounds,
    "hist-empty": emptied,
    "hist-eps-add": tiny_samples,
    "hist-merge": merged,
    "cp-empty": saved,
    "cp-one": saved,
    "cp-drop": saved,
    "cp-multi": saved,
    "cp-load": loaded,
    "cp-load-err": refused,
    "cp-boundary": reloaded,
    "dec-simple": decayed,
    "dec-long": decayed,
    "dec-pct": percentiles,
    "dec-none": percentiles,
    "dec-merge": merged,
    "est-percentile": estimated,
    "est-confidence": confident,
    "est-confidence-custom": confident,
    "est-confidence-empty": unknown_history,
    "est-margin": margin,
    "est-min": floored,
    "est-multipliers": multipliers,
    "rec-min": floored,
    "rec-min-split": floored,
    "rec-controlled": controlled,
    "rec-sorted": ordered,
    "rec-defaults": defaults,
    "e2e": constant_usage,
    "ctr-agg": observed,
    "ctr-custom-window": windows,
    "ctr-custom-peak": windows,
    "oom": oom_sample,
    "oom-norunaway": oom_again,
    "oom-old": oom_old,
    "oom-custom-old": oom_old,
    "oom-newwindow": oom_new_window,
    "oom-custom-new": oom_new_window,
    "oom-boundary": oom_at_boundary,
    "agg-byname": by_name,
    "agg-expire": expires,
    "agg-mode": container_mode,
    "agg-controlled": controlled_or_default,
    "ty-trunc": truncated,
    "ty-roundup": rounded_up,
    "ty-list": rounded_list,
    "pp-int": whole_cores,
    "pp-int2": whole_cores_alone,
    "cap": capped,
    "cap-limit": capped_to_limit,
    "cap-limitrange": limit_range,
    "lim-prop": proportional_limit,
}


def key_of(case: Case) -> str:
    """The first word of the id, unless the case by itself is excused."""
    name = str(case["id"])
    return name if name in EXCUSED else name.split("-")[0]


EXCUSED: dict[str, Excuse] = {
    "cap-podrange": Excuse.INTERNALS,  # how it shrinks a pod into a LimitRange; here such a size is refused and named
    "upd-priority": Excuse.INTERNALS,  # which pod VPA evicts first; here all that grow are resized in one tick
    "upd-order": Excuse.INTERNALS,
    "ty-humanize": Excuse.INTERNALS,  # how VPA prints with a flag of its own; trimtab.quantity prints here
    "upd-gates": Excuse.INTERNALS,  # VPA's evictions; pods are resized, and the gates of a policy decide when
    "pp-name": Excuse.INTERNALS,  # how it cuts the name out of an annotation
}
