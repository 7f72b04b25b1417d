"""Triggers of KEDA whose number an exporter has in Prometheus, in the words of the exporter that most people run.

Each entry gives the total that KEDA would count; where its settings ask for something the exporter does not have, it
says so, and the trigger is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from trimtab.kinds.source_fields import SourceFields
from trimtab.promql import either, escape, quote


class ExporterQuery(NamedTuple):
    """What to ask, of whom, and the target for each pod."""

    query: str
    exporter: str
    target: str


class Unanswerable(Exception):
    """No exporter has this; the reason."""


Build = Callable[[SourceFields, str | None], ExporterQuery]
_OPERATIONS = ("sum", "max", "avg")
_SIMPLE = re.compile(r"^([\w./-]+?)\s*(==|=|!=)\s*([\w.-]*)$")
_AMONG = re.compile(r"^([\w./-]+)\s+(in|notin)\s+\(([\w.,\s-]+)\)$")


def _kafka(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    """More consumers than partitions are idle, so KEDA counts no more lag than the partitions can share."""
    topics = [topic.strip() for topic in (settings.take("topic", str) or "").split(",")]
    topic = {"topic": topics[0]} if len(topics) == 1 else {"topic~": either(topics)}
    labels = _labels(consumergroup=_text(settings, "consumerGroup", "group"), **topic)
    threshold = _number(settings, "lagThreshold", default="10")
    lag = f"kafka_consumergroup_lag{labels}"
    for name in ("bootstrapServers", "version", "offsetResetPolicy", "sasl", "tls"):
        settings.take(name, object)
    total = f"sum({lag})"
    if not _is_true(settings, "allowIdleConsumers"):
        total = f"clamp_max({total}, {threshold} * scalar(count({lag})))"
    return ExporterQuery(total, "kafka_exporter", threshold)


def _rabbitmq(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    mode = settings.take("mode", str) or "QueueLength"
    if mode != "QueueLength":
        raise Unanswerable(f"mode {mode}: the exporter has no rate per queue")
    threshold = _number(settings, "value", "queueLength", default="20")
    settings.take("queueLength", object)
    ready = "_ready" if _is_true(settings, "excludeUnacknowledged") else ""
    name = _text(settings, "queueName")
    queue = {"queue~": f".*(?:{name}).*"} if _is_true(settings, "useRegex") else {"queue": name}  # RabbitMQ searches
    labels = _labels(vhost=settings.take("vhostName", str), **queue)
    how = (settings.take("operation", str) or "sum").lower()
    if how not in _OPERATIONS:
        raise Unanswerable(f"operation {how!r}: write one of {', '.join(_OPERATIONS)}")
    for other in ("host", "hostFromEnv", "protocol", "pageSize", "unsafeSsl", "connectionName"):
        settings.take(other, object)
    return ExporterQuery(
        f"{how}(rabbitmq_queue_messages{ready}{labels})", "rabbitmq_prometheus, with metrics per queue", threshold
    )


def _redis_list(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    name, threshold = _text(settings, "listName"), _number(settings, "listLength", default="5")
    labels = _labels(db=_redis_base(settings), key=name)
    return ExporterQuery(
        f"sum(redis_key_size{labels})", f"redis_exporter, with --check-single-keys for {name}", threshold
    )


def _redis_stream(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    """The group's pending entries, else its lag, else the whole stream, as KEDA chooses."""
    stream, group = _text(settings, "stream"), settings.take("consumerGroup", str)
    labels = _labels(db=_redis_base(settings), stream=stream, group=group)
    exporter = f"redis_exporter, with --check-single-streams for {stream}"
    if settings.has("lagCount"):
        return ExporterQuery(f"sum(redis_stream_group_lag{labels})", exporter, _number(settings, "lagCount"))
    if settings.has("streamLength") and not group:
        return ExporterQuery(f"sum(redis_stream_length{labels})", exporter, _number(settings, "streamLength"))
    threshold = _number(settings, "pendingEntriesCount", default="5")
    settings.take("streamLength", object)
    return ExporterQuery(f"sum(redis_stream_group_messages_pending{labels})", exporter, threshold)


def _redis_base(settings: SourceFields) -> str:
    for name in ("address", "addresses", "host", "hosts", "port", "ports", "enableTLS", "unsafeSsl", "sentinelMaster"):
        for spelling in (name, f"{name}FromEnv"):
            settings.take(spelling, object)
    return f"db{_number(settings, 'databaseIndex', default='0')}"


def _sqs(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    queue = _text(settings, "queueURL").rstrip("/").rpartition("/")[2]
    threshold = _number(settings, "queueLength", default="5")
    counted = ["visible"]
    if not _is_false(settings, "scaleOnInFlight"):
        counted.append("not_visible")
    if _is_true(settings, "scaleOnDelayed"):
        counted.append("delayed")
    for name in ("identityOwner", "awsEndpoint"):
        settings.take(name, object)
    region = settings.take("awsRegion", str)  # two regions may have a queue of the same name
    labels = _labels(dimension_QueueName=queue) if region is None else _labels(dimension_QueueName=queue, region=region)
    parts = [f"sum(aws_sqs_approximate_number_of_messages_{name}_average{labels})" for name in counted]
    return ExporterQuery(" + ".join(parts), "yet-another-cloudwatch-exporter, AWS/SQS, statistic Average", threshold)


def _pubsub(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    name = _text(settings, "subscriptionName").rpartition("/")[2]
    mode = settings.take("mode", str) or "SubscriptionSize"
    metric = {"SubscriptionSize": "num_undelivered_messages", "OldestUnackedMessageAge": "oldest_unacked_message_age"}
    if mode not in metric:
        raise Unanswerable(f"mode {mode}: write the query of your exporter by hand")
    threshold = _number(settings, "value", "subscriptionSize", default="10")
    for other in ("subscriptionSize", "credentialsFromEnv"):
        settings.take(other, object)
    series = f"stackdriver_pubsub_subscription_pubsub_googleapis_com_subscription_{metric[mode]}"
    how = "sum" if mode == "SubscriptionSize" else "max"
    return ExporterQuery(f"{how}({series}{_labels(subscription_id=name)})", "stackdriver_exporter", threshold)


def _pulsar(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    topic, subscription = _text(settings, "topic"), _text(settings, "subscription")
    threshold = _number(settings, "msgBacklogThreshold", "msgBacklog", default="10")
    if _is_true(settings, "isPartitionedTopic"):
        labels = _labels(**{"topic~": f"{escape(topic)}-partition-.*"}, subscription=subscription)
    else:
        labels = _labels(topic=topic, subscription=subscription)
    for name in ("adminURL", "authModes", "tls"):
        settings.take(name, object)
    return ExporterQuery(f"sum(pulsar_subscription_back_log{labels})", "Pulsar's brokers", threshold)


def _jetstream(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    """KEDA adds what was delivered and not acknowledged; only the leader's numbers count."""
    stream, consumer = _text(settings, "stream"), _text(settings, "consumer")
    account, threshold = settings.take("account", str), _number(settings, "lagThreshold", default="10")
    for name in ("natsServerMonitoringEndpoint", "useHttps"):
        settings.take(name, object)
    account = None if account == "$G" else account
    labels = _labels(stream_name=stream, consumer_name=consumer, account=account, is_consumer_leader="true")
    parts = [f"sum(jetstream_consumer_{name}{labels})" for name in ("num_pending", "num_ack_pending")]
    return ExporterQuery(" + ".join(parts), "prometheus-nats-exporter, with -jsz=all", threshold)


def _pods(settings: SourceFields, namespace: str | None) -> ExporterQuery:
    """Pods of a selector that have not ended, each label allowed through kube-state-metrics."""
    if namespace is None:
        raise Unanswerable("its pods are those of the object's namespace: write metadata.namespace")
    selector, threshold = _text(settings, "podSelector"), _number(settings, "value")
    matchers = ",".join([f"namespace={quote(namespace)}", *_matchers(selector)])
    alive = f'kube_pod_status_phase{{namespace={quote(namespace)},phase!~"Succeeded|Failed"}} == 1'
    query = f"(count(kube_pod_labels{{{matchers}}} and on(pod) ({alive})) or vector(0))"
    return ExporterQuery(query, "kube-state-metrics, with --metric-labels-allowlist for these labels", threshold)


def _matchers(selector: str) -> list[str]:
    """A selector's terms as matchers of the labels kube-state-metrics makes of them."""
    found = []
    for term in re.split(r",(?![^(]*\))", selector):
        if simple := _SIMPLE.match(term.strip()):
            found.append(f"{_label(simple[1])}{'!=' if simple[2] == '!=' else '='}{quote(simple[3])}")
        elif among := _AMONG.match(term.strip()):
            values = either([value.strip() for value in among[3].split(",")])
            found.append(f"{_label(among[1])}{'=~' if among[2] == 'in' else '!~'}{quote(values)}")
        else:
            raise Unanswerable(f"selector {term.strip()!r}: write the query by hand")
    return found


def _label(name: str) -> str:
    """kube-state-metrics writes labels in snake case: appName is label_app_name."""
    words = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    return "label_" + re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", words).lower()


def _labels(**values: str | None) -> str:
    """Matchers in braces; a name that ends in ~ is matched as a pattern."""
    matchers = [
        f"{name.removesuffix('~')}={'~' if name.endswith('~') else ''}{quote(value)}"
        for name, value in values.items()
        if value
    ]
    return "{" + ",".join(matchers) + "}" if matchers else ""


def _text(settings: SourceFields, *names: str) -> str:
    for name in names:
        if value := settings.take(name, str):
            return value
    raise Unanswerable(f"{names[0]} is not written here, so it cannot be asked for")


def _number(settings: SourceFields, *names: str, default: str | None = None) -> str:
    for name in names:
        if (value := settings.number(name)) is not None:
            return value
    if default is None:
        raise Unanswerable(f"{names[0]} is not written here, so there is no target")
    return default


def _is_true(settings: SourceFields, name: str) -> bool:
    return str(settings.take(name, object)).lower() == "true"


def _is_false(settings: SourceFields, name: str) -> bool:
    return str(settings.take(name, object)).lower() == "false"


EXPORTERS: dict[str, Build] = {
    "kafka": _kafka,
    "apache-kafka": _kafka,
    "rabbitmq": _rabbitmq,
    "redis": _redis_list,
    "redis-cluster": _redis_list,
    "redis-sentinel": _redis_list,
    "redis-streams": _redis_stream,
    "redis-cluster-streams": _redis_stream,
    "redis-sentinel-streams": _redis_stream,
    "aws-sqs-queue": _sqs,
    "gcp-pubsub": _pubsub,
    "pulsar": _pulsar,
    "nats-jetstream": _jetstream,
    "kubernetes-workload": _pods,
}
