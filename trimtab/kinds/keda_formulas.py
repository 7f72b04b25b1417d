"""KEDA's formulas over triggers as PromQL: arithmetic, comparisons, `&&`, `||`, `!`, `c ? a : b`, min, max and clamp.

Every part is an instant vector of one value without labels. A condition is a pair of filters, one that has an answer
where it is true and one where it is false. Where a trigger has no answer neither has, so the metric is missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\*\*|&&|\|\||[<>=!]=|[-+*/%()<>!?:,]|\s+")
LONGEST_PART = 20_000  # characters; a part is written several times where it is compared
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_POWERS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_ROUNDED = ("abs", "ceil", "floor")


class NotUnderstood(Exception):
    """What a formula says beyond this grammar."""


class FormulaCondition(NamedTuple):
    true: str
    false: str


Part = str | FormulaCondition


def as_promql(formula: str, triggers: Mapping[str, str]) -> str:
    """Return the formula as one query; `triggers` are the queries of its names, in brackets."""
    words = WORD.findall(formula)
    if "".join(words) != formula:
        raise NotUnderstood("a part of it")
    if not set(words) & set(triggers):
        raise NotUnderstood("a formula without a trigger")
    reader = _Reader([word for word in words if not word.isspace()], triggers)
    try:
        found = reader.choice()
    except RecursionError:
        raise NotUnderstood("so deep a nesting") from None
    if reader.words:
        raise NotUnderstood(reader.words[0])
    return _number(found)


class _Reader:
    """Recursive descent, one method for each level of precedence, the loosest first."""

    def __init__(self, words: list[str], triggers: Mapping[str, str]) -> None:
        self.words, self.triggers = words, triggers

    def choice(self) -> Part:
        condition = self.either()
        if not self._takes("?"):
            return condition
        chosen = _number(self.choice())
        self._expect(":")
        other, (true, false) = _number(self.choice()), _condition(condition)
        return _bounded(f"(({chosen} and {true}) or ({other} and {false}))")

    def either(self) -> Part:
        found = self.both()
        while self._takes("||", "or"):
            one, other = _condition(found), _condition(self.both())
            found = FormulaCondition(
                _bounded(f"({one.true} or {other.true})"), _bounded(f"({one.false} and {other.false})")
            )
        return found

    def both(self) -> Part:
        found = self.compared()
        while self._takes("&&", "and"):
            one, other = _condition(found), _condition(self.compared())
            found = FormulaCondition(
                _bounded(f"({one.true} and {other.true})"), _bounded(f"({one.false} or {other.false})")
            )
        return found

    def compared(self) -> Part:
        if self._takes("!", "not"):
            negated = _condition(self.compared())
            return FormulaCondition(negated.false, negated.true)
        left = self.sum()
        if self.words and self.words[0] in _OPPOSITE:
            how, one = self.words.pop(0), _number(left)
            other = _number(self.sum())
            return FormulaCondition(_bounded(f"({one} {how} {other})"), _bounded(f"({one} {_OPPOSITE[how]} {other})"))
        return left

    def sum(self, power: int = 1) -> Part:
        left = self.sum(power + 1) if power < 2 else self.single()
        while self.words and _POWERS.get(self.words[0]) == power:
            how = self.words.pop(0)
            right = _number(self.sum(power + 1) if power < 2 else self.single())
            left = _bounded(f"({_number(left)} {how} {right})")
        return left

    def single(self) -> Part:
        if self._takes("-"):
            return f"(0 - {_number(self.single())})"
        if self._takes("("):
            found = self.choice()
            self._expect(")")
            return found
        word = self.words.pop(0) if self.words else ""
        if word in self.triggers and not (self.words and self.words[0] == "("):
            return f"(vector(scalar{self.triggers[word]}) >= -Inf)"  # a missing answer is NaN, which is not
        if word[:1].isdigit():
            return f"vector({word})"
        self._expect("(")
        return self._function(word, self._arguments())

    def _arguments(self) -> list[str]:
        found = [_number(self.choice())]
        while self._takes(","):
            found.append(_number(self.choice()))
        self._expect(")")
        return found

    def _function(self, name: str, given: list[str]) -> str:
        if name in ("min", "max"):
            return reduce(lambda one, other: _extreme(name, one, other), given)
        if name == "clamp" and len(given) == 3:
            value, least, most = given
            return _extreme("min", _extreme("max", value, least), most)
        if name in _ROUNDED and len(given) == 1:
            return f"{name}({given[0]})"
        raise NotUnderstood(f"{name}()")

    def _takes(self, *words: str) -> bool:
        if self.words and self.words[0] in words and self.words[0] not in self.triggers:
            del self.words[0]
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._takes(word):
            raise NotUnderstood(self.words[0] if self.words else "its end")


def _extreme(name: str, one: str, other: str) -> str:
    keeps, gives = ("<=", "<") if name == "min" else (">=", ">")
    return _bounded(f"(({one} {keeps} {other}) or ({other} {gives} {one}))")


def _number(part: Part) -> str:
    if isinstance(part, FormulaCondition):
        raise NotUnderstood("a condition where a number is needed")
    return part


def _condition(part: Part) -> FormulaCondition:
    if isinstance(part, FormulaCondition):
        return part
    raise NotUnderstood("a number where a condition is needed")


def _bounded(text: str) -> str:
    """Parts are repeated: a deep formula would grow without end."""
    if len(text) > LONGEST_PART:
        raise NotUnderstood("so many nested comparisons")
    return text
