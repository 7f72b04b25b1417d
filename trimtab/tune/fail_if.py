"""`--fail-if`: conditions on the figures of a backtest, so that it can be a check of a change.

"violations > 1%", "cost >= 1.5", "churn > 200"; with a sign the value is relative to the first policy: "j > +2%".
A percentage without a sign is refused where the figure is no percentage.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.tune.case import Outcome

FIGURES = (
    "cost",
    "violations",
    "churn",
    "j",
    "regret",
    "worst",
    "under",
    "over",
    "slack",
    "oom",
    "podHours",
    "resizes",
)
PERCENT = ("violations", "worst", "under", "over", "slack", "oom")  # these are percent already
AS_PERCENT = (*PERCENT, "regret")  # as the table prints them
_ALSO = {"churn/day": "churn", "pod hours": "podHours", "worst hour": "worst"}  # as the table heads them
_KNOWN = {name.lower(): name for name in FIGURES} | _ALSO
_CONDITION = re.compile(r"\s*([\w/ ]*\w)\s*(>=|<=|>|<)\s*([+-]?)(\d+(?:\.\d*)?|\.\d+)\s*(%?)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class FailIf(NamedTuple):
    text: str
    figure: str
    compare: str
    value: float
    relative: bool


def parse_fail_if(text: str) -> FailIf:
    match = _CONDITION.fullmatch(text)
    if match is None or match[1].lower() not in _KNOWN:
        known = ", ".join(FIGURES)
        raise InvalidInput("--fail-if", text, f"write FIGURE > VALUE, such as 'violations > 1%'; figures are {known}")
    word, compare, sign, number, percent = match.groups()
    figure = _KNOWN[word.lower()]
    value = float(f"{sign}{number}")
    if sign and not percent:
        raise InvalidInput("--fail-if", text, "a value with a sign is a difference to the first policy: write it in %")
    if percent and not sign and figure not in AS_PERCENT:
        relative, plain = f"{word} {compare} +{number}%", f"{word} {compare} {value / 100:g}"
        fix = f"write '{relative}' for {number} % more than the first policy, or '{plain}' for the figure itself"
        raise InvalidInput("--fail-if", text, fix)
    if percent and (sign or figure not in PERCENT):
        value /= 100.0
    return FailIf(text.strip(), figure, compare, value, bool(sign))


def failure(fail_if: FailIf, outcome: Outcome, first: Outcome) -> str:
    """What fails, or nothing."""
    found = outcome.by_name()[fail_if.figure]
    bound = first.by_name()[fail_if.figure] * (1 + fail_if.value) if fail_if.relative else fail_if.value
    if not _COMPARE[fail_if.compare](found, bound):
        return ""
    against = f"{bound:.4g} ({fail_if.text}, against {first.policy})" if fail_if.relative else fail_if.text
    return f"{outcome.policy}: {fail_if.figure} is {found:.4g}: {against}"
