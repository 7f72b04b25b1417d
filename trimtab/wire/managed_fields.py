"""managed_fields: who wrote which field of an object; the one place that reads managedFields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trimtab.wire.kube import FIELD_MANAGER
from trimtab.wire.objects import Partial, WorkloadSpec

Fields = dict[str, Any]  # of the spec, as fieldsV1 nests them: {"f:replicas": {}, "f:template": {...}}


class ManagedFields(Partial, frozen=True):
    """The fields that one manager has set."""

    manager: str = ""
    time: str = ""
    fields_v1: Fields = msgspec.field(default_factory=dict, name="fieldsV1")

    @property
    def spec(self) -> Fields:
        found: Fields = self.fields_v1.get("f:spec") or {}
        return found


class ManagedMeta(Partial, frozen=True):
    name: str = ""
    resource_version: str = ""
    managed_fields: tuple[ManagedFields, ...] = ()


class ManagedWorkload(Partial, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: WorkloadSpec = WorkloadSpec()


class ManagedCustom(Partial, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: dict[str, Any] = {}


def sets_replicas(spec: Fields) -> bool:
    return "f:replicas" in spec


def sets_sizes(spec: Fields) -> bool:
    containers = spec.get("f:template", {}).get("f:spec", {}).get("f:containers", {})
    return any("f:resources" in container for container in containers.values())


def is_ours(meta: ManagedMeta, sets: Callable[[Fields], bool]) -> bool:
    """Whoever writes another value takes the field from those who wrote it before."""
    return any(fields.manager == FIELD_MANAGER and sets(fields.spec) for fields in meta.managed_fields)


def last_writer(meta: ManagedMeta, sets: Callable[[Fields], bool]) -> str:
    """Who wrote it last, ourselves aside."""
    others = [fields for fields in meta.managed_fields if fields.manager != FIELD_MANAGER and sets(fields.spec)]
    return max(others, key=lambda fields: fields.time).manager if others else "somebody"


def only_ours(meta: ManagedMeta) -> set[str]:
    """The fields of spec that we set and nobody else has touched since."""
    ours = _names(fields for fields in meta.managed_fields if fields.manager == FIELD_MANAGER)
    return ours - _names(fields for fields in meta.managed_fields if fields.manager != FIELD_MANAGER)


def _names(managed: Iterable[ManagedFields]) -> set[str]:
    return {name.removeprefix("f:") for fields in managed for name in fields.spec}
