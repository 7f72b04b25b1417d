"""Values of configuration keys from their text; what cannot be read is a ValueError that says the fix."""

from __future__ import annotations

from trimtab.errors import InvalidInput
from trimtab.kinds.cron import zone_of
from trimtab.policy import AdviceAlgorithm
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
