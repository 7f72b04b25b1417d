"""ManifestPart: the base of everything users write. Strict types, unknown fields refused, all problems at once.

A rule that spans fields is written once, with its Python test and its CEL (or JSON schema) twin for the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from trimtab.errors import InvalidInput

PROBLEMS = "problems"  # the pydantic error type that carries ours


class FieldRule(NamedTuple):
    """What must hold between fields; `at` is the field to blame, relative to the part."""

    holds: Callable[[Any], bool]
    at: str
    fix: str
    cel: str = ""
    schema: dict[str, Any] = {}  # never changed


class ManifestPart(BaseModel):
    """A piece of a manifest; fields are spelled in camelCase outside and in snake_case here."""

    model_config = ConfigDict(
        use_attribute_docstrings=True,
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        hide_input_in_errors=True,
    )
    rules: ClassVar[tuple[FieldRule, ...]] = ()

    def problems(self) -> Iterator[InvalidInput]:
        """What is wrong beyond single fields, with paths relative to this part."""
        for rule in self.rules:
            if not rule.holds(self):
                yield InvalidInput(rule.at, value_at(self, rule.at), rule.fix)

    @model_validator(mode="after")
    def _hold(self) -> Self:
        found = tuple(self.problems())
        if found:
            raise PydanticCustomError(PROBLEMS, "{count} problems", {"count": len(found), PROBLEMS: found})
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The rules go with the schema, for the API server to hold."""
        schema = handler.resolve_ref_schema(handler(core))
        for rule in cls.rules:
            schema |= rule.schema
        said = [{"rule": rule.cel, "message": _message(rule)} for rule in cls.rules if rule.cel]
        return schema | {"x-kubernetes-validations": said} if said else schema

    def manifest(self) -> dict[str, Any]:
        """What the user wrote, and nothing that was filled in."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def _message(rule: FieldRule) -> str:
    return f"{rule.at}: {rule.fix}" if rule.at else rule.fix


class Absent:
    """Stands in messages where a value should be."""

    def __repr__(self) -> str:
        return "missing"


ABSENT = Absent()


def value_at(part: ManifestPart, path: str) -> object:
    """The value of a dotted camelCase path, for messages."""
    value: object = part
    for name in path.split(".") if path else ():
        value = getattr(value, attribute(type(value), name), None)
    return ABSENT if value is None else shown(value)


def attribute(model: type[object], alias: str) -> str:
    fields = getattr(model, "model_fields", {})
    return next((name for name, field in fields.items() if field.alias == alias), alias)


def shown(value: object) -> object:
    """A value as a message may print it: parts as manifests, long ones cut."""
    if isinstance(value, ManifestPart):
        value = value.manifest()
    elif isinstance(value, list):
        value = [item.manifest() if isinstance(item, ManifestPart) else item for item in value]
    return value if len(repr(value)) <= 120 else Cut(repr(value)[:117] + "...")


class Cut(str):
    """Text that is its own repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def without_nulls(value: Any) -> Any:
    """`field:` with nothing behind it means that the field is not there, as it does to the API server."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def matching_paths(value: Any, pattern: str, path: str = "") -> Iterator[str]:
    """Return the paths that a manifest holds of a pattern such as `spec.metrics[].resource`."""
    if not pattern:
        yield path
        return
    step, _, rest = pattern.partition(".")
    name = step.removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return
    here = f"{path}.{name}" if path else name
    if step == name:
        yield from matching_paths(value[name], rest, here)
        return
    for index, item in enumerate(value[name]):
        yield from matching_paths(item, rest, f"{here}[{index}]")
