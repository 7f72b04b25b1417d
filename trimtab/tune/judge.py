"""What J is measured by: a price for load that meets too few pods, and how much a pod may carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.policy import Objective, Policy


class Judge(NamedTuple):
    """`note` says where it comes from, unless from nobody's word."""

    objective: Objective
    note: str = ""


def judge_of(policies: Iterable[Policy], price: float | None = None) -> Judge:
    """The first objective that is written, else the balanced one; a price that is given wins."""
    written = next((policy.objective for policy in policies if policy.objective), None)
    if written is None:
        return Judge(Objective() if price is None else Objective(price=price))
    own = f"the objective that is written (price {written.price:g}, service level {written.service_level:g})"
    if price is None or price == written.price:
        return Judge(written, f"judged by {own}")
    return Judge(replace(written, price=price), f"judged by a price of {price:g}, not by {own}")
