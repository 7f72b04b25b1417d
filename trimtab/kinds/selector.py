"""Label selectors: which labels they match, and the text the API server takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trimtab.errors import InvalidInput
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.names import LabelKey, LabelValue, label_key_problems


class Expression(ManifestPart):
    """One requirement of a selector."""

    key: LabelKey
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """In and NotIn compare with values; Exists and DoesNotExist only ask for the key."""
    values: Annotated[list[LabelValue], Field(max_length=50)] | None = None
    """For In and NotIn."""

    rules: ClassVar = (
        FieldRule(
            lambda e: bool(e.values) == (e.operator in ("In", "NotIn")),
            at="values",
            fix="In and NotIn need values; Exists and DoesNotExist take none",
            cel="(has(self.values) && self.values.size() > 0) == (self.operator in ['In', 'NotIn'])",
        ),
    )

    def matches(self, labels: Mapping[str, str]) -> bool:
        has, values = self.key in labels, self.values or []
        if self.operator in ("Exists", "DoesNotExist"):
            return has == (self.operator == "Exists")
        inside = has and labels[self.key] in values
        return inside == (self.operator == "In")

    @property
    def text(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        word = "in" if self.operator == "In" else "notin"
        return f"{self.key} {word} ({','.join(sorted(self.values or []))})"


class Selector(ManifestPart):
    """Kubernetes' LabelSelector; an empty one matches everything."""

    match_labels: Annotated[dict[str, LabelValue], Field(max_length=64)] | None = None
    """Labels with exactly these values."""
    match_expressions: Annotated[list[Expression], Field(max_length=20)] | None = None
    """Requirements that must all hold."""

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        yield from label_key_problems(self.match_labels or (), "matchLabels")

    def matches(self, labels: Mapping[str, str]) -> bool:
        wanted = self.match_labels or {}
        return all(labels.get(key) == value for key, value in wanted.items()) and all(
            expression.matches(labels) for expression in self.match_expressions or []
        )

    @property
    def text(self) -> str:
        """As `kubectl -l` takes it, in a stable order."""
        equal = [f"{key}={value}" for key, value in (self.match_labels or {}).items()]
        return ",".join(sorted(equal + [expression.text for expression in self.match_expressions or []]))
