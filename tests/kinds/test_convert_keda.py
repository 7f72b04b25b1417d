"""ScaledObjects as people write them: the signal survives as the exporter's query, as KEDA's metric, or is named."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from math import ceil, floor, fmod
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from trimtab.errors import InvalidInput, InvalidObject
from trimtab.kinds import Autoscaler, read
from trimtab.kinds.convert import Converted, convert
from trimtab.kinds.keda_formulas import NotUnderstood, as_promql
from trimtab.kinds.keda_triggers import EXPORTERS
from trimtab.kinds.scaled_object import ScaledObject
from trimtab.policy import Backlog, Policy, Rate, Select, TotalAverage

Manifest = dict[str, Any]
PROMTOOL = next(iter(Path.home().glob(".cache/trimtab/bed/prometheus-*/promtool")), None) or shutil.which("promtool")
NOW = 1_700_000_000.0


def scaled(*triggers: str, **spec: Any) -> Manifest:
    read_triggers = [yaml.safe_load(trigger) for trigger in triggers]
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "worker", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"name": "worker"}, "triggers": read_triggers, "minReplicaCount": 1} | spec,
    }


def policy(manifest: Manifest) -> Policy:
    obj = read(manifest)
    assert isinstance(obj, Autoscaler)
    return obj.to_policy(NOW)


def replayed(manifest: Manifest) -> Manifest:
    """What backtest and lint take KEDA's object for: its own rule."""
    obj = read(manifest)
    assert isinstance(obj, ScaledObject)
    return obj.translation.manifest


def signals(converted: Converted) -> list[str]:
    return [loss.path for loss in converted.lost if loss.signal]


QUERIES = [
    (
        "kafka",
        "{type: kafka, metadata: {consumerGroup: billing, topic: orders, lagThreshold: '50'}}",
        ('clamp_max(sum(kafka_consumergroup_lag{consumergroup="billing",topic="orders"}),'
        ' 50 * scalar(count(kafka_consumergroup_lag{consumergroup="billing",topic="orders"}))) # kafka_exporter'),
        50.0,
    ),
    (
        "kafka with idle consumers",
        "{type: apache-kafka, metadata: {consumerGroup: g, topic: t, allowIdleConsumers: 'true'}}",
        'sum(kafka_consumergroup_lag{consumergroup="g",topic="t"}) # kafka_exporter',
        10.0,
    ),
    (
        "several topics",
        "{type: apache-kafka, metadata: {consumerGroup: g, topic: 'a, b-c', allowIdleConsumers: 'true'}}",
        'sum(kafka_consumergroup_lag{consumergroup="g",topic=~"a|b-c"}) # kafka_exporter',
        10.0,
    ),
    (
        "rabbitmq",
        ("{type: rabbitmq, metadata: {protocol: amqp, queueName: mail, mode: QueueLength, value: '20'},"
        " authenticationRef: {name: rabbit}}"),
        'sum(rabbitmq_queue_messages{queue="mail"}) # rabbitmq_prometheus, with metrics per queue',
        20.0,
    ),
    (
        "rabbitmq by pattern",
        "{type: rabbitmq, metadata: {queueName: '^mail', useRegex: 'true', operation: max, vhostName: eu, value: '3'}}",
        'max(rabbitmq_queue_messages{vhost="eu",queue=~".*(?:^mail).*"}) # rabbitmq_prometheus, with metrics per queue',
        3.0,
    ),
    (
        "a list of redis",
        "{type: redis, metadata: {address: 'redis:6379', listName: jobs, listLength: '7', databaseIndex: '2'}}",
        'sum(redis_key_size{db="db2",key="jobs"}) # redis_exporter, with --check-single-keys for jobs',
        7.0,
    ),
    (
        "a stream of redis",
        "{type: redis-cluster-streams, metadata: {stream: events, consumerGroup: readers, pendingEntriesCount: '9'}}",
        ('sum(redis_stream_group_messages_pending{db="db0",stream="events",group="readers"})'
        " # redis_exporter, with --check-single-streams for events"),
        9.0,
    ),
    (
        "sqs",
        ("{type: aws-sqs-queue, metadata: {queueURL: 'https://sqs.eu-west-1.amazonaws.com/123/jobs', queueLength: '5',"
        " awsRegion: eu-west-1}}"),
        ('sum(aws_sqs_approximate_number_of_messages_visible_average{dimension_QueueName="jobs",region="eu-west-1"})'
        ' + sum(aws_sqs_approximate_number_of_messages_not_visible_average{dimension_QueueName="jobs",'
        'region="eu-west-1"})'
        " # yet-another-cloudwatch-exporter, AWS/SQS, statistic Average"),
        5.0,
    ),
    (
        "pubsub",
        "{type: gcp-pubsub, metadata: {subscriptionName: projects/p/subscriptions/mail, value: '8'}}",
        ("sum(stackdriver_pubsub_subscription_pubsub_googleapis_com_subscription_num_undelivered_messages"
        '{subscription_id="mail"}) # stackdriver_exporter'),
        8.0,
    ),
    (
        "pulsar",
        ("{type: pulsar, metadata: {adminURL: 'http://p', topic: 'persistent://a/b/c', subscription: s,"
        " msgBacklogThreshold: '4'}}"),
        'sum(pulsar_subscription_back_log{topic="persistent://a/b/c",subscription="s"}) # Pulsar\'s brokers',
        4.0,
    ),
    (
        "jetstream",
        "{type: nats-jetstream, metadata: {account: $G, stream: S, consumer: C, lagThreshold: '6'}}",
        ('sum(jetstream_consumer_num_pending{stream_name="S",consumer_name="C",is_consumer_leader="true"})'
        ' + sum(jetstream_consumer_num_ack_pending{stream_name="S",consumer_name="C",is_consumer_leader="true"})'
        " # prometheus-nats-exporter, with -jsz=all"),
        6.0,
    ),
    (
        "pods of another workload",
        "{type: kubernetes-workload, metadata: {podSelector: 'app=front, tier in (a, b)', value: '2'}}",
        ('(count(kube_pod_labels{namespace="shop",label_app="front",label_tier=~"a|b"} and on(pod)'
        ' (kube_pod_status_phase{namespace="shop",phase!~"Succeeded|Failed"} == 1)) or vector(0))'
        " # kube-state-metrics, with --metric-labels-allowlist for these labels"),
        2.0,
    ),
]  # fmt: skip


@pytest.mark.parametrize("trigger, query, target", [case[1:] for case in QUERIES], ids=[case[0] for case in QUERIES])
def test_a_trigger_becomes_the_query_of_its_exporter(trigger: str, query: str, target: float) -> None:
    (signal,) = policy(replayed(scaled(trigger))).signals
    assert isinstance(signal, TotalAverage)
    assert (signal.metric.query, signal.target) == (query, target)
    assert signals(convert(scaled(trigger), "autoscaler")) == []


NAMES = st.text(st.sampled_from('aB1-._/ "\\\\|'), min_size=1, max_size=6).filter(lambda name: name.strip() == name)
VALUES = st.from_regex(r"[a-z0-9]([-_.a-zA-Z0-9]{0,4}[a-z0-9])?", fullmatch=True)
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"')
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}  # of those that a string of PromQL knows


def matchers(query: str) -> dict[str, tuple[str, str]]:
    """Every matcher with the text it compares with; a KeyError where Prometheus would refuse the query."""
    unescaped = lambda text: re.sub(r"\\.", lambda found: ESCAPES[found[0]], text)  # noqa: E731
    return {name: (how, unescaped(text)) for name, how, text in MATCHER.findall(query)}


def query_of(kind: str, **settings: str) -> str:
    manifest = scaled("{}")
    manifest["spec"]["triggers"] = [{"type": kind, "metadata": settings}]
    return str(replayed(manifest)["spec"]["metrics"][0]["prometheus"]["query"])


@given(name=NAMES, group=NAMES)
@example(name='a"b', group="c\\d")
def test_whatever_it_is_called_the_query_asks_for_just_that(name: str, group: str) -> None:
    assert matchers(query_of("redis", listName=name))["key"] == ("=", name)
    assert matchers(query_of("rabbitmq", queueName=name, vhostName=group)) == {
        "queue": ("=", name),
        "vhost": ("=", group),
    }
    assert matchers(query_of("kafka", topic=name, consumerGroup=group))["topic"] == ("=", name)
    how, pattern = matchers(query_of("pulsar", topic=name, subscription=group, isPartitionedTopic="true"))["topic"]
    assert how == "=~" and re.fullmatch(pattern, f"{name}-partition-3") and not re.fullmatch(pattern, name)


AWKWARD = 'a"b\\c-d.e'  # characters that mean something in a query or a pattern


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: `make cluster` builds one")
def test_prometheus_can_read_every_query(tmp_path: Path) -> None:
    """With activation and in a formula, too, whatever things are called."""
    settings = {"activationValue": "5", "value": "9", "isPartitionedTopic": "true", "useRegex": "true"}
    words = ("topic", "consumerGroup", "listName", "stream", "queueURL", "subscriptionName", "subscription", "consumer")
    settings |= dict.fromkeys((*words, "account", "vhostName"), AWKWARD)
    settings |= {"podSelector": "app in (a-b, c.d), tier!=e", "queueName": "^a\\.b"}
    triggers = [{"type": kind, "name": f"t{n}", "metadata": settings} for n, kind in enumerate(EXPORTERS)]
    manifest = scaled(minReplicaCount=0)
    manifest["spec"]["triggers"] = triggers
    queries = [metric["prometheus"]["query"] for metric in convert(manifest, "autoscaler").manifest["spec"]["metrics"]]
    manifest["spec"]["triggers"] = triggers[:2]
    modifiers = {"formula": "t0 + t1", "target": "1", "activationTarget": "2"}
    manifest["spec"]["advanced"] = {"scalingModifiers": modifiers}
    queries += [metric["prometheus"]["query"] for metric in convert(manifest, "autoscaler").manifest["spec"]["metrics"]]
    assert len(queries) == len(EXPORTERS) + 1
    rules = [{"record": f"asked:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "keda", "rules": rules}]}))
    done = subprocess.run([str(PROMTOOL), "check", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout


@given(
    values=st.lists(VALUES, min_size=1, max_size=3, unique=True), other=VALUES, word=st.sampled_from(["in", "notin"])
)
def test_a_selector_of_pods_means_the_same_in_prometheus(values: list[str], other: str, word: str) -> None:
    query = query_of("kubernetes-workload", podSelector=f"app.io/tierName {word} ({', '.join(values)})", value="1")
    how, pattern = matchers(query)["label_app_io_tier_name"]
    assert how == ("=~" if word == "in" else "!~")
    assert all(re.fullmatch(pattern, value) for value in values)
    assert bool(re.fullmatch(pattern, other)) == (other in values)


@given(name=VALUES, around=VALUES)
def test_a_pattern_of_rabbitmq_is_searched_for_as_rabbitmq_does(name: str, around: str) -> None:
    """Prometheus anchors a pattern at both ends, RabbitMQ at none."""
    _, pattern = matchers(query_of("rabbitmq", queueName=re.escape(name), useRegex="true"))["queue"]
    assert re.fullmatch(pattern, around + name + around)


@pytest.mark.parametrize(
    "trigger, path",
    [
        pytest.param("{metadata: {value: '5'}}", "type", id="no type"),
        pytest.param("{type: prometheus, metadata: {query: up}}", "metadata.threshold", id="no threshold"),
        pytest.param("{type: prometheus, metadata: {threshold: 5}}", "metadata.query", id="no query"),
        pytest.param(
            "{type: prometheus, metadata: {query: up, threshold: 5%}}", "metadata.threshold", id="a percentage"
        ),
        pytest.param("{type: prometheus, metadata: {query: up, threshold: 0}}", "metadata", id="zero"),
        pytest.param("{type: redis, metadata: {listName: a, listLength: many}}", "metadata.listLength", id="a word"),
        pytest.param("{type: cpu, metadata: {}}", "metadata.value", id="no value"),
        pytest.param("{type: memory, metricType: AverageValue, metadata: {value: 5GB}}", "metadata.value", id="a unit"),
        pytest.param(
            "{type: cron, metadata: {start: 0 25 * * *, end: 0 9 * * *, desiredReplicas: 1}}",
            "metadata.start",
            id="cron",
        ),
        pytest.param(
            "{type: cron, metadata: {timezone: X, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: 1}}",
            "metadata.timezone",
            id="a zone",
        ),
        pytest.param("{type: cron, metadata: {end: 0 9 * * *, desiredReplicas: 1}}", "metadata.start", id="no start"),
    ],
)
def test_what_keda_would_refuse_is_refused_where_it_is_written(trigger: str, path: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        convert(scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}", trigger), "autoscaler")
    assert caught.value.path == f"spec.triggers[1].{path}"
    if isinstance(caught.value, InvalidObject):
        assert caught.value.what == "ScaledObject/worker"


@pytest.mark.parametrize(
    "trigger, why",
    [
        pytest.param("{type: kafak, metadata: {}}", "did you mean kafka?", id="a slip"),
        pytest.param("{type: rabbitmq, metadata: {queueName: q, operation: median}}", "'median'", id="operation"),
        pytest.param("{type: mysql, metadata: {query: SELECT 1, queryValue: '5'}}", "--beside-keda", id="mysql"),
        pytest.param(
            "{type: rabbitmq, metadata: {queueName: q, mode: MessageRate, value: '1'}}", "MessageRate", id="rate"
        ),
        pytest.param(
            "{type: aws-sqs-queue, metadata: {queueURLFromEnv: URL}}", "queueURL is not written", id="variable"
        ),
        pytest.param(
            "{type: kubernetes-workload, metadata: {podSelector: '!old', value: '1'}}", "'!old'", id="selector"
        ),
    ],
)
def test_one_lost_trigger_is_a_lost_signal_whatever_the_others_say(trigger: str, why: str) -> None:
    converted = convert(scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}", trigger), "autoscaler")
    assert converted.loses_signal
    (loss,) = [loss for loss in converted.lost if loss.signal]
    assert (loss.path, why in loss.why) == ("spec.triggers[1]", True), loss


SQS = "{type: aws-sqs-queue, metadata: {queueURL: 'https://sqs.eu-west-1.amazonaws.com/1/jobs', queueLength: '4'}}"
RABBIT = "{type: rabbitmq, metadata: {queueName: mail, value: '20'}}"
NATS = "{type: nats-jetstream, metadata: {account: $G, stream: S, consumer: C, lagThreshold: '6'}}"
VLLM = "{type: prometheus, metadata: {query: 'sum(vllm:num_requests_waiting{model_name=\"m\"})', threshold: '8'}}"


@pytest.mark.parametrize(
    ("trigger", "concurrency", "arrivals"),
    [
        pytest.param(SQS, 4, 'aws_sqs_number_of_messages_sent_sum{dimension_QueueName="jobs"}', id="sqs"),
        pytest.param(RABBIT, 20, 'rabbitmq_queue_messages_published_total{queue="mail"}', id="rabbitmq"),
        pytest.param(NATS, 6, 'jetstream_stream_last_seq{stream_name="S"}', id="nats"),
        pytest.param(VLLM, 8, 'vllm:request_success_total{model_name="m"}', id="a query of vllm"),
    ],
)
def test_a_queue_trigger_becomes_a_backlog_metric_and_says_what_is_assumed(
    trigger: str, concurrency: int, arrivals: str
) -> None:
    made, lost = convert(scaled(trigger, minReplicaCount=0), "autoscaler")
    (signal,) = policy(made).signals
    assert isinstance(signal, Backlog)
    assert (signal.concurrency, signal.wait_s) == (concurrency, 60.0)
    assert arrivals in signal.metric.query
    assert signal.service_time is not None
    (said,) = [loss.why for loss in lost if "Backlog" in loss.why]
    assert f"concurrency {concurrency}" in said and "waitBelow 60s" in said and "are assumed" in said


@pytest.mark.parametrize(
    ("trigger", "why"),
    [
        pytest.param(
            "{type: kafka, metadata: {consumerGroup: g, topic: t}}", "how long an item takes", id="no service time"
        ),
        pytest.param("{type: redis, metadata: {listName: a}}", "how long an item takes", id="no arrivals"),
        pytest.param(
            "{type: rabbitmq, metadata: {queueName: ^m, useRegex: 'true', operation: max}}",
            "one of several queues",
            id="the longest of several",
        ),
        pytest.param(
            """{type: rabbitmq, metadata: {queueName: 'a"b'}}""", "use type: Backlog, with a query", id="odd label"
        ),
    ],
)
def test_a_queue_without_these_series_stays_as_it_is_and_is_named(trigger: str, why: str) -> None:
    made, lost = convert(scaled(trigger), "autoscaler")
    assert isinstance(policy(made).signals[0], TotalAverage)
    assert any(why in loss.why for loss in lost)
    assert not any(loss.signal for loss in lost)


PROMETHEUS = "{type: prometheus, name: %s, metadata: {serverAddress: 'http://p', query: %s, threshold: '5'%s}}"


@pytest.mark.parametrize(
    "least, query",
    [
        pytest.param(0, "(sum(x)) * ((sum(x)) > bool 50)", id="to zero: up to it the workload sleeps"),
        pytest.param(1, "sum(x)", id="above zero it means nothing in KEDA either"),
    ],
)
def test_activation(least: int, query: str) -> None:
    trigger = PROMETHEUS % ("rps", "sum(x)", ", activationThreshold: '50', ignoreNullValues: 'false'")
    made, lost = convert(scaled(trigger, minReplicaCount=least), "autoscaler")
    assert made["spec"]["metrics"][0]["prometheus"]["query"] == query
    assert [loss.path for loss in lost] == ["spec.triggers[0].metadata.serverAddress"]


def test_a_formula_of_arithmetic_is_one_query() -> None:
    modifiers = {"formula": "(one + two) / 2", "target": "10"}
    triggers = (PROMETHEUS % ("one", "sum(a)", ""), PROMETHEUS % ("two", "sum(b)", ""))
    converted = convert(scaled(*triggers, advanced={"scalingModifiers": modifiers}), "autoscaler")
    (metric,) = converted.manifest["spec"]["metrics"]
    assert metric["prometheus"]["query"] == "vector((scalar(sum(a)) + scalar(sum(b))) / 2)"
    assert metric["prometheus"]["target"] == {"type": "AverageValue", "averageValue": "10"}
    assert not converted.loses_signal


def test_a_comment_in_a_query_ends_where_the_query_does() -> None:
    query = "'sum(a{b=\"c # d\"}) # why'"
    made = convert(
        scaled(PROMETHEUS % ("one", query, ", activationThreshold: '5'"), minReplicaCount=0), "autoscaler"
    ).manifest
    total = '(sum(a{b="c # d"}) # why\n)'
    assert made["spec"]["metrics"][0]["prometheus"]["query"] == f"{total} * ({total} > bool 5)"
    modifiers = {"formula": "one / 2", "target": "10"}
    formed = convert(scaled(PROMETHEUS % ("one", query, ""), advanced={"scalingModifiers": modifiers}), "autoscaler")
    assert formed.manifest["spec"]["metrics"][0]["prometheus"]["query"] == f"vector(scalar{total} / 2)"


def test_what_is_wrong_with_a_formula_is_said_where_it_is_written() -> None:
    for change, path in (({"formula": "one" + " + one" * 400}, "formula"), ({"target": "0"}, "target")):
        modifiers = {"formula": "one / 2", "target": "10"} | change
        with pytest.raises(InvalidInput) as caught:
            convert(scaled(PROMETHEUS % ("one", "sum(a)", ""), advanced={"scalingModifiers": modifiers}), "autoscaler")
        assert caught.value.path == f"spec.advanced.scalingModifiers.{path}"


def test_a_formula_that_says_more_is_a_lost_signal() -> None:
    unclear = ("one ** 2", "one > 3", "sum(one)", "one > 3 ? one", "two + 1", "clamp(one, 1)", "one = 3", "5")
    for formula in ("one", *unclear):
        modifiers = {"formula": formula, "target": "10"}
        converted = convert(
            scaled(PROMETHEUS % ("one", "sum(a)", ""), advanced={"scalingModifiers": modifiers}), "autoscaler"
        )
        assert ("spec.advanced.scalingModifiers.formula" in signals(converted)) is (formula != "one")


FORMULAS: dict[str, Callable[[float, float], float]] = {
    "min(one, two)": min,
    "max(one, two, 3)": lambda one, two: max(one, two, 3),
    "clamp(one - two, 1, 8)": lambda one, two: min(max(one - two, 1), 8),
    "one > two ? one : two": max,
    "two > 0 ? one / two : 0": lambda one, two: one / two if two > 0 else 0,
    "one >= 3 && two < 3 ? 1 : one <= 3 || !(two != 5) ? 2 : 3": lambda one, two: (
        1 if one >= 3 and two < 3 else 2 if one <= 3 or two == 5 else 3
    ),
    "-one + 2 * (two - 1) % 4 == 3 ? 10 : ceil(one / 2)": lambda one, two: (
        10 if -one + fmod(2 * (two - 1), 4) == 3 else ceil(one / 2)
    ),
    "not (one < 3 and two < 3) ? abs(one - two) : floor(two / 2)": lambda one, two: (
        abs(one - two) if not (one < 3 and two < 3) else floor(two / 2)
    ),
}


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool: `make cluster` builds one")
def test_prometheus_answers_what_a_formula_says_and_nothing_where_a_trigger_is_missing(tmp_path: Path) -> None:
    values = [0.0, 1.0, 3.0, 5.0, 11.0]
    queries = {}
    for formula in FORMULAS:
        modifiers = {"formula": formula, "target": "10"}
        triggers = (PROMETHEUS % ("one", "a", ""), PROMETHEUS % ("two", "b", ""))
        made = convert(scaled(*triggers, advanced={"scalingModifiers": modifiers}), "autoscaler")
        assert not made.loses_signal
        queries[formula] = made.manifest["spec"]["metrics"][0]["prometheus"]["query"]
    pairs = list(product(values, values))
    series = [
        {"series": name, "values": " ".join([*(f"{pair[index]:g}" for pair in pairs), *gone])}
        for index, (name, gone) in enumerate((("a", ["stale"]), ("b", ["7"])))
    ]
    asked = [
        {
            "expr": queries[formula],
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": float(meant(*pairs[minute]))}] if minute < len(pairs) else [],
        }
        for formula, meant in FORMULAS.items()
        for minute in range(len(pairs) + 1)
    ]
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run([str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, (done.stderr + done.stdout)[:2000]


def test_a_formula_without_end_is_refused_quickly() -> None:
    doubled = "one"
    for _ in range(12):
        doubled = f"max({doubled}, {doubled})"
    for formula in (doubled, "(" * 5000 + "one > 1 ? 1 : 0" + ")" * 5000):
        with pytest.raises(NotUnderstood):
            as_promql(formula, {"one": "(a)"})


def test_cron_alone_stays_cron_alone() -> None:
    cron = "{type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: '6'}}"
    made, lost = convert(scaled(cron, minReplicaCount=0), "autoscaler")
    (signal,) = policy(made).signals
    assert signal.metric.query == "vector(0)"
    assert (made["spec"]["minReplicas"], made["spec"]["schedules"][0]["minReplicas"], lost) == (0, 6, [])


@pytest.mark.parametrize(
    "cooldown, window, named",
    [(300, None, False), (60, None, True), (60, 60, False), (None, None, False)],
    ids=["HPA's own window", "another", "the same as the window", "unset"],
)
def test_cooldown_is_named_where_zero_comes_at_another_time(
    cooldown: int | None, window: int | None, named: bool
) -> None:
    spec: Manifest = {"minReplicaCount": 0} | ({"cooldownPeriod": cooldown} if cooldown else {})
    if window:
        behavior = {"scaleDown": {"stabilizationWindowSeconds": window}}
        spec["advanced"] = {"horizontalPodAutoscalerConfig": {"behavior": behavior}}
    _, lost = convert(scaled(PROMETHEUS % ("rps", "sum(x)", ""), **spec), "autoscaler")
    assert ("spec.cooldownPeriod" in [loss.path for loss in lost]) is named


@pytest.mark.parametrize("way, side", [("in", "down"), ("out", "up")])
def test_a_pause_of_one_direction_switches_it_off(way: str, side: str) -> None:
    manifest = scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}")
    manifest["metadata"]["annotations"] = {f"autoscaling.keda.sh/paused-scale-{way}": "true"}
    made, lost = convert(manifest, "autoscaler")
    rate = next(rule for rule in policy(made).settle if isinstance(rule, Rate))
    assert getattr(rate, side).select is Select.DISABLED
    assert ("annotations" in made["metadata"], lost) == (False, [])


@pytest.mark.parametrize(
    "said, paused", [("true", True), ("True", True), ("yes", True), ("false", False), ("0", False)]
)
def test_a_pause_says_what_keda_hears(said: str, paused: bool) -> None:
    manifest = scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}")
    manifest["metadata"]["annotations"] = {"autoscaling.keda.sh/paused": said}
    notes = convert(manifest, "autoscaler").manifest["metadata"].get("annotations", {})
    assert notes == ({"trimtab.dev/paused": "true"} if paused else {})


@pytest.mark.parametrize("value", [True, 3, None])
def test_an_annotation_that_is_no_text_is_refused_where_it_is_written(value: object) -> None:
    manifest = scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}")
    manifest["metadata"]["annotations"] = {"autoscaling.keda.sh/paused-replicas": value}
    if value is None:
        assert "annotations" not in convert(manifest, "autoscaler").manifest["metadata"]
        return
    with pytest.raises(InvalidInput, match="quote it") as caught:
        convert(manifest, "autoscaler")
    assert caught.value.path == 'metadata.annotations["autoscaling.keda.sh/paused-replicas"]'


def test_a_pin_that_is_no_number_is_refused_under_kedas_name() -> None:
    manifest = scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}")
    manifest["metadata"]["annotations"] = {"autoscaling.keda.sh/paused-replicas": "many"}
    with pytest.raises(InvalidInput) as caught:
        convert(manifest, "autoscaler")
    assert caught.value.path == 'metadata.annotations["autoscaling.keda.sh/paused-replicas"]'


def test_what_else_keda_is_told_is_named_and_stays_behind() -> None:
    manifest = scaled("{type: cpu, metricType: Utilization, metadata: {value: '60'}}")
    manifest["metadata"]["annotations"] = {"autoscaling.keda.sh/force-activation": "true", "team": "a"}
    made, lost = convert(manifest, "autoscaler")
    assert [loss.path for loss in lost] == ['metadata.annotations["autoscaling.keda.sh/force-activation"]']
    assert made["metadata"]["annotations"] == {"team": "a"}


def test_what_has_no_equivalent_is_named() -> None:
    spec: Manifest = {"idleReplicaCount": 0, "initialCooldownPeriod": 60, "pollingInterval": 5}
    spec |= {"fallback": {"failureThreshold": 3, "replicas": 6, "behavior": "currentReplicasIfLower"}}
    _, lost = convert(scaled("{type: cpu, metadata: {value: '60'}}", minReplicaCount=2, **spec), "autoscaler")
    named = {"spec.idleReplicaCount", "spec.initialCooldownPeriod", "spec.pollingInterval", "spec.fallback.behavior"}
    assert {loss.path for loss in lost} == named


def test_bookkeeping_stays_behind() -> None:
    manifest = scaled("{type: cpu, metadata: {value: '60'}}")
    manifest["metadata"] |= {
        "finalizers": ["finalizer.keda.sh"],
        "labels": {"scaledobject.keda.sh/name": "worker", "team": "a"},
        "annotations": {"argocd.argoproj.io/tracking-id": "x", "meta.helm.sh/release-name": "y", "note": "kept"},
    }
    metadata = convert(manifest, "autoscaler").manifest["metadata"]
    assert metadata == {"name": "worker", "namespace": "shop", "labels": {"team": "a"}, "annotations": {"note": "kept"}}


def test_beside_keda_its_own_metric_is_followed() -> None:
    manifest = scaled(
        "{type: cpu, metadata: {value: '60'}}",
        "{type: mysql, metadata: {query: SELECT 1, queryValue: '5'}, authenticationRef: {name: db}}",
    )
    manifest["metadata"]["annotations"] = {"autoscaling.keda.sh/paused": "true"}
    manifest["status"] = {"externalMetricNames": ["s1-mysql-jobs"]}
    made, lost = convert(manifest, "autoscaler", beside_keda=True)
    metric = {"name": "s1-mysql-jobs", "selector": {"matchLabels": {"scaledobject.keda.sh/name": "worker"}}}
    target = {"type": "AverageValue", "averageValue": "5"}
    assert made["spec"]["metrics"][1] == {"type": "External", "external": {"metric": metric, "target": target}}
    assert ("annotations" in made["metadata"], lost) == (False, [])


def test_beside_keda_a_formula_is_kedas_own_metric() -> None:
    modifiers = {"formula": "one > 3 ? one : 0", "target": "10"}
    manifest = scaled(PROMETHEUS % ("one", "sum(a)", ""), advanced={"scalingModifiers": modifiers})
    manifest["status"] = {"externalMetricNames": ["s0-prometheus"]}
    made, lost = convert(manifest, "autoscaler", beside_keda=True)
    assert [metric["external"]["metric"]["name"] for metric in made["spec"]["metrics"]] == ["composite-metric"]
    assert lost == []


def test_beside_keda_needs_the_names_that_keda_gave() -> None:
    with pytest.raises(InvalidInput, match="kubectl get scaledobject"):
        convert(scaled("{type: kafka, metadata: {topic: t}}"), "autoscaler", beside_keda=True)
    manifest = scaled("{type: external, metadata: {scalerAddress: a}}") | {"status": {"externalMetricNames": ["s0-x"]}}
    (loss,) = convert(manifest, "autoscaler", beside_keda=True).lost[:1]
    assert "kubectl get hpa keda-hpa-worker" in loss.why


@pytest.mark.parametrize("to", ["hpa", "ehpa", "hvpa"])
def test_paths_are_those_of_the_scaled_object_wherever_it_goes(to: str) -> None:
    lost = convert(scaled("{type: cpu, metadata: {value: '60'}}", QUERIES[0][1]), to).lost
    assert "spec.triggers[1]" in [loss.path for loss in lost if loss.signal]
    with pytest.raises(InvalidInput) as caught:
        convert(scaled("{type: cpu, metadata: {value: '60'}}", minReplicaCount=9, maxReplicaCount=3), to)
    assert caught.value.path == "spec.minReplicaCount"
