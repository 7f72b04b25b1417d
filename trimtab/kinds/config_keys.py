"""The configuration keys of Crane's HPA recommendation and of its later versions: what each means, in which unit.

`ehpa.KEY`, `replicas.KEY` and plain KEY are one key; `resource.KEY` belongs to the requests of containers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds import config_texts
from trimtab.kinds.annotations import ALGORITHM, TIMEZONE
from trimtab.kinds.problems import nearest
from trimtab.policy import Advice, Inspection
from trimtab.quantity import GIB

SPECIFICATION, LADDER = "specification", "specification-config"
_PREFIXES = ("ehpa.", "replicas.")
_RESOURCE = "resource."


class Key(NamedTuple):
    field: str
    read: Callable[[str], Any]


_KEYS = {
    "deployment-min-replicas": Key("deployment_min_replicas", config_texts.whole),
    "statefulset-min-replicas": Key("statefulset_min_replicas", config_texts.whole),
    "workload-min-replicas": Key("workload_min_replicas", config_texts.whole),
    "pod-min-ready-seconds": Key("pod_min_ready_s", config_texts.number),
    "pod-available-ratio": Key("pod_available_ratio", config_texts.ratio),
    "default-min-replicas": Key("default_min_replicas", config_texts.whole),
    "max-replicas-factor": Key("max_replicas_factor", config_texts.number),
    "min-cpu-usage-threshold": Key("min_cpu_usage_cores", config_texts.cores),
    "fluctuation-threshold": Key("fluctuation_threshold", config_texts.number),
    "min-cpu-target-utilization": Key("min_cpu_target_percent", config_texts.percent),
    "max-cpu-target-utilization": Key("max_cpu_target_percent", config_texts.percent),
    "reference-hpa": Key("reference_hpa", config_texts.flag),
    "predictable": Key("must_be_predictable", config_texts.flag),
    "cpu-percentile": Key("cpu_percentile", config_texts.share),
    "cpu-target-utilization": Key("cpu_target_ratio", config_texts.share),
    "mem-target-utilization": Key("memory_target_ratio", config_texts.share),
}
_RESOURCE_KEYS = {
    "cpu-request-percentile": Key("request_percentile", config_texts.share),
    "cpu-request-margin-fraction": Key("request_margin", config_texts.number),
    "cpu-model-history-length": Key("history_s", config_texts.seconds),
    "oom-protection": Key("oom_protection", config_texts.flag),
    "oom-bump-ratio": Key("oom_bump_ratio", config_texts.number),
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
    keys = {ALGORITHM: Key("algorithm", config_texts.algorithm), TIMEZONE: Key("timezone", config_texts.zone)}
    keys |= {LADDER: Key("size_ladder", config_texts.ladder), SPECIFICATION: Key("", config_texts.flag)}
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
        low = config_texts.percent(config[least]) if least else usual.min_cpu_target_percent
        high = config_texts.percent(config[most]) if most else usual.max_cpu_target_percent
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
    keys |= {ALGORITHM: Key("algorithm", config_texts.algorithm), TIMEZONE: Key("timezone", config_texts.zone)}
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
