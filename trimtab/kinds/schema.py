"""pydantic's JSON schema -> the structural schema of a CustomResourceDefinition: inlined, typed and closed."""

from __future__ import annotations

from typing import Any

from trimtab.kinds.manifest_part import ManifestPart

Schema = dict[str, Any]

_OPEN = "x-kubernetes-preserve-unknown-fields"
_DROPPED = ("title", "examples", "$defs")


def structural(model: type[ManifestPart]) -> Schema:
    """What the API server holds an object of this model to."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _clean(schema, schema.get("$defs", {}))


def _clean(schema: Schema, defs: dict[str, Schema]) -> Schema:
    schema = _inlined(schema, defs)
    made = {name: value for name, value in schema.items() if name not in _DROPPED}
    if "properties" in made:
        made["properties"] = {name: _clean(inner, defs) for name, inner in made["properties"].items()}
    if "items" in made:
        made["items"] = _clean(made["items"], defs) or {_OPEN: True}
    _close(made, defs)
    _numbers(made)
    _default(made)
    return made


def _inlined(schema: Schema, defs: dict[str, Schema]) -> Schema:
    """References and `X or null` become X; a null is a field that is not there."""
    if "$ref" in schema:
        rest = {name: value for name, value in schema.items() if name != "$ref"}
        return _inlined(defs[schema["$ref"].rpartition("/")[2]], defs) | rest
    options = schema.get("anyOf", [])
    if {"type": "null"} in options:
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        (only,) = (option for option in options if option != {"type": "null"})
        return _inlined(only, defs) | rest
    if "const" in schema:
        rest = {name: value for name, value in schema.items() if name != "const"}
        return rest | {"enum": [schema["const"]]}
    return schema


def _close(made: Schema, defs: dict[str, Schema]) -> None:
    """Known fields only (the API server prunes and refuses the rest), maps of something, or open objects."""
    extra = made.pop("additionalProperties", False)
    if extra is True or extra == {}:
        made[_OPEN] = True
    elif extra:
        made["additionalProperties"] = _clean(extra, defs)


def _numbers(made: Schema) -> None:
    """The API server's exclusive bounds are flags beside the bound."""
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in made and not isinstance(made[exclusive], bool):
            made[bound], made[exclusive] = made[exclusive], True


def _default(made: Schema) -> None:
    """Nothing, and an empty map, are no defaults; an object's own defaults fill it."""
    value = made.get("default")
    if value is None or value in ("", {}, []) or (isinstance(value, dict) and "properties" not in made):
        made.pop("default", None)
    elif isinstance(value, dict):
        made["default"] = {}
