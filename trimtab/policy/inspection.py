"""What an Analytics compiles to (document 000)."""

from __future__ import annotations

import enum

from trimtab.policy.record import Record

TWO_WEEKS_S = 1209600.0


class Advice(enum.StrEnum):
    HPA = "HPA"
    RESOURCE = "Resource"
    REPLICAS = "Replicas"
    BOTH = "Both"  # replicas and requests together, proven by backtest; no Analytics asks for it


class AdviceAlgorithm(enum.StrEnum):
    EXACT = "exact"  # as document 000 writes it
    CRANE = "crane"  # as its program computes it: bucketed, load-weighted percentiles with a margin


class Inspection(Record, frozen=True):
    """Document 000's configuration, one field per key, with its defaults; then the keys of its later versions."""

    advice: Advice = Advice.HPA
    algorithm: AdviceAlgorithm = AdviceAlgorithm.EXACT
    deployment_min_replicas: int = 1
    statefulset_min_replicas: int = 1
    workload_min_replicas: int = 1
    pod_min_ready_s: float = 30.0
    pod_available_ratio: float = 0.5
    default_min_replicas: int = 2
    max_replicas_factor: float = 3.0
    min_cpu_usage_cores: float = 10.0
    fluctuation_threshold: float = 1.5
    min_cpu_target_percent: int = 30
    max_cpu_target_percent: int = 75
    reference_hpa: bool = True
    must_be_predictable: bool = False
    cpu_percentile: float = 0.95  # of the whole workload: for maxReplicas, and for advice on replicas
    cpu_target_ratio: float = 0.5  # advice on replicas
    memory_target_ratio: float = 0.5
    request_percentile: float = 0.99  # of each container: for the target, and for advice on requests
    request_margin: float = 0.15
    history_s: float = 604800.0
    oom_protection: bool = True
    oom_bump_ratio: float = 1.2
    size_ladder: tuple[tuple[float, float], ...] = ()  # (cores, bytes); requests are rounded up to one of them
    timezone: str = "UTC"  # in which the hours of the day are counted

    @property
    def forecast_history_s(self) -> float:
        """What the forecast looks back at: two weeks show a weekly pattern, which one week cannot."""
        return max(self.history_s, TWO_WEEKS_S) if self.advice is Advice.HPA and not self.crane else self.history_s

    @property
    def crane(self) -> bool:
        return self.algorithm is AdviceAlgorithm.CRANE
