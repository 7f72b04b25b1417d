"""The configuration keys of Crane's HPA recommendation and of its later versions: what each means, in which unit.

`ehpa.KEY`, `replicas.KEY` and plain KEY are one key; `resource.KEY` belongs to the requests of containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import ALGORITHM, TIMEZONE
from trimtab.kinds.cron import zone_of
from trimtab.kinds.problems import nearest
from trimtab.policy import Advice, AdviceAlgorithm, Inspection
from trimtab.quantity import GIB, is_whole, parse_duration


def whole(text: str) -> int:
    if not is_whole(text):
        raise ValueError('write a whole number such as "2"')
    return int(text)


def number(text: str) -> float:
    return _bounded(text, 1e9, 'write a number such as "1.5"')


def cores(text: str) -> float:
    return _bounded(text, 1e6, 'write a number of cores such as "0.5" or "10"')


def ratio(text: str) -> float:
    return _bounded(text, 1.0, 'write a ratio from 0 to 1 such as "0.5"')


def share(text: str) -> float:
    """A ratio; the second generation wrote percent, which no ratio can be mistaken for."""
    value = _bounded(text, 100.0, 'write a ratio such as "0.95", or a percentage such as "95"')
    return value / 100.0 if value > 1.0 else value


def percent(text: str) -> int:
    if not is_whole(text) or not 1 <= int(text) <= 100:
        raise ValueError('write a whole percentage from 1 to 100 such as "75"')
    return int(text)


def seconds(text: str) -> float:
    try:
        return parse_duration(text)
    except InvalidInput as problem:
        raise ValueError(problem.fix) from None


def flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError('write "true" or "false"')
    return text == "true"


def algorithm(text: str) -> AdviceAlgorithm:
    if text not in tuple(AdviceAlgorithm):
        raise ValueError('write "exact" (Crane\'s tutorial as written) or "crane" (its program\'s numbers)')
    return AdviceAlgorithm(text)


def zone(text: str) -> str:
    try:
        zone_of(text)
    except InvalidInput:
        raise ValueError('write a time zone such as "Europe/Berlin" or "UTC"') from None
    return text


def ladder(text: str) -> tuple[tuple[float, float], ...]:
    """Sizes such as "0.25c0.25g,1c2g": cores and GiB."""
    steps = []
    for step in filter(None, (part.strip() for part in text.split(","))):
        size, mark, rest = step.partition("c")
        if not mark or not rest.endswith("g"):
            raise ValueError('write sizes such as "0.25c0.25g,1c2g" (cores and GiB)')
        steps.append((cores(size), number(rest[:-1]) * GIB))
    return tuple(steps)


def _bounded(text: str, most: float, fix: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(fix) from None
    if not 0.0 <= value <= most:
        raise ValueError(fix)
    return value


SPECIFICATION, LADDER = "specification", "specification-config"
_PREFIXES = ("ehpa.", "replicas.")
_RESOURCE = "resource."


class Key(NamedTuple):
    field: str
    read: Callable[[str], Any]


_KEYS = {
    "deployment-min-replicas": Key("deployment_min_replicas", whole),
    "statefulset-min-replicas": Key("statefulset_min_replicas", whole),
    "workload-min-replicas": Key("workload_min_replicas", whole),
    "pod-min-ready-seconds": Key("pod_min_ready_s", number),
    "pod-available-ratio": Key("pod_available_ratio", ratio),
    "default-min-replicas": Key("default_min_replicas", whole),
    "max-replicas-factor": Key("max_replicas_factor", number),
    "min-cpu-usage-threshold": Key("min_cpu_usage_cores", cores),
    "fluctuation-threshold": Key("fluctuation_threshold", number),
    "min-cpu-target-utilization": Key("min_cpu_target_percent", percent),
    "max-cpu-target-utilization": Key("max_cpu_target_percent", percent),
    "reference-hpa": Key("reference_hpa", flag),
    "predictable": Key("must_be_predictable", flag),
    "cpu-percentile": Key("cpu_percentile", share),
    "cpu-target-utilization": Key("cpu_target_ratio", share),
    "mem-target-utilization": Key("memory_target_ratio", share),
}
_RESOURCE_KEYS = {
    "cpu-request-percentile": Key("request_percentile", share),
    "cpu-request-margin-fraction": Key("request_margin", number),
    "cpu-model-history-length": Key("history_s", seconds),
    "oom-protection": Key("oom_protection", flag),
    "oom-bump-ratio": Key("oom_bump_ratio", number),
}
# Upstream has them; here they mean nothing (`ignored.py` says so to the user).
IGNORED_KEYS = frozenset(
    f"{_RESOURCE}{name}"
    for name in (
        "cpu-sample-interval",
        "mem-sample-interval",
        "mem-request-percentile",
        "mem-request-margin-fraction",
        "mem-model-history-length",
        "cpu-target-utilization",
        "mem-target-utilization",
        "cpu-histogram-bucket-size",
        "cpu-histogram-max-value",
        "mem-histogram-bucket-size",
        "mem-histogram-max-value",
        "cpu-model-history-completion-check",
        "history-completion-check",
        "oom-history-length",
    )
) | {"mem-percentile", "creation-cooldown"}


def known_keys(advice: Advice) -> dict[str, Key]:
    """Every spelling that is understood for this kind of advice."""
    keys = {ALGORITHM: Key("algorithm", algorithm), TIMEZONE: Key("timezone", zone)}
    keys |= {LADDER: Key("size_ladder", ladder), SPECIFICATION: Key("", flag)}
    keys |= {f"{_RESOURCE}{name}": key for name, key in _RESOURCE_KEYS.items()}
    keys |= {f"{_RESOURCE}{name}": keys[name] for name in (SPECIFICATION, LADDER)}
    if advice is Advice.RESOURCE:
        keys |= _RESOURCE_KEYS
    keys |= {f"{prefix}{name}": key for name, key in _KEYS.items() for prefix in ("", *_PREFIXES)}
    return keys


def plain(name: str) -> str:
    """A key without the prefix of its generation."""
    return next((name.removeprefix(prefix) for prefix in _PREFIXES if name.startswith(prefix)), name)


def ignored(name: str, advice: Advice) -> bool:
    bare = f"{_RESOURCE}{name}" if advice is Advice.RESOURCE else name
    return plain(name) in IGNORED_KEYS or name in IGNORED_KEYS or bare in IGNORED_KEYS


def config_problems(config: Mapping[str, str], advice: Advice) -> Iterator[InvalidInput]:
    """Unknown keys with the nearest right one, values out of their unit, one key written twice."""
    known, seen = known_keys(advice), dict[str, str]()
    for name, value in config.items():
        if name not in known:
            if not ignored(name, advice):
                near = nearest(name, list(known))
                fix = f"there is no such key; did you mean {near}?" if near else "there is no such key"
                yield InvalidInput(name, value, fix)
            continue
        try:
            known[name].read(value)
        except ValueError as error:
            yield InvalidInput(name, value, str(error))
        if plain(name) in seen:
            yield InvalidInput(name, value, f"this is {seen[plain(name)]} again; write one of them")
        seen[plain(name)] = name
    yield from _out_of_order(config, seen)


def _out_of_order(config: Mapping[str, str], seen: Mapping[str, str]) -> Iterator[InvalidInput]:
    """No target is both above the least and below the most utilisation when these cross, defaults included."""
    least, most = (seen.get(f"{end}-cpu-target-utilization") for end in ("min", "max"))
    usual = Inspection()
    try:
        low = percent(config[least]) if least else usual.min_cpu_target_percent
        high = percent(config[most]) if most else usual.max_cpu_target_percent
    except ValueError:  # named already
        return
    if low > high and least:
        yield InvalidInput(least, config[least], f"put it at or below max-cpu-target-utilization, which is {high}")
    elif low > high and most:
        yield InvalidInput(most, config[most], f"put it at or above min-cpu-target-utilization, which is {low}")


def settings_of(config: Mapping[str, str], advice: Advice) -> dict[str, Any]:
    """The fields of an Inspection that a checked config sets."""
    known = known_keys(advice)
    values = {known[name].field: known[name].read(value) for name, value in config.items() if name in known}
    wanted = config.get(SPECIFICATION, config.get(f"{_RESOURCE}{SPECIFICATION}", "false")) == "true"
    if wanted:
        values.setdefault("size_ladder", DEFAULT_LADDER)
    else:
        values.pop("size_ladder", None)
    values.pop("", None)
    return values


def effective(inspection: Inspection) -> dict[str, str]:
    """The configuration in force, by Crane's keys, defaults included."""
    keys = _KEYS | {f"{_RESOURCE}{name}": key for name, key in _RESOURCE_KEYS.items()}
    keys |= {ALGORITHM: Key("algorithm", algorithm), TIMEZONE: Key("timezone", zone)}
    return {name: _written(getattr(inspection, key.field)) for name, key in sorted(keys.items())}


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


# Upstream's 29 sizes: GiB for each number of cores.
_SIZES = {
    0.25: (0.25, 0.5, 1),
    0.5: (0.5, 1),
    1: (1, 2, 4, 8),
    2: (2, 4, 8, 16),
    4: (4, 8, 16, 32),
    8: (8, 16, 32, 64),
    16: (32, 64, 128),
    32: (64, 128, 256),
    64: (128, 256),
}
DEFAULT_LADDER = tuple((float(cores), gib * GIB) for cores, sizes in _SIZES.items() for gib in sizes)
