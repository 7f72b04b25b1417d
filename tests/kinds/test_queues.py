"""Queues are recognized by what measures them, and the queries that a Backlog metric needs are right PromQL."""

from __future__ import annotations

import pytest

from trimtab.kinds.queues import QUEUES, queue_behind
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


def test_the_matchers_that_both_series_have_are_kept() -> None:
    queue = queue_behind('sum(kafka_consumergroup_lag{consumergroup="a",topic="b"})')
    assert queue is not None
    assert queue.arrivals == 'sum(rate(kafka_topic_partition_current_offset{topic="b"}[2m]))'
    assert queue.waiting == 'sum(kafka_consumergroup_lag{topic="b"})'


@pytest.mark.parametrize("queue", QUEUES, ids=lambda queue: queue.product)
def test_the_queries_stand_alone(queue: object) -> None:
    texts = [text.replace("{labels}", "") for text in queue[2:5] if text]  # type: ignore[index]
    assert all(joinable(text) for text in texts)
