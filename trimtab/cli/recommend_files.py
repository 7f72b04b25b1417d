"""`trimtab recommend --history FILE`: usage from files, replicas and requests from manifests or from options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from trimtab.advisor.targets import AdvisedTarget
from trimtab.cli.recommend_manifests import manifests
from trimtab.cli.recommend_options import FileOptions
from trimtab.core.model import Pod
from trimtab.errors import InvalidInput
from trimtab.history.files import POD_LEVEL, FileReading
from trimtab.history.read_file import read_file
from trimtab.history.series_names import ASSUMED_KIND, workload_row
from trimtab.history.source import Metric
from trimtab.kinds.yaml import Document
from trimtab.policy import Advice, Inspection, Size
from trimtab.quantity import parse_quantity
from trimtab.series import Frame
from trimtab.wire.resources import DEPLOYMENTS, KNOWN

DESCRIBE = "give a manifest of it with -f, or --replicas and --cpu-request for all"


def read_files(
    options: FileOptions, rules: Inspection, namespaces: Sequence[str], home: str, documents: Sequence[Document]
) -> tuple[dict[Metric, Frame], tuple[str, ...]]:
    """Of each metric the rows of these namespaces; what names none is in the first of them. And what was assumed."""
    files: dict[Metric, str | None] = {"cpu": options.file, "memory": options.memory_file}
    if rules.advice is Advice.RESOURCE and not options.memory_file:
        fix = "requests need the memory of each pod as well: give it with --memory-history FILE"
        raise InvalidInput("--type", "resource", fix)
    reading = FileReading(options.step_s, options.time_column, home)
    frames = {metric: (_named(read_file(path, reading), reading), path) for metric, path in files.items() if path}
    inside = {metric: _inside(frame, path, namespaces) for metric, (frame, path) in frames.items()}
    described = [target.key for target in manifests(documents, home)]
    return (inside, ()) if len(described) != 1 else _of_the_only_one(inside, described[0])


def _of_the_only_one(frames: dict[Metric, Frame], key: str) -> tuple[dict[Metric, Frame], tuple[str, ...]]:
    """One series that names no workload, and one workload: it can only be its."""
    unnamed = {metric: frame for metric, frame in frames.items() if len(frame.names) == 1 and "/" not in frame.names[0]}
    others = dict.fromkeys(frame.names[0] for frame in unnamed.values() if frame.names[0] != key.rpartition("/")[2])
    notes = tuple(f"{name} is taken for the usage of {key}, the only workload of -f" for name in others)
    return frames | {metric: replace(frame, names=(key,)) for metric, frame in unnamed.items()}, notes


def _named(frame: Frame, reading: FileReading) -> Frame:
    """Series that people have named after workloads, as ours are."""
    rows = tuple(workload_row(name, reading.namespace) for name in frame.names)
    return Frame(rows, frame.start, frame.step_s, frame.values) if len(set(rows)) == len(rows) else frame


def home_of(namespaces: Sequence[str], documents: Sequence[Document]) -> str:
    """Where that is which says no namespace: in the first that is asked for, else in the only one of the manifests."""
    if namespaces:
        return namespaces[0]
    named = {target.namespace for target in manifests(documents, "default")}
    return named.pop() if len(named) == 1 else "default"


def _inside(frame: Frame, path: str, namespaces: Sequence[str]) -> Frame:
    if not namespaces:
        return frame
    rows = [row for row, name in enumerate(frame.names) if "/" not in name or name.split("/")[0] in namespaces]
    if not rows:
        known = sorted({name.split("/")[0] for name in frame.names})
        raise InvalidInput("--namespace", ", ".join(namespaces), f"{path} has {', '.join(known[:5])}")
    return Frame(tuple(frame.names[row] for row in rows), frame.start, frame.step_s, frame.values[rows])


def described(
    options: FileOptions, names: Sequence[str], frame: Frame, documents: Sequence[Document], namespace: str
) -> tuple[list[AdvisedTarget], tuple[str, ...]]:
    """Replicas and requests of each row: from a manifest of that name, else from the options; who is left out."""
    rows = [name for name in frame.names if name.count("/") in (0, 2)]
    rows = [row for row in rows if not names or row.rpartition("/")[2] in names]
    known = {target.key: target for target in manifests(documents, namespace)}
    targets, unknown = [], []
    for row in rows:
        found = [target for key, target in known.items() if row in (key, target.name)] or _of_any_kind(known, row)
        if not found and (options.replicas is None or options.cpu_request is None):
            unknown.append(row)
            continue
        target = found[0] if found else _assumed(options, row, namespace)
        targets.append(replace(target, row=row, pods=_running(target, frame, row)))
    if unknown and not targets:
        fix = f"its replicas and requests are not known: {DESCRIBE}"
        raise InvalidInput(f"{options.file} series", unknown[0], fix)
    notes = (f"left out, for nothing is known of their replicas and requests: {', '.join(unknown)}; {DESCRIBE}",)
    return targets, notes if unknown else ()


def _of_any_kind(known: dict[str, AdvisedTarget], row: str) -> list[AdvisedTarget]:
    """Of the same namespace and name, where there is one: who writes shop/db does not say that it is a StatefulSet."""
    alike = [target for target in known.values() if row == f"{target.namespace}/{ASSUMED_KIND}/{target.name}"]
    return alike if len(alike) == 1 else []


def _assumed(options: FileOptions, row: str, namespace: str) -> AdvisedTarget:
    where = row if "/" in row else f"{namespace}/{ASSUMED_KIND}/{row}"
    namespace, kind, name = where.split("/")
    memory = _above_zero(options.memory_request, "--memory-request") if options.memory_request else None
    size = Size(cpu_cores=_above_zero(options.cpu_request or "", "--cpu-request"), memory_bytes=memory)
    resource = next((resource for resource in KNOWN.values() if resource.kind == kind), DEPLOYMENTS)
    return AdvisedTarget(resource.api_version, kind, namespace, name, options.replicas or 0, {"app": size}, ())


def _above_zero(text: str, option: str) -> float:
    value = parse_quantity(text, option)
    if value <= 0:
        raise InvalidInput(option, text, "write a quantity above zero")
    return value


def _running(target: AdvisedTarget, frame: Frame, row: str) -> tuple[Pod, ...]:
    """As many as it has replicas: the pods at the end of the file, then some without a history."""
    last = (
        name.rpartition("/")[2]
        for name, values in zip(frame.names, frame.values, strict=True)
        if name.startswith(f"{row}/") and name.count("/") == POD_LEVEL and np.isfinite(values[-2:]).any()
    )
    names = dict.fromkeys([*last, *(f"{target.name}-{index}" for index in range(target.replicas))])
    since = frame.end - 86400.0
    return tuple(Pod(name=name, started_at=since, ready_since=since) for name in list(names)[: target.replicas])
