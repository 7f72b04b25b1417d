"""Queues by their exporters: which metric is the length of a queue, and which queries say what arrives and waits.

The length of a queue depends on how it is served, so it is no demand. Each entry has the queries that a Backlog metric
needs instead. {labels} are the matchers of the original query, of which arrivals keep those that both series have.

Where an exporter has no service time but counts items in service and items finished, the service time is their ratio
(Little's law).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from trimtab.errors import InvalidInput
from trimtab.policy import Backlog, Signal
from trimtab.promql import Matcher, Matchers, parse_matchers, selector


class QueueMetric(NamedTuple):
    """One exporter's metrics of a queue; "" where it has none."""

    product: str
    length: str  # a pattern of the metric's name
    arrivals: str
    waiting: str
    service_time: str = ""
    labels: tuple[str, ...] = ("namespace", "job", "cluster")


def _ratio(total: str, count: str) -> str:
    return f"sum(rate({total}{{labels}}[5m])) / sum(rate({count}{{labels}}[5m]))"


QUEUES = (
    QueueMetric(
        "Kafka (kafka_exporter)",
        "kafka_consumergroup_lag(_sum)?",
        "sum(rate(kafka_topic_partition_current_offset{labels}[2m]))",
        "sum(kafka_consumergroup_lag{labels})",
        labels=("topic", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "RabbitMQ",
        "rabbitmq_(detailed_)?queue_messages(_ready|_unacked|_unacknowledged)?",
        "sum(rate(rabbitmq_queue_messages_published_total{labels}[1m]))",
        "sum(rabbitmq_queue_messages_ready{labels})",
        "sum(rabbitmq_queue_messages_unacked{labels}) / sum(rate(rabbitmq_queue_messages_acked_total{labels}[5m]))",
        labels=("queue", "vhost", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "SQS (yet-another-cloudwatch-exporter)",
        "aws_sqs_approximate_number_of_messages_(visible|not_visible|delayed)_\\w+",
        "sum(aws_sqs_number_of_messages_sent_sum{labels}) / 300",
        "sum(aws_sqs_approximate_number_of_messages_visible_average{labels})",
        "sum(aws_sqs_approximate_number_of_messages_not_visible_average{labels})"
        " / (sum(aws_sqs_number_of_messages_deleted_sum{labels}) / 300)",
        labels=("dimension_QueueName", "region", "account_id"),
    ),
    QueueMetric(
        "Celery (celery-exporter)",
        "celery_queue_length|celery_active_\\w+",
        "sum(rate(celery_task_sent_total{labels}[1m]))",
        "sum(celery_queue_length{labels})",
        _ratio("celery_task_runtime_sum", "celery_task_runtime_count"),
        labels=("queue_name", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "Pub/Sub (stackdriver_exporter)",
        "stackdriver_pubsub_subscription_\\w+_num_undelivered_messages",
        "sum(rate(stackdriver_pubsub_topic_pubsub_googleapis_com_topic_send_request_count{labels}[2m]))",
        "sum(stackdriver_pubsub_subscription_pubsub_googleapis_com_subscription_num_undelivered_messages{labels})",
        labels=("project_id",),
    ),
    QueueMetric(
        "NATS JetStream (prometheus-nats-exporter)",
        "jetstream_consumer_num_(pending|ack_pending)",
        "sum(rate(jetstream_stream_last_seq{labels}[1m]))",
        "sum(jetstream_consumer_num_pending{labels})",
        "sum(jetstream_consumer_num_ack_pending{labels})"
        " / sum(rate(jetstream_consumer_ack_floor_consumer_seq{labels}[5m]))",
        labels=("stream_name", "account", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "vLLM",
        "vllm:num_requests_(running|waiting|swapped)",
        "clamp_min(sum(rate(vllm:request_success_total{labels}[2m]))"
        " + sum(deriv(vllm:num_requests_running{labels}[2m])) + sum(deriv(vllm:num_requests_waiting{labels}[2m])), 0)",
        "sum(vllm:num_requests_waiting{labels})",
        _ratio("vllm:request_inference_time_seconds_sum", "vllm:request_inference_time_seconds_count"),
        labels=("model_name", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "Text Generation Inference",
        "tgi_(queue_size|batch_current_size)",
        "sum(rate(tgi_request_count{labels}[1m]))",
        "sum(tgi_queue_size{labels})",
        _ratio("tgi_request_inference_duration_sum", "tgi_request_inference_duration_count"),
    ),
    QueueMetric(
        "Triton",
        "nv_inference_pending_request_count",
        "clamp_min(sum(rate(nv_inference_request_success{labels}[2m]))"
        " + sum(rate(nv_inference_request_failure{labels}[2m]))"
        " + sum(deriv(nv_inference_pending_request_count{labels}[2m])), 0)",
        "sum(nv_inference_pending_request_count{labels})",
        "sum(rate(nv_inference_compute_infer_duration_us{labels}[5m]))"
        " / sum(rate(nv_inference_request_success{labels}[5m])) / 1e6",
        labels=("model", "namespace", "job", "cluster"),
    ),
    QueueMetric(
        "Redis (redis_exporter)", "redis_key_size|redis_list_length|redis_stream_(length|group_\\w+)", "", "", labels=()
    ),
)
# Names that people give to the length of a queue, where no exporter is known.
_USUAL = re.compile(r"(?i)(queue|backlog)_?(length|size|depth|messages)|_(lag|backlog|in_?flight|pending|waiting)(_|$)")
_NAME = re.compile(r"[a-zA-Z_:][\w:]*", re.ASCII)


class QueueQueries(NamedTuple):
    """What a Backlog metric would ask instead; "" where nobody knows the query."""

    product: str
    metric: str
    arrivals: str = ""
    waiting: str = ""
    service_time: str = ""

    @property
    def why(self) -> str:
        product = f" of {self.product}" if self.product else ""
        return f"{self.metric} is the length of a queue{product}: it depends on how the queue is served"

    @property
    def fix(self) -> str:
        if not self.arrivals:
            return "use type: Backlog, with a query for what arrives"
        service = f", serviceTimeQuery: {self.service_time}" if self.service_time else ""
        return f"use type: Backlog with arrivals: {self.arrivals}, waiting: {self.waiting}{service}"


def queue_behind(query: str) -> QueueQueries | None:
    """Return the queue whose length the query measures; None where it measures none."""
    counters = set(re.findall(r"(?:rate|increase)\(\s*([a-zA-Z_:][\w:]*)", query))
    names = [name for name in _NAME.findall(query) if name not in counters]
    for queue in QUEUES:
        if found := next((name for name in names if re.fullmatch(queue.length, name)), None):
            every = _matchers(query, found)
            if every is None:
                return QueueQueries(queue.product, found)
            shared = tuple(each for each in every if each.label in queue.labels)
            queries = ((queue.arrivals, shared), (queue.waiting, every), (queue.service_time, every))
            return QueueQueries(queue.product, found, *(_with_labels(*each) for each in queries))
    usual = next((name for name in names if _USUAL.search(name) and not name.endswith("_total")), None)
    return QueueQueries("", usual) if usual else None


@lru_cache(maxsize=1000)  # a simulation asks in every step
def queue_followed(signal: Signal) -> QueueQueries | None:
    """Return the queue whose length a signal follows; a Backlog metric follows none, whatever its arrivals are."""
    return None if isinstance(signal, Backlog) else queue_behind(signal.metric.query or signal.metric.name)


def _with_labels(query: str, matchers: Iterable[Matcher]) -> str:
    return query.replace("{labels}", selector("", matchers).replace("{}", ""))


def _matchers(query: str, metric: str) -> Matchers | None:
    """The matchers that stand behind the metric's name; None where they hold more than can be taken over."""
    braces = re.search(re.escape(metric) + r"\s*\{((?:[^{}\"]|\"[^\"]*\")*)(\}?)", query)
    try:
        return parse_matchers(braces[1]) if braces and braces[2] else None if braces else ()
    except InvalidInput:
        return None
