"""The workloads among the manifests of `-f`: what a pod of theirs requests says how much load it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trimtab.errors import InvalidInput
from trimtab.wire.from_kubernetes import template_fact
from trimtab.wire.objects import WireWorkload

if TYPE_CHECKING:
    from trimtab.core.model import Pod
    from trimtab.kinds import TargetRef
    from trimtab.kinds.yaml import Document


class WorkloadPod(NamedTuple):
    """What a workload's manifest says of its pods."""

    title: str  # such as Deployment/web
    namespace: str | None
    file: str
    workload: WireWorkload

    @property
    def pod(self) -> Pod:
        """One of its pods."""
        return template_fact(self.title, self.workload.spec.template.spec)


def pods_of(documents: list[Document]) -> list[WorkloadPod]:
    """Every Deployment, StatefulSet or other object with a pod template."""
    return [_pod(document) for document in documents if document.error is None and _has_template(document.value)]


def _has_template(value: Any) -> bool:
    for field in ("spec", "template", "spec"):
        value = value.get(field) if isinstance(value, dict) else None
    return isinstance(value, dict) and "containers" in value


def _pod(document: Document) -> WorkloadPod:
    from trimtab.kinds import without_nulls

    manifest = document.value
    metadata = manifest.get("metadata") or {}
    title = f"{manifest.get('kind')}/{metadata.get('name')}"
    try:
        workload = msgspec.convert(without_nulls({"spec": manifest["spec"]}), WireWorkload)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{document.file}:{document.line}: {title}", str(error), "correct this manifest") from None
    return WorkloadPod(title, metadata.get("namespace"), document.file, workload)


def pod_of_target(pods: list[WorkloadPod], target: TargetRef, namespace: str | None, file: str) -> WorkloadPod | None:
    """The pods of a scaleTargetRef; those of the same file before those of another."""
    alike = [pod for pod in pods if pod.title == target.text and namespace in (pod.namespace, None)]
    alike += [pod for pod in pods if pod.title == target.text and pod.namespace is None and pod not in alike]
    return next((pod for pod in alike if pod.file == file), alike[0] if alike else None)
