"""Label selectors match as Kubernetes matches."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab.kinds.selector import Selector


@pytest.mark.parametrize(
    "expression, matches",
    [
        ({"key": "b", "operator": "Exists"}, False),
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "DoesNotExist"}, False),
        ({"key": "a", "operator": "In", "values": ["1", "2"]}, True),
        ({"key": "a", "operator": "In", "values": ["2"]}, False),
        ({"key": "a", "operator": "NotIn", "values": ["2"]}, True),
        ({"key": "b", "operator": "NotIn", "values": ["2"]}, True),
        ({"key": "b", "operator": "In", "values": ["2"]}, False),
    ],
)
def test_expressions(expression: dict[str, Any], matches: bool) -> None:
    assert Selector.model_validate({"matchExpressions": [expression]}).matches({"a": "1"}) is matches


def test_labels_and_text() -> None:
    selector = Selector.model_validate(
        {"matchLabels": {"z": "1", "a": "2"}, "matchExpressions": [{"key": "k", "operator": "Exists"}]}
    )
    assert selector.text == "a=2,k,z=1"
    assert selector.matches({"z": "1", "a": "2", "k": ""})
    assert not selector.matches({"z": "1", "k": ""})
    assert Selector().matches({})
