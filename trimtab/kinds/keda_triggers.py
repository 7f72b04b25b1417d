"""The triggers of a ScaledObject as metrics and schedules: a resource, a query, a cron window, or KEDA's own metric.

A trigger that becomes none of these is a lost signal, whatever the other triggers say: KEDA takes the largest answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import KEDA_NAME
from trimtab.kinds.keda_formulas import NotUnderstood, as_promql
from trimtab.kinds.manifest_part import ABSENT
from trimtab.kinds.problems import nearest
from trimtab.kinds.source_fields import SourceFields
from trimtab.promql import either, escape, quote
from trimtab.quantity import is_whole


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


_OPERATOR = "is the operator's setting, not the object's"
_SERVER = ("serverAddress", "namespace", "customHeaders", "authModes", "unsafeSsl", "cortexOrgID", "queryParameters")
_FORECAST = ("predictHorizon", "historyTimeWindow", "queryStep")
_COMPOSITE = "composite-metric"  # what KEDA calls the answer of a formula
_FORMULA = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|[-+*/()]|\s+")
# Where a trigger keeps its target, and what it is without one; for those that KEDA itself keeps asking.
_THRESHOLDS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "activemq": (("targetQueueSize",), "10"),
    "apache-kafka": (("lagThreshold",), "10"),
    "artemis-queue": (("queueLength",), "10"),
    "aws-cloudwatch": (("targetMetricValue",), None),
    "aws-kinesis-stream": (("shardCount",), "2"),
    "aws-sqs-queue": (("queueLength",), "5"),
    "azure-eventhub": (("unprocessedEventThreshold",), "64"),
    "azure-log-analytics": (("threshold",), None),
    "azure-monitor": (("targetValue",), None),
    "azure-queue": (("queueLength",), "5"),
    "azure-servicebus": (("messageCount",), "5"),
    "cassandra": (("targetQueryValue",), None),
    "datadog": (("targetValue", "queryValue"), None),
    "elasticsearch": (("targetValue",), None),
    "gcp-pubsub": (("value", "subscriptionSize"), "10"),
    "github-runner": (("targetWorkflowQueueLength",), "1"),
    "graphite": (("threshold",), None),
    "ibmmq": (("queueDepth",), "20"),
    "influxdb": (("thresholdValue",), None),
    "kafka": (("lagThreshold",), "10"),
    "kubernetes-workload": (("value",), None),
    "loki": (("threshold",), None),
    "metrics-api": (("targetValue",), None),
    "mongodb": (("queryValue",), None),
    "mssql": (("targetValue",), None),
    "mysql": (("queryValue",), None),
    "nats-jetstream": (("lagThreshold",), "10"),
    "new-relic": (("threshold",), None),
    "postgresql": (("targetQueryValue",), None),
    "prometheus": (("threshold",), None),
    "pulsar": (("msgBacklogThreshold",), "10"),
    "rabbitmq": (("value", "queueLength"), "20"),
    "redis": (("listLength",), "5"),
    "redis-cluster": (("listLength",), "5"),
    "redis-sentinel": (("listLength",), "5"),
    "solr": (("targetQueryValue",), None),
}


class TriggerSetting(NamedTuple):
    """What triggers share: where the object lives, whether it may reach zero, what KEDA serves for it."""

    name: str
    namespace: str | None
    to_zero: bool
    several: bool  # triggers
    served: tuple[str, ...] | None = None  # KEDA's names of its external metrics; None: KEDA goes away


class TriggerParts(NamedTuple):
    metrics: list[dict[str, Any]]
    schedules: list[dict[str, Any]]


def triggers(spec: SourceFields, modifiers: SourceFields, setting: TriggerSetting) -> TriggerParts:
    """Every trigger's part; with a formula its answer is the one metric beside CPU and memory."""
    made = TriggerParts([], [])
    queries: dict[str, str] = {}
    formula = modifiers.take("formula", str)
    for index, trigger in enumerate(spec.items("triggers")):
        name = trigger.take("name", str)
        _cron_places(spec, f"spec.schedules[{len(made.schedules)}]", trigger.path)
        metric = _trigger(trigger, index, name, setting, made)
        if formula and metric and metric["type"] in ("Prometheus", "External"):
            queries[name or ""] = metric.get("prometheus", {}).get("query", "")
        elif metric:
            _metric_places(spec, f"spec.metrics[{len(made.metrics)}]", trigger.path)
            made.metrics.append(metric)
    if formula:
        _formula_places(spec, f"spec.metrics[{len(made.metrics)}]", modifiers.path)
        made.metrics.extend(_formula(formula, modifiers, queries, setting))
    modifiers.close()
    return made


def _metric_places(spec: SourceFields, made: str, source: str) -> None:
    spec.places({made: source, f"{made}.prometheus": f"{source}.metadata", f"{made}.prometheus.name": f"{source}.name"})
    spec.places({f"{made}.prometheus.target.{word}": f"{source}.metadata" for word in ("averageValue", "value")})
    for kind, word in product(("resource", "containerResource"), ("averageValue", "averageUtilization")):
        spec.places({f"{made}.{kind}.target.{word}": f"{source}.metadata.value"})


def _formula_places(spec: SourceFields, made: str, source: str) -> None:
    spec.places({made: source, f"{made}.prometheus.query": f"{source}.formula"})
    spec.places({f"{made}.prometheus.target.{word}": f"{source}.target" for word in ("averageValue", "value")})


def _cron_places(spec: SourceFields, made: str, source: str) -> None:
    spec.places({made: f"{source}.metadata", f"{made}.name": f"{source}.name"})
    spec.places({f"{made}.minReplicas": f"{source}.metadata.desiredReplicas"})


def _trigger(
    trigger: SourceFields, index: int, name: str | None, setting: TriggerSetting, made: TriggerParts
) -> dict[str, Any] | None:
    kind, settings = trigger.take("type", str), trigger.part("metadata")
    if not kind:
        raise InvalidInput(trigger.at("type"), ABSENT, "add it, such as prometheus or kafka")
    metric_type = trigger.take("metricType", str) or (settings.take("type", str) if kind in ("cpu", "memory") else None)
    try:
        if kind in ("cpu", "memory"):
            return _resource(kind, settings, metric_type)
        if kind == "cron":
            made.schedules.append(_cron(settings, name or f"cron-{index}"))
            return None
        if setting.served is not None:
            return _served(kind, settings, metric_type, index, setting)
        if kind in ("prometheus", "predictkube"):
            return _prometheus(settings, metric_type, name, setting)
        if kind in EXPORTERS:
            return _exported(kind, settings, metric_type, name, setting)
        near = nearest(kind, [*_THRESHOLDS, *EXPORTERS], 0.8) if kind not in _THRESHOLDS else None
        meant = f"did you mean {near}? Else " if near else ""
        raise Unanswerable(f"{meant}write its query for Prometheus by hand, or keep KEDA for it: --beside-keda")
    except Unanswerable as why:
        trigger.note(f"trigger {kind}: {why}", signal=True)
        settings.rest()
        return None
    finally:
        if setting.served is None:
            trigger.lose("authenticationRef", _OPERATOR)
            trigger.lose("useCachedMetrics", "every tick asks anew")
            settings.close()
        else:
            trigger.take("authenticationRef", object)
            trigger.take("useCachedMetrics", object)
        trigger.close()


def _resource(name: str, settings: SourceFields, metric_type: str | None) -> dict[str, Any]:
    value = str(settings.need("value", object))
    if metric_type == "AverageValue":
        target: dict[str, Any] = {"type": "AverageValue", "averageValue": value}
    elif is_whole(value):
        target = {"type": "Utilization", "averageUtilization": int(value)}
    else:
        raise InvalidInput(settings.at("value"), value, "write a whole percentage")
    container = settings.take("containerName", str)
    if container:
        inner = {"name": name, "container": container, "target": target}
        return {"type": "ContainerResource", "containerResource": inner}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def _prometheus(
    settings: SourceFields, metric_type: str | None, name: str | None, setting: TriggerSetting
) -> dict[str, Any]:
    query, threshold = settings.need("query", str), settings.need_number("threshold")
    name = name or settings.take("metricName", str)
    settings.take("metricName", str)
    for field in _SERVER:
        settings.lose(field, _OPERATOR)
    for field in _FORECAST:
        settings.lose(field, "has no equivalent: ask for a forecast with spec.forecast")
    if str(settings.take("ignoreNullValues", object)).lower() != "false" and setting.to_zero:
        why = "no answer is no zero here: replicas are held; where it means zero, add `or vector(0)` to the query"
        settings.note(why, "ignoreNullValues")
    return _query(_activated(query, settings, setting, "activationThreshold"), threshold, metric_type, name)


def _exported(
    kind: str, settings: SourceFields, metric_type: str | None, name: str | None, setting: TriggerSetting
) -> dict[str, Any]:
    asked = EXPORTERS[kind](settings, setting.namespace)
    words = [word for word in settings.names() if word.startswith("activation")]
    query = _activated(asked.query, settings, setting, words[0] if words else "activationThreshold")
    return _query(f"{query} # {asked.exporter}", asked.target, metric_type, name)


def _activated(query: str, settings: SourceFields, setting: TriggerSetting, field: str) -> str:
    """Up to its activation KEDA keeps a workload at zero, whatever the target says; above zero it changes nothing."""
    activation = settings.number(field)
    if activation is None or not setting.to_zero or float(activation) == 0:
        return query
    if setting.several:
        settings.note("up to it this trigger asks for nothing, also while another one is active", field)
    total = _nested(query)
    return f"{total} * ({total} > bool {activation})"


def _nested(query: str) -> str:
    """In brackets, which a comment at its end would swallow."""
    return f"({query}\n)" if "#" in query else f"({query})"


def _query(query: str, threshold: str, metric_type: str | None, name: str | None) -> dict[str, Any]:
    inner = {"query": query, "target": _target(metric_type, threshold)} | ({"name": name} if name else {})
    return {"type": "Prometheus", "prometheus": inner}


def _target(metric_type: str | None, threshold: str) -> dict[str, Any]:
    field = "value" if metric_type == "Value" else "averageValue"
    return {"type": metric_type or "AverageValue", field: threshold}


def _served(
    kind: str, settings: SourceFields, metric_type: str | None, index: int, setting: TriggerSetting
) -> dict[str, Any]:
    """KEDA fetches, we scale: its external metric by the name that KEDA gave it."""
    name = next((name for name in setting.served or () if name.startswith(f"s{index}-")), None)
    if name is None:
        raise Unanswerable("its status names no metric for it; read the object from the cluster, with its status")
    if kind not in _THRESHOLDS:
        hpa = f"kubectl get hpa keda-hpa-{setting.name} -o yaml | trimtab convert - --to autoscaler"
        raise Unanswerable(f"its target is not known here; convert the HPA that KEDA made instead: {hpa}")
    fields, default = _THRESHOLDS[kind]
    threshold = next((value for field in fields if (value := settings.number(field)) is not None), default)
    if threshold is None:
        raise Unanswerable(f"{fields[0]} is not written here, so there is no target")
    for field in [word for word in settings.names() if word.startswith("activation")]:
        if setting.to_zero and float(settings.number(field) or 0) != 0:
            settings.note("zero is left as soon as there is anything to do", field)
    settings.rest()
    return _external(name, setting, metric_type, threshold)


def _external(name: str, setting: TriggerSetting, metric_type: str | None, threshold: str) -> dict[str, Any]:
    metric = {"name": name, "selector": {"matchLabels": {KEDA_NAME: setting.name}}}
    return {"type": "External", "external": {"metric": metric, "target": _target(metric_type, threshold)}}


def _formula(
    formula: str, modifiers: SourceFields, queries: dict[str, str], setting: TriggerSetting
) -> list[dict[str, Any]]:
    """Arithmetic over triggers is arithmetic over their queries; comparisons, min, max and clamp are filters."""
    threshold, metric_type = modifiers.need_number("target"), modifiers.take("metricType", str)
    activation = modifiers.number("activationTarget")
    if setting.served is not None:
        return [_external(_COMPOSITE, setting, metric_type, threshold)]
    words = _FORMULA.findall(formula)
    names = {word for word in words if word[0].isalpha() or word[0] == "_"}
    nested = {name: _nested(query) for name, query in queries.items()}
    try:
        query = as_promql(formula, nested)
    except NotUnderstood as error:
        why = f"{formula!r} is no formula over triggers that are queries: {error} is not understood"
        modifiers.note(why, "formula", signal=True)
        return []
    if "".join(words) == formula and names <= set(queries):  # arithmetic alone reads better as it is written
        query = "vector(" + "".join(f"scalar{nested[word]}" if word in names else word for word in words) + ")"
    if activation and setting.to_zero and float(activation) != 0:
        query = f"{query} * ({query} > bool {activation})"
    return [_query(query, threshold, metric_type, _COMPOSITE)]


def _cron(settings: SourceFields, name: str) -> dict[str, Any]:
    replicas = str(settings.need("desiredReplicas", object))
    if not is_whole(replicas):
        raise InvalidInput(settings.at("desiredReplicas"), replicas, "write a whole number")
    return {
        "name": name,
        "timezone": settings.take("timezone", str, "UTC"),
        "start": settings.need("start", str),
        "end": settings.need("end", str),
        "minReplicas": int(replicas),
    }
