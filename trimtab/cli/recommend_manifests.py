"""Workloads as they are now, from manifests of them and of whoever scales them, for `trimtab recommend -f`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from trimtab.advisor.scalers import OURS, SCALING, OwnScaler, with_scalers
from trimtab.advisor.targets import AdvisedTarget, target_of
from trimtab.cli.recommend_options import MOST_REPLICAS
from trimtab.errors import InvalidInput
from trimtab.kinds import without_nulls
from trimtab.kinds.convert import convert
from trimtab.kinds.lint.layout import is_patch, patch_files
from trimtab.kinds.yaml import Document, load
from trimtab.wire.objects import Custom, WireWorkload
from trimtab.wire.resources import KNOWN

WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet")
SCALERS = ("HorizontalPodAutoscaler", "ScaledObject")
UNSEEN = {"type": "External"}  # something else than CPU, which no file of usage shows


def read_manifests(paths: Sequence[str]) -> list[Document]:
    """Everything in these files and folders but kustomize's patches; what cannot be read is said with its place."""
    found = [document for path in paths for document in load(path)]
    for document in found:
        if document.error is not None:
            where = f"{document.file}: {document.error.path}".removeprefix(f"{document.file}: {document.file}")
            raise InvalidInput(where or document.file, document.error.value, document.error.fix)
    patches = patch_files(found)
    whole = [document for document in found if not is_patch(document, patches)]
    if paths and not any(_kind(document) in WORKLOADS for document in whole):
        raise InvalidInput("--filename", ", ".join(paths), "it holds no Deployment, StatefulSet or DaemonSet")
    return whole


def manifests(documents: Sequence[Document], namespace: str) -> list[AdvisedTarget]:
    """Deployments and the like, each with the HPA, ScaledObject or object of ours that scales it."""
    hpas = [_hpa(document, namespace) for document in documents if _kind(document) in SCALERS]
    ours = [_own_scaler(document, namespace) for document in documents if _kind(document) in SCALING]
    targets = [_target(document, hpas, namespace) for document in documents if _kind(document) in WORKLOADS]
    return with_scalers(targets, ours)


def _kind(document: Document) -> str:
    manifest = document.value if isinstance(document.value, dict) else {}
    groups = ("apps/", "autoscaling/", "keda.sh/", *(f"{resource.group}/" for resource in OURS))
    return str(manifest.get("kind")) if str(manifest.get("apiVersion")).startswith(groups) else ""


def _own_scaler(document: Document, namespace: str) -> OwnScaler:
    manifest = document.value
    meta, spec = (part if isinstance(part := manifest.get(name), dict) else {} for name in ("metadata", "spec"))
    return OwnScaler(manifest["kind"], meta.get("namespace") or namespace, str(meta.get("name")), spec)


def _hpa(document: Document, namespace: str) -> Custom:
    """As autoscaling/v2 what there is now: an HPA of any version, or a ScaledObject, whatever it goes by."""
    try:
        made = convert(document.value, "hpa")
        if made.loses_signal:
            made.manifest["spec"]["metrics"] = [UNSEEN]
        hpa = msgspec.convert(made.manifest, Custom, strict=False)
    except InvalidInput as error:
        raise InvalidInput(f"{document.file}:{document.line} {error.path}".strip(), error.value, error.fix) from None
    meta = msgspec.structs.replace(hpa.metadata, namespace=hpa.metadata.namespace or namespace)
    return msgspec.structs.replace(hpa, metadata=meta)


def _target(document: Document, hpas: Sequence[Custom], namespace: str) -> AdvisedTarget:
    manifest, where = without_nulls(document.value), f"{document.file}:{document.line}"
    try:
        resource = KNOWN.get((str(manifest.get("apiVersion")), str(manifest.get("kind"))))
        if resource is None:
            raise InvalidInput("apiVersion", manifest.get("apiVersion"), "write apps/v1")
        workload = msgspec.convert(manifest, WireWorkload, strict=False)
        named = msgspec.structs.replace(workload.metadata, namespace=workload.metadata.namespace or namespace)
        target = target_of(resource, msgspec.structs.replace(workload, metadata=named), (), hpas, 0.0)
    except msgspec.ValidationError as error:
        raise InvalidInput(where, manifest["kind"], str(error)) from None
    except InvalidInput as error:  # a quantity, which does not know where it stands
        raise InvalidInput(f"{where} {error.path}".strip(), error.value, error.fix) from None
    if not 0 <= target.replicas <= MOST_REPLICAS:
        raise InvalidInput(f"{where} spec.replicas", target.replicas, f"write a number from 0 to {MOST_REPLICAS}")
    return replace(target, metrics=tuple(metric for metric in target.metrics if metric != UNSEEN))
