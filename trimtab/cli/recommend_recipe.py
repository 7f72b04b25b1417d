"""How to get the files that `trimtab recommend --history` reads, out of what people have."""

from __future__ import annotations

from trimtab.cli.recommend import ScopeOptions
from trimtab.history.source import Metric
from trimtab.history.workload_history import by_hand

STEP_S = 60.0
TEXT = """\
Query this from Prometheus, over two weeks, one point per minute (--step of a range query: 1m).

cores used, for --history:
  {cpu}

bytes used, for --memory-history:
  {memory}

In Grafana: Explore, the query, Inspector, Data, switch off "Formatted data", Download CSV. The columns bear the
labels of their pods, and pods are added up to their workloads.

From Datadog, whose CPU is in nanocores:
  sum:kubernetes.cpu.usage.total{{*}} by {{kube_namespace,kube_deployment}} / 1000000000

From elsewhere: a time and a value per row, and whose it is in a column series (namespace/Kind/name), or in columns
namespace, deployment, statefulset, pod, container; or one column per series after the time.

Then, with the manifests of the workloads and of their HPAs:
  trimtab recommend --history cpu.csv --memory-history memory.csv -f manifests/
"""


def recipe(scope: ScopeOptions) -> str:
    metrics: tuple[Metric, ...] = ("cpu", "memory")
    chosen = scope.series.usage
    return TEXT.format(**{metric: by_hand(metric, scope.namespaces, chosen, STEP_S) for metric in metrics})
