"""Where Hvpa spells things its own way: metrics of v2beta1, HVPA's `MinAllowed`, what goes with buckets."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from trimtab.kinds.amounts import Count, Target
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.metric import MetricSpec, ResourceTarget
from trimtab.kinds.names import ContainerName, ResourceName
from trimtab.kinds.vertical import Amounts, ContainerPolicy, at_most_cel, distinct_names, min_max_rule, ordered

_WAYS = ("target", "targetAverageUtilization", "targetAverageValue")


def _ways(part: HvpaResource) -> list[object]:
    return [part.target, part.target_average_utilization, part.target_average_value]


class HvpaResource(ManifestPart):
    """CPU or memory: the target of autoscaling/v2, or v2beta1's two fields."""

    name: ResourceName
    """cpu or memory."""
    target: ResourceTarget | None = None
    """As autoscaling/v2 writes it."""
    target_average_utilization: Count | None = None
    """As v2beta1 writes it: percent of what the pods request."""
    target_average_value: Target | None = None
    """As v2beta1 writes it: so much for each pod."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda r: _ways(r).count(None) == 2,
            at="target",
            fix="set exactly one of target, targetAverageUtilization, targetAverageValue",
            schema={"oneOf": [{"required": [way]} for way in _WAYS]},
        ),
    )


class HvpaContainer(HvpaResource):
    container: ContainerName
    """The container, by name."""


class HvpaMetric(MetricSpec):
    """One metric, in the spelling of autoscaling/v2 or (CPU and memory) v2beta1."""

    resource: HvpaResource | None = None  # type: ignore[assignment]
    """CPU or memory of whole pods."""
    container_resource: HvpaContainer | None = None  # type: ignore[assignment]
    """CPU or memory of one container."""


class HvpaContainerPolicy(ContainerPolicy):
    """VPA's policy of one container; HVPA spells one key `MinAllowed`."""

    capital_min_allowed: Annotated[Amounts | None, Field(alias="MinAllowed")] = None
    """minAllowed, as HVPA spells it."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        min_max_rule(),
        FieldRule(
            lambda p: ordered(p.capital_min_allowed, p.max_allowed),
            at="MinAllowed",
            fix="must not be above maxAllowed",
            cel=" && ".join(
                at_most_cel(
                    f"self.MinAllowed.{resource}",
                    f"self.maxAllowed.{resource}",
                    "!has(self.MinAllowed) || !has(self.maxAllowed)",
                )
                for resource in ("cpu", "memory")
            ),
        ),
        FieldRule(
            lambda p: p.capital_min_allowed is None or p.min_allowed is None,
            at="MinAllowed",
            fix="write minAllowed once",
            cel="!has(self.MinAllowed) || !has(self.minAllowed)",
        ),
    )


class HvpaResourcePolicy(ManifestPart):
    container_policies: Annotated[list[HvpaContainerPolicy], Field(max_length=50)] | None = None
    """Bounds of each container."""

    rules: ClassVar[tuple[FieldRule, ...]] = (distinct_names(),)

    def as_vpa_writes_it(self) -> dict[str, Any]:
        written = self.manifest()
        for container in written.get("containerPolicies") or []:
            if "MinAllowed" in container:
                container["minAllowed"] = container.pop("MinAllowed")
        return written


OF_BUCKETS = {  # as written, and as an attribute
    "baseResourcesPerReplica": "base_resources_per_replica",
    "sizing": "sizing",
    "overlapPercent": "overlap_percent",
    "growPastLast": "grow_past_last",
}


def belongs_to_buckets(written: str, attribute: str) -> FieldRule:
    return FieldRule(
        lambda s: getattr(s, attribute) is None or s.buckets is not None,
        at=written,
        fix="it belongs to buckets; weights do not know it",
        cel=f"!has(self.{written}) || has(self.buckets)",
    )
