"""A kind of another project: one function says it as an Autoscaler, and only that Autoscaler compiles to a policy."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

from pydantic import ValidationError

from trimtab.kinds.annotations import BRIDGE, EXACT, PREDICTIVE, TUNING
from trimtab.kinds.autoscaler import Autoscaler
from trimtab.kinds.ledger import Ledger
from trimtab.kinds.manifest_part import ManifestPart
from trimtab.kinds.meta import Kind, TargetRef
from trimtab.kinds.problems import invalid_object
from trimtab.policy import Policy

Manifest = dict[str, Any]

_READ_HERE = (PREDICTIVE, EXACT, BRIDGE, TUNING)  # on another kind one that means nothing here would begin to act


class Translation(NamedTuple):
    manifest: Manifest  # of the Autoscaler, `spec.exact` included
    autoscaler: Autoscaler
    ledger: Ledger


class Translated(ManifestPart):
    """What is no Autoscaler and means one."""

    @property
    def title(self) -> str:
        raise NotImplementedError

    def as_autoscaler(self, metadata: Manifest, ledger: Ledger) -> Manifest:
        """The spec of the Autoscaler; its metadata may be changed, and the ledger hears what is lost."""
        raise NotImplementedError

    def autoscaler_metadata(self) -> Manifest:
        return {}

    @cached_property
    def translation(self) -> Translation:
        """Made once. What the Autoscaler refuses is refused where the user wrote it."""
        metadata, ledger = self.autoscaler_metadata(), Ledger()
        spec = self.as_autoscaler(metadata, ledger)
        made = {"apiVersion": "trimtab.dev/v1alpha1", "kind": "Autoscaler", "metadata": metadata, "spec": spec}
        try:
            return Translation(made, Autoscaler.model_validate(made), ledger)
        except ValidationError as error:
            raise ledger.at_source(invalid_object(self.title, Autoscaler, error), self.title) from None

    def to_policy(self, at: float) -> Policy:
        return self.translation.autoscaler.to_policy(at)


class ForeignKind(Kind, Translated):
    """One that is an object of the API server."""

    @property
    def target(self) -> TargetRef:
        return self.translation.autoscaler.target

    def autoscaler_metadata(self) -> Manifest:
        return self.metadata.written(without=_READ_HERE)
