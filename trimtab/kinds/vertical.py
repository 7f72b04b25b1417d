"""How large containers may become: VPA's resourcePolicy words, for Autoscaler and Hvpa alike."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trimtab.kinds.amounts import Quantity, amount
from trimtab.kinds.manifest_part import FieldRule, ManifestPart
from trimtab.kinds.names import ContainerNames
from trimtab.policy import Apply, Axis, ContainerRule, Direction, Gate, MinChange, Size, Vertical

RESOURCES = ("cpu", "memory")
ROLLED_FROM_PERCENT = 10.0


class Amounts(ManifestPart):
    """An amount of each resource."""

    cpu: Quantity | None = None
    """Cores, such as 250m or 2."""
    memory: Quantity | None = None
    """Bytes, such as 512Mi or 2G."""

    def size(self) -> Size:
        return Size(cpu_cores=amount(self.cpu), memory_bytes=amount(self.memory))


def size_of(amounts: Amounts | None) -> Size:
    return Size() if amounts is None else amounts.size()


def ordered(low: Amounts | None, high: Amounts | None) -> bool:
    """No resource has its least above its most."""
    least, most = size_of(low), size_of(high)
    pairs = ((least.cpu_cores, most.cpu_cores), (least.memory_bytes, most.memory_bytes))
    return all(a is None or b is None or a <= b for a, b in pairs)


def at_most_cel(low: str, high: str, both: str = "") -> str:
    """CEL for low <= high where both are quantities; `both` guards the parents."""
    has = f"!has({low}) || !has({high})"
    compare = f"quantity(string({low})).compareTo(quantity(string({high}))) <= 0"
    return f"({both} || {has} || {compare})" if both else f"({has} || {compare})"


def min_max_rule(low: str = "minAllowed", high: str = "maxAllowed") -> FieldRule:
    guard = f"!has(self.{low}) || !has(self.{high})"
    return FieldRule(
        lambda p: ordered(p.min_allowed, p.max_allowed),
        at=low,
        fix=f"must not be above {high}",
        cel=" && ".join(at_most_cel(f"self.{low}.{r}", f"self.{high}.{r}", guard) for r in RESOURCES),
    )


class ContainerPolicy(ManifestPart):
    """Bounds and mode of one container; "*" is every container without a policy of its own."""

    container_name: ContainerNames = "*"
    """"*" is every container without a policy of its own."""
    mode: Literal["Auto", "Off"] = "Auto"
    """Off: this container is left alone. Quote it, or YAML reads a boolean."""
    min_allowed: Amounts | None = None
    """Never smaller."""
    max_allowed: Amounts | None = None
    """Never larger."""
    controlled_resources: Annotated[list[Literal["cpu", "memory"]], Field(min_length=1, max_length=2)] | None = None
    """Which of cpu and memory are sized; both by default."""
    controlled_values: Literal["RequestsAndLimits", "RequestsOnly"] = "RequestsAndLimits"
    """RequestsOnly leaves limits as they are."""
    whole_cores: bool = False
    """CPU is rounded up to whole cores, for containers with CPUs of their own."""

    rules: ClassVar[tuple[FieldRule, ...]] = (min_max_rule(),)

    def rule(self) -> ContainerRule:
        controlled = self.controlled_resources or RESOURCES
        return ContainerRule(
            name=self.container_name,
            off=self.mode == "Off",
            least=size_of(self.min_allowed),
            most=size_of(self.max_allowed),
            cpu="cpu" in controlled,
            memory="memory" in controlled,
            requests_only=self.controlled_values == "RequestsOnly",
            whole_cores=self.whole_cores,
        )


def distinct_names(path: str = "containerPolicies") -> FieldRule:
    """The CEL repeats only what the Python says: one policy per container."""
    return FieldRule(
        lambda p: _distinct([policy.container_name for policy in p.container_policies or []]),
        at=path,
        fix="each containerName may appear once",
        cel=f"!has(self.{path}) || self.{path}.all(a, self.{path}.exists_one(b, b.containerName == a.containerName))",
    )


def _distinct(names: list[str]) -> bool:
    return len(set(names)) == len(names)


class ResourcePolicy(ManifestPart):
    """One policy per container."""

    container_policies: Annotated[list[ContainerPolicy], Field(max_length=50)] | None = None
    """Bounds of each container."""

    rules: ClassVar[tuple[FieldRule, ...]] = (distinct_names(),)


class VerticalSpec(ManifestPart):
    """Requests follow what the containers use, within the policy, applied as `apply` says."""

    resource_policy: ResourcePolicy | None = None
    apply: Literal["InPlace", "Recreate", "InPlaceOrRecreate", "Never"] = "InPlace"
    """InPlace resizes running pods; Recreate changes the template; Never only recommends."""

    def vertical(self) -> Vertical:
        """Named containers first, then all the others, which are sized unless a "*" says otherwise."""
        policies = self.resource_policy.container_policies if self.resource_policy else None
        rules = [policy.rule() for policy in policies or []]
        named = [rule for rule in rules if rule.name != "*"]
        others = [rule for rule in rules if rule.name == "*"] or [ContainerRule()]
        return Vertical(containers=(*named, *others), apply=Apply(self.apply))

    def gates(self) -> tuple[Gate, ...]:
        """A new template is a rollout: VPA's updater, too, acts from a tenth of difference on."""
        if self.apply != "Recreate":
            return ()
        ways = [(axis, direction) for axis in (Axis.CPU, Axis.MEMORY) for direction in Direction]
        return tuple(MinChange(axis=axis, direction=direction, percent=ROLLED_FROM_PERCENT) for axis, direction in ways)
