"""keys: whose demand is remembered, and under which names: one for each signal of an object."""

from __future__ import annotations

from zlib import crc32

import msgspec

from trimtab.core.demand.total import is_per_pod
from trimtab.policy import Policy, TuningMode


def remembers_demand(policy: Policy) -> bool:
    """Whether somebody will ask for its past: a forecast, or tuning."""
    return policy.forecast is not None or policy.tuning.mode is not TuningMode.OFF


def keys_of(owner: str, policy: Policy) -> tuple[str, ...]:
    return tuple(f"{owner}/{name}" for name in names_of(policy))


def names_of(policy: Policy) -> tuple[str, ...]:
    """A signal that is edited to measure something else is another one: its past is not mixed with the old one's."""
    per_pod = is_per_pod(policy)
    marks = (crc32(msgspec.msgpack.encode((signal.metric, per_pod))) for signal in policy.signals)
    return tuple(f"{index}-{mark:08x}" for index, mark in enumerate(marks))
