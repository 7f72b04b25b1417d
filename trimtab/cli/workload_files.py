"""The workloads among the manifests of `-f`: what a pod of theirs requests says how much load it carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from trimtab.core.requests import pod_request
from trimtab.errors import InvalidInput
from trimtab.wire.from_kubernetes import pod_level, template_requests
from trimtab.wire.objects import WireWorkload

if TYPE_CHECKING:
    from trimtab.kinds import TargetRef
    from trimtab.kinds.yaml import Document
    from trimtab.policy import Signal, Size


class WorkloadPod(NamedTuple):
    """What a workload's manifest says of its pods."""

    title: str  # such as Deployment/web
    namespace: str | None
    file: str
    workload: WireWorkload

    def request(self, container: str = "") -> Size:
        """Of the whole pod, or of one container; the parts that a container leaves out are None."""
        spec = self.workload.spec.template.spec
        return pod_request(template_requests(spec), pod_level(spec), container)

    def cores(self, signal: Signal | None) -> float:
        """What a CPU signal is a share of; refused where Kubernetes could not compute it either."""
        cores = self.request(signal.metric.container if signal else "").cpu_cores
        if not cores:
            fix = "give every container resources.requests.cpu, or say --pod-capacity"
            raise InvalidInput(f"{self.file}: {self.title}", "no CPU request", fix)
        return cores


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
