"""The compiled engine's dispatch over `core.settle.stateless`, written from that table: a rule exists once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from trimtab.core.settle.context import ratio_to
from trimtab.core.settle.stateless import STATELESS
from trimtab.sim.compiled import shared
from trimtab.sim.program import FIRST_STATELESS

shared(ratio_to, *(rule.function for rule in STATELESS.values()))


def _write_dispatch() -> str:
    """Write one branch per rule; compiled code cannot look a function up in a dict."""
    lines = ["def settle_stateless(code, rules, index, replicas, ratio, current):"]
    for number, kind in enumerate(STATELESS):
        fields = [f"rules[index, {column}]" for column in range(1, 1 + len(kind.__struct_fields__))]  # type: ignore[attr-defined]
        arguments = ", ".join(["replicas", "ratio", "current", *fields])
        lines.append(f"    if code == {FIRST_STATELESS + number}:")
        lines.append(f"        return function_{number}({arguments})")
    return "\n".join([*lines, "    return replicas, ratio", ""])


def _compile_dispatch() -> Callable[..., tuple[float, float]]:
    names: dict[str, Any] = {f"function_{number}": rule.function for number, rule in enumerate(STATELESS.values())}
    names["__name__"] = __name__
    exec(_write_dispatch(), names)  # noqa: S102 (the source is written above, from our own table)
    # Without a cache of its own: there is no file to compare with. The loop that calls it is cached with it.
    return numba.njit(nogil=True)(names["settle_stateless"])  # type: ignore[no-any-return]


settle_stateless = _compile_dispatch()
