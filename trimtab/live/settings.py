"""settings: what `trimtab run` may be told."""

from __future__ import annotations

import socket
import uuid
from dataclasses import dataclass, field, replace

from trimtab.core.usage.settings import HistogramSettings as UsageSettings
from trimtab.history.pod_owners import KUBE_STATE_METRICS, SeriesMatchers
from trimtab.live.look.subject import ChangeRules
from trimtab.live.measure.tenancy import TenancyMode
from trimtab.promql import Matchers
from trimtab.quantity import MIB
from trimtab.wire.access import Access
from trimtab.wire.shards import ALONE, Shard


@dataclass(frozen=True)
class OperatorSettings:
    """What `trimtab run` may be told."""

    tick_s: float = 15.0
    namespace: str = ""  # "": the whole cluster
    shadow: bool = False
    journal: str = ""
    journal_bytes: int = 512 * MIB  # half of the volume that the chart gives it
    listen: tuple[str, int] | None = None  # address and port
    api_token_file: str = ""  # what whoever asks for the journal sends; "": only this machine may ask
    lease_namespace: str = ""
    lease_s: tuple[float, float, float] = (15.0, 10.0, 2.0)  # duration, renew deadline, retry
    shard: Shard = ALONE
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}")
    api_per_s: float = 200.0  # the API server's own priority and fairness lets in more
    api_burst: float = 400.0
    scrape_s: float = 60.0
    breaker_s: float = 300.0
    usage: UsageSettings = field(default_factory=UsageSettings)
    usage_every_s: float = 60.0
    checkpoint_s: float = 600.0
    change_rules: ChangeRules = field(default_factory=ChangeRules)
    system_namespaces: tuple[str, ...] = ()  # those of the cluster itself that are served, too
    advice_namespaces: tuple[str, ...] = ()  # beside our own: an Analytics there looks everywhere
    tenancy: TenancyMode = "open"
    history_url: str = ""  # for the operator's own questions, where tenants' go to a label proxy
    history_matchers: Matchers = ()  # such as 'cluster="a"': our series, where Prometheus has those of several clusters
    kube_state_metrics: Matchers = KUBE_STATE_METRICS  # whose word on owners counts; empty: nobody's

    @property
    def series_matchers(self) -> SeriesMatchers:
        return SeriesMatchers(self.history_matchers, self.kube_state_metrics)

    def history(self, prometheus: Access | None) -> Access | None:
        """Where usage of before is read, which is of many namespaces at once: a label proxy would not answer."""
        if prometheus is None or (self.tenancy == "label-proxy" and not self.history_url):
            return None
        return replace(prometheus, url=self.history_url) if self.history_url else prometheus
