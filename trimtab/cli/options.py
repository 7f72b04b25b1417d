"""Option types that several commands share: numbers, lists, durations, the price of violations, files to write."""

from __future__ import annotations

import os
from contextlib import suppress
from math import isfinite
from pathlib import Path
from typing import Any

import click

from trimtab.errors import InvalidInput
from trimtab.quantity import parse_duration
from trimtab.sim.prices import OBJECTIVES

HIGHEST_PRICE = 1e6  # a violated pod-minute worth two years of a pod: more cannot be meant


class Finite(click.FloatRange):
    """A number in a range; `nan` and `inf` compare with nothing and would slip through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number: float = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value!r} is not a number to count with.", param, ctx)


class OutFile(click.Path):
    """A file that will be written, its folder made where it is missing. What cannot be is said before the work."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(str(super().convert(value, param, ctx)))
        if str(path) == "-":
            self.fail("name a file; -o says what goes to the standard output.", param, ctx)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
        place = path if path.exists() else path.parent
        if not (path.parent.is_dir() and os.access(place, os.W_OK)):
            self.fail(f"{str(path)!r}: name a file in a folder that may be written to.", param, ctx)
        return path


OUT_FILE = OutFile(dir_okay=False)


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
    if number > HIGHEST_PRICE:
        raise click.BadParameter(f"{text!r} is more than {HIGHEST_PRICE:g}")
    return number


def prices(text: str) -> list[float]:
    """8,32,128"""
    return [price(word) for word in words(text)]


def objective(text: str) -> float:
    """savings, balanced, reliability, or what one violated pod-minute of load is worth in pod-minutes"""
    try:
        return OBJECTIVES[text] if text in OBJECTIVES else price(text)
    except click.BadParameter as error:
        raise click.BadParameter(f"{error.message}; write {', '.join(OBJECTIVES)} or a number") from None
