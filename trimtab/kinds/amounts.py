"""The scalar types of manifests: whole numbers, quantities, durations, each with its schema for the API server."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from trimtab.errors import InvalidInput
from trimtab.quantity import parse_duration, parse_quantity

INT32 = 2**31 - 1

_SUFFIX = r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$"
ANY_QUANTITY = r"^\+?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))" + _SUFFIX
ABOVE_ZERO = r"^\+?(0*[1-9][0-9]*(\.[0-9]*)?|0*\.0*[1-9][0-9]*)" + _SUFFIX
DURATION = r"^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h|d))+$"
_LONGEST = 32

Count = Annotated[int, Field(ge=1, le=INT32, json_schema_extra={"format": "int32"})]
CountOrZero = Annotated[int, Field(ge=0, le=INT32, json_schema_extra={"format": "int32"})]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


def _checker(pattern: str, fix: str, fractions: bool) -> Callable[[object], object]:
    compiled = re.compile(pattern)

    def check(value: object) -> object:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if isinstance(value, float) and not fractions and not value.is_integer():
            raise PydanticCustomError("quantity", 'quote it: "{value}"', {"value": str(value)})
        if (isinstance(value, str) or number) and len(str(value)) <= _LONGEST and compiled.fullmatch(str(value)):
            number_of(str(value), parse_quantity)
            return value
        raise PydanticCustomError("quantity", fix.replace("{", "{{"))

    return check


def number_of(text: str, parse: Callable[[str], float]) -> float:
    """What a text in the right form stands for: a form alone still has room for more than any number can be."""
    try:
        return parse(text)
    except InvalidInput as problem:
        raise PydanticCustomError("range", problem.fix.replace("{", "{{")) from None


_NON_NEGATIVE = 'write a quantity such as "250m", "1.5", "512Mi" or "2G"'
_POSITIVE = 'write a quantity above zero such as "250m", "1.5", "512Mi" or "2G"'


def _int_or_string(pattern: str) -> WithJsonSchema:
    schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return WithJsonSchema(schema | {"pattern": pattern, "maxLength": _LONGEST, "minimum": 0})


def _open(pattern: str, **bounds: Any) -> WithJsonSchema:
    """Kubernetes' own API takes fractions without quotes here; only an open schema lets them through."""
    return WithJsonSchema({"x-kubernetes-preserve-unknown-fields": True, "pattern": pattern, "minimum": 0, **bounds})


# An amount of CPU, memory or anything else, zero allowed: whole numbers or quoted quantities.
Quantity = Annotated[
    str | int, PlainValidator(_checker(ANY_QUANTITY, _NON_NEGATIVE, False)), _int_or_string(ANY_QUANTITY)
]
# The targets of autoscaling/v2, above zero.
Target = Annotated[
    str | int | float,
    PlainValidator(_checker(ABOVE_ZERO, _POSITIVE, True)),
    _open(ABOVE_ZERO, exclusiveMinimum=True),
]
# The tolerance of autoscaling/v2 and shares in percent, zero allowed: fractions without quotes, too.
BareQuantity = Annotated[
    str | int | float, PlainValidator(_checker(ANY_QUANTITY, _NON_NEGATIVE, True)), _open(ANY_QUANTITY)
]


def _check_duration(value: object) -> object:
    if isinstance(value, str) and len(value) <= _LONGEST and re.fullmatch(DURATION, value):
        number_of(value, parse_duration)
        return value
    raise PydanticCustomError("duration", 'write a duration such as "30s", "5m" or "1h30m"')


Duration = Annotated[
    str,
    PlainValidator(_check_duration),
    WithJsonSchema({"type": "string", "pattern": DURATION, "maxLength": _LONGEST}),
]


def amount(value: str | int | float | None) -> float | None:
    """The number of a quantity that has been checked; None stays None."""
    return None if value is None else parse_quantity(value)
