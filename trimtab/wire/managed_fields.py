"""managedFields: who set which field of an object. Nothing else reads them, and only where the question comes up."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.wire.objects import WireRecord, WorkloadSpec

FIELD_MANAGER = "trimtab"  # the name under which the API server records our own writes
ANY = "*"  # in a path: whichever key, such as each container of a pod template


class ManagedFieldsEntry(WireRecord, frozen=True):
    manager: str = ""
    time: str = ""  # RFC 3339, so texts compare as times do
    fields_v1: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class ManagedMeta(WireRecord, frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()

    def owners(self, *path: str) -> list[str]:
        """The managers that set this field, or one inside it, the latest write last: owners("spec", "replicas")."""
        entries = [entry for entry in self.managed_fields if _holds(entry.fields_v1, path)]
        return [entry.manager for entry in sorted(entries, key=lambda entry: entry.time)]

    def is_ours(self, *path: str) -> bool:
        """We set this field; others may have set it to the same value, or another part of it."""
        return FIELD_MANAGER in self.owners(*path)

    def is_ours_alone(self, *path: str) -> bool:
        return set(self.owners(*path)) == {FIELD_MANAGER}

    def last_other_owner(self, *path: str) -> str:
        """Who set it last, ourselves aside; "" when nobody did."""
        return next((owner for owner in reversed(self.owners(*path)) if owner != FIELD_MANAGER), "")


class ManagedObject(WireRecord, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: dict[str, Any] = {}


class ManagedWorkload(WireRecord, frozen=True):
    metadata: ManagedMeta = ManagedMeta()
    spec: WorkloadSpec = WorkloadSpec()


def _holds(fields: Any, path: tuple[str, ...]) -> bool:
    """Field sets are nested maps with "f:" before the name of a field and "k:" before the key of a list's item."""
    if not path:
        return True
    if not isinstance(fields, dict):
        return False
    if path[0] == ANY:
        return any(_holds(inner, path[1:]) for inner in fields.values())
    return f"f:{path[0]}" in fields and _holds(fields[f"f:{path[0]}"], path[1:])
