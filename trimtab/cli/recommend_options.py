"""What `trimtab recommend` is asked about: workloads of a cluster, or of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trimtab.promql import parse_matchers

if TYPE_CHECKING:
    from trimtab.history.pod_owners import SeriesMatchers

MOST_REPLICAS = 100_000  # more pods than a cluster of Kubernetes holds


class ScopeOptions(NamedTuple):
    """Which workloads of a cluster, and of its Prometheus."""

    namespaces: tuple[str, ...] = ()
    all_namespaces: bool = False
    selector: str = ""
    matchers: str = ""
    kube_state_metrics: str = 'job="kube-state-metrics"'

    @property
    def series(self) -> SeriesMatchers:
        """Which series of Prometheus are read."""
        from trimtab.history.pod_owners import SeriesMatchers

        owners = parse_matchers(self.kube_state_metrics, "--kube-state-metrics")
        return SeriesMatchers(parse_matchers(self.matchers, "--matchers"), owners)


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
