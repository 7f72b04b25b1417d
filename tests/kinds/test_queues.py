"""Queues are recognized by what measures them, and the queries that a Backlog metric needs are right PromQL."""

from __future__ import annotations

import pytest

from trimtab.errors import InvalidObject
from trimtab.kinds import read
from trimtab.kinds.queues import QUEUES, QueueMetric, queue_behind, queue_followed
from trimtab.policy import Backlog, Metric, MetricKind, TotalAverage
from trimtab.promql import joinable


@pytest.mark.parametrize(
    ("query", "product"),
    [
        ('sum(rabbitmq_queue_messages{queue="mail"}) or vector(0)', "RabbitMQ"),
        ('sum(kafka_consumergroup_lag{consumergroup="a",topic="b"})', "Kafka (kafka_exporter)"),
        ("sum(vllm:num_requests_running) + sum(vllm:num_requests_waiting)", "vLLM"),
        ("aws_sqs_approximate_number_of_messages_visible_average", "SQS (yet-another-cloudwatch-exporter)"),
        ('sum(celery_queue_length{queue_name="a"})', "Celery (celery-exporter)"),
        ('sum(jetstream_consumer_num_pending{stream_name="s"})', "NATS JetStream (prometheus-nats-exporter)"),
        ('redis_key_size{key="jobs"}', "Redis (redis_exporter)"),
        ("sum(reports_waiting) or vector(0)", ""),
        ("max(app_queue_length)", ""),
        ("requests_in_flight", ""),
    ],
)  # fmt: skip
def test_the_length_of_a_queue_is_recognized(query: str, product: str) -> None:
    queue = queue_behind(query)
    assert queue is not None and queue.product == product


@pytest.mark.parametrize(
    "query",
    [
        "sum(rate(http_requests_total[2m]))",
        "sum(rate(rabbitmq_queue_messages_published_total[1m]))",
        'sum(container_memory_working_set_bytes{pod=~"queue-.*"})',
        "sum(orders_processing_seconds_count)",
        "cpu",
    ],
)
def test_what_does_not_depend_on_how_it_is_served_is_no_queue(query: str) -> None:
    assert queue_behind(query) is None


def test_arrivals_keep_the_matchers_that_both_series_have() -> None:
    queue = queue_behind('sum(kafka_consumergroup_lag{consumergroup="a",topic="b"})')
    assert queue is not None
    assert queue.arrivals == 'sum(rate(kafka_topic_partition_current_offset{topic="b"}[2m]))'
    assert queue.waiting == 'sum(kafka_consumergroup_lag{consumergroup="a",topic="b"})'


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.product)
def test_the_queries_stand_alone(queue: object) -> None:
    texts = [text.replace("{labels}", "") for text in queue[2:5] if text]  # type: ignore[index]
    assert all(joinable(text) for text in texts)


@pytest.mark.parametrize("queue", [queue for queue in QUEUES if queue.arrivals], ids=lambda queue: queue.product)
def test_a_backlog_metric_follows_no_length_whatever_its_arrivals_are_made_of(queue: QueueMetric) -> None:
    arrivals = Metric(kind=MetricKind.PROMETHEUS, query=queue.arrivals.replace("{labels}", ""))
    waiting = Metric(kind=MetricKind.PROMETHEUS, query=queue.waiting.replace("{labels}", ""))
    assert queue_followed(Backlog(metric=arrivals, waiting=waiting, service_time_s=1.0, wait_s=9.0)) is None
    assert queue_followed(TotalAverage(metric=waiting, target=5.0)) is not None


def spec(least: int = 1, **queue: object) -> dict[str, object]:
    backlog = {"arrivals": {"query": "a"}, "waiting": {"query": "w"}, "waitBelow": "30s"} | queue
    return {
        "apiVersion": "trimtab.dev/v1alpha1",
        "kind": "Autoscaler",
        "metadata": {"name": "w"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "w"},
            "minReplicas": least,
            "maxReplicas": 9,
            "metrics": [{"type": "Backlog", "backlog": {k: v for k, v in backlog.items() if v is not None}}],
        },
    }


@pytest.mark.parametrize(
    ("manifest", "path", "fix"),
    [
        pytest.param(
            spec(serviceTime="2s", arrivals={"query": 'sum(jobs_enqueued_total{queue="mail"})'}),
            "spec.metrics[0].backlog.arrivals.query",
            "a counter only grows",
            id="a counter for arrivals",
        ),
        pytest.param(
            spec(serviceTime="2s", waiting=None), "spec.metrics[0].backlog.waiting", "add it", id="arrivals, no queue"
        ),
        pytest.param(spec(), "spec.metrics[0].backlog", "say how long one item takes", id="no service time"),
        pytest.param(
            spec(least=0, serviceTimeQuery={"query": "s"}),
            "spec.minReplicas",
            "serviceTimeQuery has no answer while no pod works",
            id="zero, and nobody to measure the service time",
        ),
    ],
)
def test_a_backlog_that_could_not_work_is_refused_where_it_is_written(
    manifest: dict[str, object], path: str, fix: str
) -> None:
    with pytest.raises(InvalidObject) as caught:
        read(manifest)
    (problem,) = caught.value.problems
    assert (problem.path, fix in problem.fix) == (path, True), problem


@pytest.mark.parametrize("query", ["sum(rate(jobs_total[1m]))", "increase(jobs_total[5m]) / 300", "jobs_per_second"])
def test_a_rate_of_a_counter_is_what_arrives(query: str) -> None:
    assert read(spec(serviceTime="2s", arrivals={"query": query}))
