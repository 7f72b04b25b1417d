"""Quantities as Kubernetes and Go write them: "250m", "1Gi", "5m30s". The only parser and the only formatter."""

from __future__ import annotations

import re
from decimal import Decimal
from math import copysign

from trimtab.errors import InvalidInput

KIB, MIB, GIB = 1024, 1024**2, 1024**3
LARGEST = 2.0**63  # Kubernetes keeps no larger one; room to multiply it by anything

LEAST = 1e-9  # nor any finer one: Kubernetes rounds up to a nano

OUT_OF_RANGE = "this number is out of range: write one up to 9E"
_NANO = Decimal("1e-9")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_SCALE = {suffix: Decimal(10) ** exponent for suffix, exponent in _DECIMAL.items()}
_SCALE |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"  # one way to read it: `\d+\.?\d*` takes years for a page of digits
_QUANTITY = re.compile(rf"([+-]?{_NUMBER})(?:([eE][+-]?[0-9]+)|([a-zA-Z]*))")

_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(rf"({_NUMBER})(ns|us|µs|ms|s|m|h|d)")
_DURATIONS = re.compile(f"(?:{_DURATION.pattern})+")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def parse_quantity(text: str | int | float, path: str = "") -> float:
    """The number a Kubernetes quantity stands for: "250m" is 0.25, "1Ki" is 1024."""
    match = _QUANTITY.fullmatch(str(text).strip())
    if match is None or (match[3] or "") not in _SCALE:
        raise InvalidInput(path, text, 'write a quantity such as "250m", "1.5", "512Mi" or "2G"')
    try:
        exact = Decimal(match[1] + (match[2] or "")) * _SCALE[match[3] or ""]
        return _in_range(float(exact), text, path) if abs(exact) >= _NANO or not exact else copysign(LEAST, exact)
    except ArithmeticError as error:  # decimal has its own Overflow
        raise InvalidInput(path, text, OUT_OF_RANGE) from error


def parse_duration(text: str | int | float, path: str = "") -> float:
    """Seconds of a Go duration ("1h30m", "90s", "500ms", "7d") or of a bare number of seconds."""
    written = str(text).strip()
    if _SECONDS.fullmatch(written):
        return _in_range(float(written), text, path)
    if not _DURATIONS.fullmatch(written):
        raise InvalidInput(path, text, 'write a duration such as "30s", "5m" or "1h30m"')
    return _in_range(sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION.findall(written)), text, path)


def is_whole(text: str) -> bool:
    """Digits and nothing else; `isdecimal` alone takes those of every script, and so does `int`."""
    return text.isascii() and text.isdecimal()


def _in_range(value: float, text: str | int | float, path: str) -> float:
    if not abs(value) <= LARGEST:
        raise InvalidInput(path, text, OUT_OF_RANGE)
    return value


def format_cpu(cores: float) -> str:
    """Whole cores as "2", everything else in millicores as "250m"."""
    milli = round(cores * 1000)
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


_MEMORY_UNITS = ((GIB, "Gi"), (MIB, "Mi"), (KIB, "Ki"), (10**9, "G"), (10**6, "M"), (10**3, "k"), (1, ""))


def format_memory(size_bytes: float) -> str:
    """In the unit that needs the smallest whole number: 2**30 is "1Gi", 2 * 10**9 is "2G"."""
    whole = round(size_bytes)
    counts = [(whole // scale, suffix) for scale, suffix in _MEMORY_UNITS if whole % scale == 0]
    count, suffix = min(counts, key=lambda counted: abs(counted[0])) if whole else (0, "")
    return f"{count}{suffix}"


def describe_memory(size_bytes: float) -> str:
    """For people: exact where that is short, else three digits, such as "1.91Gi"."""
    exact = format_memory(size_bytes)
    if len(exact) <= 6:
        return exact
    scale, suffix = next((unit for unit in _MEMORY_UNITS[:3] if abs(size_bytes) >= unit[0]), (1, ""))
    return f"{size_bytes / scale:.3g}{suffix}"


def format_number(value: float) -> str:
    """A metric value as HPA prints it: whole numbers bare, others in milli."""
    milli = round(value * 1000)
    return str(milli // 1000) if milli % 1000 == 0 else f"{milli}m"


def format_duration(seconds: float) -> str:
    """ "1h30m", "5m", "45s": the two largest units that are not zero."""
    left = round(seconds)
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"
