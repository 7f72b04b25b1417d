"""What `trimtab recommend` is asked about: workloads of a cluster, or of a file."""

from __future__ import annotations

from typing import NamedTuple

MOST_REPLICAS = 100_000  # more pods than a cluster of Kubernetes holds


class ScopeOptions(NamedTuple):
    """Which workloads of a cluster, and of its Prometheus."""

    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    selector: str = ""
    matchers: str = ""


class FileOptions(NamedTuple):
    """A file of usage in the place of a cluster, and what people say about its workloads."""

    file: str | None = None
    memory_file: str | None = None
    manifests: tuple[str, ...] = ()
    replicas: int | None = None
    cpu_request: str | None = None
    memory_request: str | None = None
    step_s: float | None = None
    time_column: str = ""
