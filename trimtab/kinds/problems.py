"""pydantic's errors in our words: the path as a user would type it, the value found there, and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds.manifest_part import ABSENT, PROBLEMS, shown

MOST = 50  # of one object; nobody mends more at once
_FIXES = {
    "missing": "add it",
    "int_type": "write a whole number, without quotes",
    "int_from_float": "write a whole number",
    "float_type": "write a number, without quotes",
    "finite_number": "write a finite number",
    "bool_type": "write true or false, without quotes",
    "string_type": "write text; quote it if YAML takes it for something else",
    "list_type": "write a list",
    "dict_type": "write a mapping (name: value)",
    "model_type": "write a mapping (name: value)",
    "model_attributes_type": "write a mapping (name: value)",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "string_too_long": "must not be longer than {max_length} characters",
    "too_short": "must have at least {min_length} item",
    "too_long": "must have at most {max_length} items",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "write one of: {expected}",
}


_V1 = "targetCPUUtilizationPercentage"  # the field that only autoscaling/v1 has
_OF_HVPA_V2 = "it is of hvpa-v2; write buckets: [{replicas: {min, max}, cpu: {min, max}, memory: {min, max}}]"
_OTHER_VERSIONS = {
    _V1: "it is of autoscaling/v1; here it is a metric of type Resource",
    "targetAverageUtilization": "it is of v2beta1; write target: {type: Utilization, averageUtilization: ...}",
    "targetAverageValue": "it is of v2beta1; write target: {type: AverageValue, averageValue: ...}",
    "targetValue": "it is of v2beta1; write target: {type: Value, value: ...}",
    "metricName": "it is of v2beta1; write metric: {name: ...}",
    "scaleIntervals": _OF_HVPA_V2,
    "scalingIntervals": _OF_HVPA_V2,
    "scalingIntervalsOverlap": "it is of hvpa-v2; write overlapPercent beside buckets",
}


def invalid_object(what: str, model: type[BaseModel], error: ValidationError) -> InvalidObject:
    """The problems of one object, in the order of its fields; of very many the first ones."""
    details = error.errors(include_url=False)
    found = [problem for detail in details[:MOST] for problem in _problems(model, detail)][:MOST]
    if left := len(details) - MOST if len(details) > MOST else 0:
        found.append(InvalidInput("", f"{left} more", "mend these first"))
    return InvalidObject(what, found)


def _problems(model: type[BaseModel], error: ErrorDetails) -> Iterator[InvalidInput]:
    path = path_text(error["loc"])
    if error["type"] == PROBLEMS:
        for problem in error["ctx"][PROBLEMS]:
            yield InvalidInput(_join(path, problem.path), problem.value, problem.fix)
        return
    value = ABSENT if error["type"] == "missing" else shown(error["input"])
    yield InvalidInput(path, value, _fix(model, error))


def unquoted(given: bool) -> str:
    """What to do where a word was meant, and YAML has read another thing."""
    spelled = "On, Yes or true" if given else "Off, No or false"
    return f"quote it: YAML reads an unquoted {spelled} as a boolean"


def _fix(model: type[BaseModel], error: ErrorDetails) -> str:
    kind, ctx, given = error["type"], error.get("ctx", {}), error.get("input")
    if kind == "extra_forbidden":
        return _unknown(str(error["loc"][-1]), _names(model, error["loc"][:-1]))
    if kind == "literal_error":
        ctx = {"expected": str(ctx["expected"]).replace("'", "").replace(" or ", ", ")}
    if isinstance(given, bool) and kind in ("literal_error", "string_type"):
        return unquoted(given) + (f"; one of: {ctx['expected']}" if kind == "literal_error" else "")
    if kind == "string_type" and isinstance(given, int | float):
        return f'quote it: "{given}"'
    return _FIXES[kind].format(**ctx) if kind in _FIXES else error["msg"]


def _unknown(name: str, known: list[str]) -> str:
    if name in ("metrics", "behavior") and _V1 in known:
        return "autoscaling/v1 has no such field: write apiVersion: autoscaling/v2"
    if name in _OTHER_VERSIONS:
        return f"there is no such field; {_OTHER_VERSIONS[name]}"
    near = nearest(name, known)
    return (
        f"there is no such field; did you mean {near}?"
        if near
        else f"there is no such field; known: {', '.join(known)}"
    )


def nearest(name: str, known: list[str], cutoff: float = 0.6) -> str | None:
    """The spelling the user most likely meant."""
    by_lower = {name.lower(): name for name in known}
    match = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[match[0]] if match else None


def _names(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The fields a user may write at this place."""
    here: Any = model
    for step in loc:
        if isinstance(step, str):
            fields = here.model_fields if here is not None else {}
            here = next((_model_in(f.annotation) for f in fields.values() if f.alias == step), None)
    return [str(field.alias) for field in here.model_fields.values()] if here is not None else []


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model inside Optional, list and Annotated."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)


def path_text(loc: tuple[int | str, ...]) -> str:
    """spec.metrics[0].resource, metadata.annotations["trimtab.dev/pin"]."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.replace("-", "").replace("_", "").isalnum():
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def _join(path: str, rest: str) -> str:
    return f"{path}.{rest}" if path and rest and not rest.startswith("[") else path + rest
