"""`--fail-if`: limits on the figures of a backtest, so that it can be a check of a change.

"violations > 1%", "cost >= 1.5", "churn > 200"; with a sign the value is relative to the first policy: "j > +2%".
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.tune.backtest import Outcome

FIGURES = ("cost", "violations", "churn", "j", "regret", "worst", "under", "over", "slack", "oom", "podHours")
PERCENT = ("violations", "worst", "under", "over", "slack", "oom")  # these are percent already
_ALSO = {"churn/day": "churn", "pod hours": "podHours", "worst hour": "worst"}  # as the table heads them
_KNOWN = {name.lower(): name for name in FIGURES} | _ALSO
_LIMIT = re.compile(r"\s*([\w/ ]*\w)\s*(>=|<=|>|<)\s*([+-]?)(\d+\.?\d*|\.\d+)\s*(%?)\s*")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Limit(NamedTuple):
    text: str
    figure: str
    compare: str
    value: float
    relative: bool


def parse_limit(text: str) -> Limit:
    match = _LIMIT.fullmatch(text)
    if match is None or match[1].lower() not in _KNOWN:
        known = ", ".join(FIGURES)
        raise InvalidInput("--fail-if", text, f"write FIGURE > VALUE, such as 'violations > 1%'; figures are {known}")
    word, compare, sign, number, percent = match.groups()
    figure = _KNOWN[word.lower()]
    value = float(f"{sign}{number}")
    if sign and not percent:
        raise InvalidInput("--fail-if", text, "a value with a sign is a difference to the first policy: write it in %")
    if percent and (sign or figure not in PERCENT):
        value /= 100.0
    return Limit(text.strip(), figure, compare, value, bool(sign))


def broken(limit: Limit, outcome: Outcome, first: Outcome) -> str:
    """What is over the limit, or nothing."""
    found = outcome.figures()[limit.figure]
    bound = first.figures()[limit.figure] * (1 + limit.value) if limit.relative else limit.value
    if not _COMPARE[limit.compare](found, bound):
        return ""
    against = f"{bound:.4g} ({limit.text}, against {first.policy})" if limit.relative else limit.text
    return f"{outcome.policy}: {limit.figure} is {found:.4g}: {against}"
