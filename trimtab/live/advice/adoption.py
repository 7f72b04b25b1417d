"""adoption: a Recommendation that asks for it is carried out, once per value; a condition says where it cannot be."""

from __future__ import annotations

from typing import Any

from trimtab.advisor import records
from trimtab.advisor.adopt import adopt, is_gone
from trimtab.errors import InvalidInput, Refused
from trimtab.wire.from_kubernetes import conditions_in
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom


class Adoption:
    """Remembers what was carried out last."""

    def __init__(self, writer: Kube) -> None:
        self.writer = writer
        self._adopted: dict[str, tuple[str, str]] = {}

    def forget(self, alive: set[str]) -> None:
        """All but these are gone."""
        self._adopted = {uid: adopted for uid, adopted in self._adopted.items() if uid in alive}

    async def carry_out(self, record: Custom, at: float) -> list[dict[str, Any]] | None:
        """The conditions to write, where there is news."""
        if self._adopted.get(record.metadata.uid) == _wanted(record):
            return None
        try:
            await adopt(self.writer, record)
            self._adopted[record.metadata.uid] = _wanted(record)
        except (Refused, InvalidInput) as refusal:
            if is_gone(refusal):
                return None  # the next round tells
            return _conditions(record, records.condition("Adopted", False, "AdoptionFailed", str(refusal)), at)
        return _conditions(record, None, at)


def _wanted(record: Custom) -> tuple[str, str]:
    return str(record.spec.get("adoptionType")), str(record.status.get("recommendedValue"))


def _conditions(record: Custom, problem: dict[str, Any] | None, at: float) -> list[dict[str, Any]] | None:
    """A condition while it fails, none when it works: document 000 prints none."""
    present = conditions_in(record.status)
    others = [condition for kind, condition in present.items() if kind != "Adopted"]
    if problem is None and len(others) == len(present):
        return None
    return records.conditions([*others, problem] if problem else others, record.status, at)
