"""What the metrics APIs answer: the parts that we read."""

from __future__ import annotations

from datetime import datetime

from trimtab.wire.objects import WireRecord


class Usage(WireRecord, frozen=True):
    """None: the kubelet said nothing."""

    cpu: str | None = None
    memory: str | None = None


class ContainerUsage(WireRecord, frozen=True):
    name: str = ""
    usage: Usage = Usage()


class WhosePod(WireRecord, frozen=True):
    """Of its metadata: labels of every pod in every tick would be read for nobody."""

    namespace: str = ""
    name: str = ""


class PodMetrics(WireRecord, frozen=True):
    """metrics.k8s.io: the usage of one pod over `window`, ending at `timestamp`."""

    metadata: WhosePod = WhosePod()
    timestamp: datetime | None = None
    window: str = ""
    containers: tuple[ContainerUsage, ...] = ()


class DescribedObject(WireRecord, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""


class CustomMetricValue(WireRecord, frozen=True):
    """custom.metrics.k8s.io: one value of one object."""

    described_object: DescribedObject = DescribedObject()
    timestamp: datetime | None = None
    value: str = ""


class ExternalMetricValue(WireRecord, frozen=True):
    """external.metrics.k8s.io: one value of something outside."""

    metric_name: str = ""
    metric_labels: dict[str, str] | None = None
    timestamp: datetime | None = None
    value: str = ""
