"""The policies of `-f`, each with the workload it scales where the files hold that too."""

from __future__ import annotations

import time
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from trimtab.errors import InvalidInput, InvalidObject, quoted
from trimtab.policy import Admit, Mode, Policy

if TYPE_CHECKING:
    from trimtab.cli.workload_files import WorkloadPod
    from trimtab.core.model import Pod
    from trimtab.kinds import CustomHpa, Scaler
    from trimtab.kinds.foreign import ForeignKind
    from trimtab.kinds.yaml import Document

NO_AUTOSCALER = "there is no autoscaler in it: give an Autoscaler, HPA, EffectiveHPA, Hvpa, ScaledObject or VPA"


class NamedPolicy(NamedTuple):
    """One policy of a file, the manifest it came from (or was converted to), its pods, and what was done to it."""

    name: str
    policy: Policy
    manifest: dict[str, Any]
    pod: WorkloadPod | None = None
    notes: tuple[str, ...] = ()

    @property
    def template(self) -> Pod | None:
        """One of its pods, where a manifest holds its template."""
        return self.pod.pod if self.pod else None


FoundPolicy = tuple["Document", NamedPolicy]


def read_policies(paths: tuple[str, ...], start: float, seconds: float) -> list[NamedPolicy]:
    """Every policy of these files, schedules laid out over the whole time; other objects are left out."""
    from trimtab.cli.workload_files import pods_of

    documents = _whole_documents(paths)
    found = _policies_of(documents, pods_of(documents), start, seconds)
    if not found:
        raise InvalidInput("-f", ", ".join(paths), NO_AUTOSCALER)
    return _told_apart(found)


def read_comparison(
    sides: tuple[str, str], workloads: tuple[str, ...], start: float, seconds: float
) -> list[NamedPolicy]:
    """A, then B. Each goes by the workload of its own files, else by that of `workloads`, else by the other side's."""
    from trimtab.cli.workload_files import pods_of

    first, second, beside = (_whole_documents(paths) for paths in ((sides[0],), (sides[1],), workloads))
    found = []
    for path, own, other in ((sides[0], first, second), (sides[1], second, first)):
        policies = _policies_of(own, pods_of([*own, *beside, *other]), start, seconds)
        if len(policies) != 1:
            raise InvalidInput(f"--compare {path}", *_why_no_side(policies))
        found += policies
    return _told_apart(found)


def _why_no_side(found: list[FoundPolicy]) -> tuple[str, str]:
    """What a side of a comparison holds instead of one policy, and what to do."""
    if not found:
        return "no policy", f"{NO_AUTOSCALER}; the manifest of a workload goes to -f"
    return f"{len(found)} policies ({', '.join(policy.name for _, policy in found)})", "name a file that holds one"


def _whole_documents(paths: tuple[str, ...]) -> list[Document]:
    """All but kustomize's patches."""
    from trimtab.kinds.lint.layout import is_patch, patch_files
    from trimtab.kinds.yaml import load as documents_of

    read = [document for path in paths for document in documents_of(path)]
    patches = patch_files(read)
    return [document for document in read if not is_patch(document, patches)]


def _policies_of(documents: list[Document], pods: list[WorkloadPod], start: float, seconds: float) -> list[FoundPolicy]:
    read = ((document, _policy_of(document, pods, start, seconds)) for document in documents)
    return [(document, policy) for document, policy in read if policy is not None]


def _told_apart(found: list[FoundPolicy]) -> list[NamedPolicy]:
    """Policies of one name, each with what tells it from the others."""
    names = [policy.name for _, policy in found]
    marks = _marks([Path(document.file) for document, _ in found])
    return [
        policy if names.count(policy.name) == 1 else policy._replace(name=f"{policy.name} ({mark})")
        for (_, policy), mark in zip(found, marks, strict=True)
    ]


def _marks(files: list[Path]) -> list[str]:
    """What tells policies of one name apart: the names of their files, else where these lie, else a number."""
    numbers = [str(number) for number in range(1, len(files) + 1)]
    kinds = ([file.stem for file in files], [str(file.with_suffix("")) for file in files], numbers)
    return next(marks for marks in kinds if len(set(marks)) == len(marks))


def _policy_of(document: Document, pods: list[WorkloadPod], start: float, seconds: float) -> NamedPolicy | None:
    """The policy of a document, or nothing where it is another object; what is wrong is said with file and line."""
    from trimtab.kinds.convert import convertible

    try:
        if document.error is not None:
            raise document.error
        if not isinstance(document.value, dict):
            value = document.value  # a whole CSV, where -f and --load are mixed up
            said = quoted(value) if isinstance(value, str) else value
            raise InvalidInput("document", said, "write a manifest: apiVersion, kind, metadata, spec")
        if not convertible(document.value):
            return None
        return _named_policy(document.value, document.file, pods, start, seconds)
    except InvalidInput as error:
        first = error.problems[0] if isinstance(error, InvalidObject) else error
        line = document.line if document.error else document.line_of(first.path)
        where = f"{document.file}:{line}"
        if isinstance(error, InvalidObject):
            raise InvalidObject(f"{where}: {error.what}", error.problems) from None
        raise InvalidInput(f"{where}: {error.path}".rstrip(": "), error.value, error.fix) from None


def _named_policy(
    manifest: dict[str, Any], file: str, pods: list[WorkloadPod], start: float, seconds: float
) -> NamedPolicy:
    from trimtab.cli.workload_files import pod_of_target
    from trimtab.kinds import CustomHpa, Scaler, is_custom_hpa, read
    from trimtab.kinds.convert import title
    from trimtab.kinds.foreign import ForeignKind
    from trimtab.kinds.schedule import expand_schedules

    notes: list[str] = []
    if is_custom_hpa(manifest):
        kind: Scaler | CustomHpa = CustomHpa.from_values(manifest)
        name = f"custom-hpa {file}"
    else:
        checked = read(manifest)
        assert isinstance(checked, Scaler)
        kind, name = checked, title(manifest).partition("/")[2]
        if isinstance(kind, ForeignKind) and kind.served_elsewhere:
            manifest, notes = kind.translation.applicable, _notes(kind)
    policy, said = _switched_on(kind, expand_schedules(kind.to_policy(start), start, start + seconds))
    namespace = (manifest.get("metadata") or {}).get("namespace")
    pod = pod_of_target(pods, kind.target, namespace, file) if isinstance(kind, Scaler) else None
    policy, learned = _at_learned_level(policy, manifest.get("status"), pod)
    return NamedPolicy(name, policy, manifest, pod, tuple(f"{name}: {note}" for note in (*notes, *said, *learned)))


def _at_learned_level(policy: Policy, status: object, pod: WorkloadPod | None) -> tuple[Policy, list[str]]:
    """The policy by the level that the operator learned of its latency promise, which its status holds."""
    from trimtab.core.latency_level import at_level
    from trimtab.live.look.memory import read

    if policy.objective is None or policy.objective.latency is None:
        return policy, []
    known = read(status if isinstance(status, dict) else {}, time.time(), 1).latency
    if known is None or not known.level or not 0.0 < known.level < inf:
        fix = "give the object with its status (kubectl get autoscaler NAME -o yaml), or see trimtab capacity"
        return policy, [f"what one pod serves below objective.latency is not known here, so its target counts: {fix}"]
    pods = (pod.pod,) if pod else ()
    return at_level(policy, known.level, known.text, pods), [known.text]


def _notes(kind: ForeignKind) -> list[str]:
    """What is lost where another controller's kind is read as an Autoscaler."""
    lost = kind.translation.ledger.lost
    if gone := next((loss for loss in lost if loss.signal), None):
        raise InvalidInput(gone.path, "its signal would be lost", gone.why)
    return [f"this {kind.kind} is read as an Autoscaler", *(f"{loss.path}: {loss.why}" for loss in lost)]


def _switched_on(kind: Scaler | CustomHpa, policy: Policy) -> tuple[Policy, list[str]]:
    """Who only watches is asked what it would do."""
    from trimtab.kinds import CustomHpa, EffectiveHpa

    if policy.admit.mode is not Mode.SHADOW:
        return policy, []
    word = "dryRun" if isinstance(kind, CustomHpa) else "Preview" if isinstance(kind, EffectiveHpa) else "Shadow"
    admit = Admit() if isinstance(kind, CustomHpa) else kind.admit()  # without the replicas that Preview sets
    return replace(policy, admit=admit), [f"it is in {word} mode and simulated as if it were on"]


def standing_still(named: NamedPolicy) -> list[str]:
    """Why a backtest shows a flat line."""
    admit, said = named.policy.admit, []
    if admit.mode is Mode.PAUSED or admit.paused_until is not None:
        said.append(f"{named.name}: it is paused and changes nothing in that time")
    if admit.pin is not None:
        said.append(f"{named.name}: it is pinned to {admit.pin} replicas")
    return said
