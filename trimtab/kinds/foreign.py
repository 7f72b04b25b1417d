"""The base of other projects' kinds: each translates itself to an Autoscaler, and only that compiles to a Policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec
from pydantic import ValidationError

from trimtab.kinds.annotations import BRIDGE, EXACT, PREDICTIVE, TUNING
from trimtab.kinds.autoscaler import Autoscaler
from trimtab.kinds.ledger import Ledger, without_none
from trimtab.kinds.manifest_part import ManifestPart, matching_paths
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.problems import invalid_object
from trimtab.policy import Policy

Manifest = dict[str, Any]

SCALING = ("scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior")  # as in autoscaling/v2
READ_HERE = (PREDICTIVE, EXACT, BRIDGE, TUNING)  # on another kind they could begin to act


class Translation(NamedTuple):
    manifest: Manifest  # of the Autoscaler, `spec.exact` included
    autoscaler: Autoscaler
    ledger: Ledger

    @property
    def applicable(self) -> Manifest:
        """The manifest without `spec.exact`, which no cluster takes."""
        return {
            **self.manifest,
            "spec": {name: part for name, part in self.manifest["spec"].items() if name != "exact"},
        }


class Translated(ManifestPart):
    """Anything that is not an Autoscaler and means one."""

    ignored: ClassVar[dict[str, str]] = {}

    @property
    def title(self) -> str:
        raise NotImplementedError

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """Return the spec of the Autoscaler; adjust its metadata, and record losses and places in the ledger."""
        raise NotImplementedError

    def autoscaler_metadata(self) -> Manifest:
        return {}

    @cached_property
    def translation(self) -> Translation:
        """The Autoscaler it means; translated once."""
        return self.translated(self.as_autoscaler)

    def translated(self, as_autoscaler: Callable[[Manifest, Ledger], Manifest]) -> Translation:
        """Check the Autoscaler; what it refuses is refused at the place where the user wrote it."""
        metadata, ledger = self.autoscaler_metadata(), Ledger()
        spec = as_autoscaler(metadata, ledger)
        for pattern, why in self.ignored.items():
            for path in matching_paths(self.manifest(), pattern):
                ledger.lose(path, why)
        made = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": metadata, "spec": spec}
        try:
            return Translation(made, Autoscaler.model_validate(made), ledger)
        except ValidationError as error:
            raise ledger.at_source(invalid_object(self.title, Autoscaler, error), self.title) from None

    def to_policy(self, at: float) -> Policy:
        return self.translation.autoscaler.to_policy(at)


class ForeignKind(Kind, Translated):
    """A kind of another project that is an object of the API server."""

    served_elsewhere: ClassVar[bool] = False
    """Read only to leave it: its own controller acts on what is lost here."""

    @property
    def target(self) -> TargetRef:
        return self.translation.autoscaler.target

    def autoscaler_metadata(self) -> Manifest:
        return self.metadata.written(without=READ_HERE)

    def lose_annotations(self, metadata: Manifest, prefix: str, why: str, ledger: Ledger) -> None:
        """Drop the annotations that speak to another controller."""
        for key in [key for key in metadata.get("annotations", {}) if key.startswith(prefix)]:
            unannotate(metadata, key)
            ledger.lose(f'metadata.annotations["{key}"]', why)

    def annotated_parts(self, ledger: Ledger) -> Manifest:
        """Return the bridge and the tuning that annotations ask for, as fields."""
        notes, made = self.metadata.annotations, {}
        for part, field, key in (("bridge", "maxFactor", BRIDGE), ("tuning", "mode", TUNING)):
            if key in notes:
                made[part] = {field: notes[key]}
                ledger.place(f"spec.{part}", f'metadata.annotations["{key}"]')
        return made


def exact_parts(**parts: Any) -> Manifest:
    """Return `spec.exact` with these parts of a Policy, or nothing where all are None."""
    written = msgspec.to_builtins(without_none(**parts))
    return {"exact": written} if written else {}


def annotate(metadata: Manifest, key: str, value: str) -> None:
    metadata["annotations"] = {**metadata.get("annotations", {}), key: value}


def unannotate(metadata: Manifest, key: str) -> str | None:
    """Remove an annotation and return its value."""
    notes: dict[str, str] = dict(metadata.get("annotations") or {})
    value = notes.pop(key, None)
    metadata.pop("annotations", None)
    if notes:
        metadata["annotations"] = notes
    return value
