"""Option types that several commands share: lists separated by commas, durations, the price of violations."""

from __future__ import annotations

from math import isfinite

import click

from trimtab.errors import InvalidInput
from trimtab.quantity import parse_duration

OBJECTIVES = {"savings": 8.0, "balanced": 32.0, "reliability": 128.0}


def words(text: str) -> list[str]:
    """a,b,c"""
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise click.BadParameter("name at least one")
    return found


def duration(text: str) -> float:
    """2m, as seconds"""
    try:
        return parse_duration(text)
    except InvalidInput as error:
        raise click.BadParameter(str(error)) from None


def durations(text: str) -> list[float]:
    """30s,2m,10m"""
    return [duration(word) for word in words(text)]


def price(text: str) -> float:
    """A positive number"""
    try:
        number = float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None
    if not (isfinite(number) and number > 0):
        raise click.BadParameter(f"{text!r} must be positive")
    return number


def prices(text: str) -> list[float]:
    """8,32,128"""
    return [price(word) for word in words(text)]


def objective(text: str) -> float:
    """savings, balanced, reliability, or what one violated pod-minute of load is worth in pod-minutes"""
    return OBJECTIVES[text] if text in OBJECTIVES else price(text)
