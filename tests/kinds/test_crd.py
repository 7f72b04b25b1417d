"""The generated definitions are structural and say what the kinds say; an end-to-end test asks the API server too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kinds.beyond_cel import beyond_cel
from trimtab.kinds import KINDS
from trimtab.kinds.crd import CRDS, definition, definitions
from trimtab.kinds.schema import structural


def schemas(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield value
    for inner in (*value.get("properties", {}).values(), value.get("items"), value.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from schemas(inner)


def root(crd: Any) -> dict[str, Any]:
    version: dict[str, Any] = definition(crd)["spec"]["versions"][0]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def at(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    for step in path.split("."):
        schema = schema.get("properties", {}).get(step.removesuffix("[]"), {})
        schema = schema["items"] if step.endswith("[]") else schema
    return schema or None


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd.kind)
def test_every_schema_is_structural(crd: Any) -> None:
    for schema in schemas(root(crd)):
        typed = "type" in schema or schema.get("x-kubernetes-int-or-string")
        assert typed or schema.get("x-kubernetes-preserve-unknown-fields"), schema
        assert not {"$ref", "title", "const", "$defs", "allOf"} & set(schema)
        assert schema.get("default", 0) is not None


def test_every_kind_that_is_a_custom_resource_has_a_definition() -> None:
    ours = {(version, kind) for (version, kind), model in KINDS.items() if model.crd}
    assert ours == {(f"{crd.group}/{crd.version}", crd.kind) for crd in CRDS}


def test_lists_that_rules_walk_have_an_end() -> None:
    for crd in CRDS:
        for schema in schemas(root(crd)["properties"]["spec"]):
            if schema.get("type") == "array":
                assert schema["maxItems"] <= 100


def test_ignored_fields_are_in_the_schemas() -> None:
    for model in dict.fromkeys(KINDS.values()):
        for path in model.ignored:
            assert at(structural(model), path), f"{model} {path}"


def test_the_group_of_kubernetes_is_marked() -> None:
    marked = [made["metadata"]["name"] for made in definitions() if "annotations" in made["metadata"]]
    assert marked == ["hvpas.autoscaling.k8s.io"]


@pytest.mark.parametrize(
    "path, beyond",
    [
        ("spec.schedules[3].start", True),
        ("spec.crons[0].timezone", True),
        ('spec.config["ehpa.x"]', True),
        ("spec.metrics[0].pods.target.averageValue", True),
        ("spec.hpa.template.spec.metrics[0].resource.targetAverageValue", True),
        ("spec.minReplicas", False),
        ("spec.schedules[0].minReplicas", False),
    ],
)
def test_what_only_we_can_say(path: str, beyond: bool) -> None:
    assert beyond_cel(path) is beyond


def test_no_rule_looks_at_a_target_that_is_a_number_or_a_text() -> None:
    """The API server refuses the whole definition: such fields have no type, and CEL does not see them."""
    rules = re.findall(r'"rule": "(.*?)(?<!\\)"', json.dumps(definitions()))
    assert len(rules) > 20
    assert [rule for rule in rules if re.search(r"target\.\??(value|averageValue)\b", rule)] == []


def _unexplained(schema: Any, path: str) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        if not inner.get("description"):
            yield f"{path}.{name}"
        yield from _unexplained(inner, f"{path}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _unexplained(schema["items"], f"{path}[]")


@pytest.mark.parametrize("crd", definitions(), ids=lambda one: one["spec"]["names"]["kind"])
def test_kubectl_explain_has_a_word_for_every_field(crd: Any) -> None:
    for version in crd["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert list(_unexplained(spec, "spec")) == []
