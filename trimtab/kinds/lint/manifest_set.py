"""Everything that was handed in at once, so that checks can look from an autoscaler to its workload and its rivals."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Any, NamedTuple

from msgspec.structs import replace

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import KINDS, CustomHpa, Kind, Scaler, is_custom_hpa, misspelt, read
from trimtab.kinds.foreign import ForeignKind, Translated
from trimtab.kinds.images import is_jvm
from trimtab.kinds.lint.layout import is_patch, is_template, never_together, patch_files
from trimtab.kinds.yaml import Document
from trimtab.policy import Apply, Mode, Policy

WORKLOADS = ("Deployment", "StatefulSet", "ReplicaSet", "Rollout", "DaemonSet", "ReplicationController")
_JVM_VARIABLES = ("JAVA_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JVM_OPTS")


class WorkloadKey(NamedTuple):
    """Which workload; versions and groups aside, since people mix them."""

    namespace: str
    kind: str
    name: str


class LintedManifest:
    """One document, read as far as it can be read."""

    def __init__(self, document: Document, at: float, skipped: bool = False) -> None:
        self.document = document
        self.skipped = skipped  # a patch or a template: not a whole object
        self.manifest: dict[str, Any] = document.value if isinstance(document.value, dict) else {}
        self.problems: tuple[InvalidInput, ...] = ()
        self.obj: Kind | CustomHpa | None = None
        self.policy: Policy | None = None
        self.moves_pods = False
        try:
            obj = self._read()
            if isinstance(obj, Scaler | CustomHpa):
                self._compile(obj, at)
            self.obj = obj
        except InvalidObject as error:
            self.problems = error.problems
        except InvalidInput as error:
            self.problems = (error,)

    def _read(self) -> Kind | CustomHpa | None:
        if self.skipped:
            return None
        if self.is_custom_hpa:
            return CustomHpa.from_values(self.manifest)
        ours = self.kind in {kind for _, kind in KINDS} or misspelt(self.manifest)
        return read(self.manifest) if ours else None

    def _compile(self, obj: Scaler | CustomHpa, at: float) -> None:
        """Where no signal is left that an Autoscaler has, the CPU that it would follow instead is left out."""
        policy = obj.to_policy(at)
        lossy = isinstance(obj, Translated) and any(loss.signal for loss in obj.translation.ledger.untold)
        autoscaler = obj.translation.autoscaler if isinstance(obj, Translated) else obj
        self.moves_pods = lossy or bool(policy.signals)
        self.policy = replace(policy, signals=()) if lossy and not autoscaler.spec.metrics else policy

    @property
    def kind(self) -> str:
        return str(self.manifest.get("kind", ""))

    @property
    def is_custom_hpa(self) -> bool:
        return is_custom_hpa(self.manifest)

    @property
    def title(self) -> str:
        if self.is_custom_hpa:
            return "custom-hpa values"
        name = get(self.manifest, "metadata", "name")
        return f"{self.kind}/{name}" if name else self.kind or "document"

    @property
    def namespace(self) -> str:
        return str(get(self.manifest, "metadata", "namespace") or "default")

    @property
    def target(self) -> WorkloadKey | None:
        """What it scales, where it scales anything."""
        if isinstance(self.obj, CustomHpa):
            return WorkloadKey(self.obj.target.namespace, "Deployment", self.obj.target.deployment)
        if isinstance(self.obj, Scaler):
            return WorkloadKey(self.namespace, self.obj.target.kind, self.obj.target.name)
        return None

    @property
    def itself(self) -> WorkloadKey:
        name = get(self.manifest, "metadata", "name")
        if isinstance(self.obj, CustomHpa):
            name = f"{self.obj.target.deployment}-custom-hpa"
        return WorkloadKey(self.namespace, self.kind, str(name))

    def meets(self, other: LintedManifest) -> bool:
        """Whether both are applied: an object in two folders, its conversion in one below, or two overlays are not."""
        one, two = PurePath(self.document.file).parent, PurePath(other.document.file).parent
        below = one in two.parents or two in one.parents
        if self.itself == other.itself or (below and self.itself.name == other.itself.name):
            return False
        return not never_together(self.document, other.document)

    @property
    def acts(self) -> bool:
        """Shadows only watch, and what a controller owns acts for its owner."""
        owners = get(self.manifest, "metadata", "ownerReferences")
        owned = any(get(owner, "controller") for owner in owners) if isinstance(owners, list) else False
        return not owned and not (self.policy and self.policy.admit.mode is Mode.SHADOW)

    @property
    def served_elsewhere(self) -> bool:
        return isinstance(self.obj, ForeignKind) and self.obj.served_elsewhere

    @property
    def resizes(self) -> set[str]:
        """The resources whose requests it changes."""
        vertical = self.policy.vertical if self.policy else None
        if vertical is None or vertical.apply is Apply.NEVER:
            return set()
        rules = [rule for rule in vertical.containers if not rule.off]
        cpu, memory = any(rule.cpu for rule in rules), any(rule.memory for rule in rules)
        return {name for name, changed in (("cpu", cpu), ("memory", memory)) if changed}

    def path(self, field: str) -> str:
        """Return where a field of an Autoscaler's spec stands in this manifest."""
        path = f"spec.{field}"
        return self.obj.translation.ledger.source_of(path) if isinstance(self.obj, Translated) else path


class ManifestSet:
    """All manifests, by the workload they are or act on."""

    def __init__(self, documents: list[Document], at: float) -> None:
        patches = patch_files(documents)
        self.manifests = [
            LintedManifest(document, at, is_patch(document, patches) or is_template(document))
            for document in documents
            if document.error is None
        ]
        self._workloads = {linted.itself: linted.manifest for linted in self.manifests if linted.kind in WORKLOADS}
        self._acting: dict[WorkloadKey, list[LintedManifest]] = {}
        for linted in self.manifests:
            if linted.target and linted.acts:
                self._acting.setdefault(linted.target, []).append(linted)

    def workloads_beside(self, linted: LintedManifest) -> list[WorkloadKey]:
        """Those whose manifests lie in the same folder."""
        folder = Path(linted.document.file).parent
        others = [other for other in self.manifests if other.kind in WORKLOADS]
        return [other.itself for other in others if Path(other.document.file).parent == folder]

    def workload(self, target: WorkloadKey | None) -> dict[str, Any] | None:
        """The manifest of a workload, if it was handed in too."""
        return self._workloads.get(target) if target else None

    def scaling(self, target: WorkloadKey | None) -> list[LintedManifest]:
        """Whoever moves the pods of this workload."""
        return [linted for linted in self._acting.get(target, []) if linted.moves_pods] if target else []

    def resizing(self, target: WorkloadKey | None) -> list[LintedManifest]:
        return [linted for linted in self._acting.get(target, []) if linted.resizes] if target else []


def get(value: Any, *steps: str) -> Any:
    """A value deep in a manifest, or None where the way ends."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def containers(workload: dict[str, Any] | None) -> list[dict[str, Any]]:
    found = get(workload, "spec", "template", "spec", "containers")
    return [container for container in found if isinstance(container, dict)] if isinstance(found, list) else []


def runs_java(container: dict[str, Any]) -> bool:
    names = {str(variable.get("name")) for variable in container.get("env") or [] if isinstance(variable, dict)}
    return is_jvm(str(container.get("image", ""))) or bool(names & set(_JVM_VARIABLES))


def startup_s(workload: dict[str, Any] | None) -> float:
    """How long a pod takes at least until it counts: the delays its manifest writes down."""
    least = float(get(workload, "spec", "minReadySeconds") or 0)
    delays = [
        float(get(container, probe, "initialDelaySeconds") or 0)
        for container in containers(workload)
        for probe in ("readinessProbe", "startupProbe")
    ]
    return least + max(delays, default=0.0)
