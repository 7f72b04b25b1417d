"""gather: the samples of every signal and the usage of pods, with as few questions as possible.

One list of pod metrics per namespace for signals and sizes alike, one question per metric and namespace, a namespace's
Prometheus queries together. What cannot be answered becomes Missing with its reason; one source that fails or is late
never spoils another's answer.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from http import HTTPStatus
from statistics import median
from typing import NamedTuple

from trimtab.core.backlog import queue_sample
from trimtab.core.model import Missing, Pod, Reason, Samples
from trimtab.errors import InvalidInput, Refused, TrimtabError
from trimtab.live.measure.bounded_queries import BoundedQueries
from trimtab.live.measure.queries import Queries, QueryBatch, QueryBatchAnswer, Question, not_one
from trimtab.live.measure.readings import (
    BY_USAGE,
    Answer,
    Reading,
    counted,
    dated,
    measured_at,
    reading_of,
    samples_of,
)
from trimtab.live.measure.tenancy import NotAllowed, QueryTenancy
from trimtab.policy import Backlog, Metric, MetricKind, Signal, metrics_of
from trimtab.promql import FailedQuery
from trimtab.wire.kube import Kube, ListPage
from trimtab.wire.objects import CustomMetricValue, ExternalMetricValue, PodMetrics
from trimtab.wire.prometheus import IncompleteAnswer, Prometheus, TooManySeries
from trimtab.wire.resources import POD_METRICS, custom_metric_path, external_metric_path, namespace_metric_path

CUSTOM = ("v1beta2", "v1beta1")  # versions of custom.metrics.k8s.io, the newer one first
log = logging.getLogger(__name__)
PATIENCE_S = 5.0  # a third of the usual tick
DATED = (MetricKind.RESOURCE, MetricKind.PROMETHEUS)
QUERIES = "Prometheus"
API_NAMES = {
    MetricKind.RESOURCE: "pods.metrics.k8s.io",
    MetricKind.CONTAINER: "pods.metrics.k8s.io",
    MetricKind.PODS: "custom.metrics.k8s.io",
    MetricKind.OBJECT: "custom.metrics.k8s.io",
    MetricKind.EXTERNAL: "external.metrics.k8s.io",
    MetricKind.PROMETHEUS: QUERIES,
}
MANY_NAMESPACES = 5  # from here on one list of the whole cluster is cheaper than one for each


class Wanted(NamedTuple):
    """What one object wants to know: its signals, about these pods."""

    namespace: str
    signals: tuple[Signal, ...]
    pods: tuple[Pod, ...]
    latency: Metric | None = None  # of a promise

    @property
    def metrics(self) -> list[Metric]:
        own = [metric for signal in self.signals for metric in metrics_of(signal)]
        return own if self.latency is None else [*own, self.latency]


class Measured(NamedTuple):
    """What one tick has measured."""

    samples: list[tuple[Samples | Missing, ...]]  # of each object: of its signals, then of its latency
    usage: dict[str, PodMetrics]  # by namespace/pod, as far as it was asked for


class Gather:
    """The metrics APIs of one cluster, and one Prometheus where it is configured."""

    def __init__(
        self,
        kube: Kube,
        prometheus: Prometheus | None,
        *,
        everywhere: bool = False,
        scrape_s: float = 60.0,
        tenancy: QueryTenancy = QueryTenancy(),  # noqa: B008  (frozen)
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.kube = kube
        self.everywhere = everywhere  # we may read all namespaces
        self.stale_after_s = 2 * scrape_s
        self.queries = Queries(prometheus, tenancy, self.stale_after_s)
        self.bounded: BoundedQueries[Question | QueryBatch, Answer | QueryBatchAnswer] = BoundedQueries(
            self._answer, patience_s
        )
        self.sampled_at: float | None = None  # the middle of the dates of metrics.k8s.io and Prometheus
        self._spaces: set[str] = set()  # of this tick: pods elsewhere are nobody's, or another shard's
        self._custom_version = CUSTOM[0]
        self._asks: dict[MetricKind, Callable[[Question, float], Awaitable[Answer]]] = {
            MetricKind.RESOURCE: self._usage,
            MetricKind.PODS: self._of_pods,
            MetricKind.OBJECT: self._of_object,
            MetricKind.EXTERNAL: self._external,
            MetricKind.PROMETHEUS: self.queries.ask,
        }

    async def gather(self, wanted: Sequence[Wanted], at: float, usage_of: Collection[str] = ()) -> Measured:
        """The samples that are wanted at `at`, and the usage of all pods in the namespaces `usage_of`."""
        self._spaces = _usage_namespaces(wanted) | set(usage_of)
        whole = self.everywhere and len(self._spaces) >= MANY_NAMESPACES
        of_usage = {_usage_question(namespace, whole) for namespace in usage_of}
        asked = [(question, question.namespace) for question in sorted(of_usage)]
        questions = [[self._question(metric, each.namespace, whole) for metric in each.metrics] for each in wanted]
        for each, own in zip(wanted, questions, strict=True):
            asked += [(found, found.namespace if found.about_usage else each.namespace) for found in own]
        joined = self.queries.joined(_askers(asked), _shared(asked), at)
        known = self.queries.apart(await self.bounded.answers(joined, at), at)
        dates = [date for question in known if question.kind in DATED and (date := _sampled_at(known[question]))]
        self.sampled_at = median(dates) if dates else None
        samples = [
            self._samples(each, [known[question] for question in own], at)
            for each, own in zip(wanted, questions, strict=True)
        ]
        return Measured(samples, _usage_in([known[question] for question in of_usage]))

    def close(self) -> None:
        self.bounded.close()

    def _question(self, metric: Metric, namespace: str, whole: bool) -> Question:
        if metric.kind in BY_USAGE:
            return _usage_question(namespace, whole)
        if metric.kind is MetricKind.PROMETHEUS:
            return self.queries.question(namespace, metric.query)
        return Question(metric.kind, namespace, metric.name, metric.selector, metric.object)

    async def _answer(self, question: Question | QueryBatch, at: float) -> Answer | QueryBatchAnswer:
        try:
            if isinstance(question, QueryBatch):
                return QueryBatchAnswer(await self._together(question.questions, at))
            return await self._asks[question.kind](question, at)
        except TrimtabError as error:
            return Missing(reason=_reason(error), since=at, detail=self._said(question, error))
        except Exception as error:
            log.exception("%s: this is a bug of trimtab; the metric counts as missing", question)
            return Missing(reason=Reason.UNREACHABLE, since=at, detail=f"the answer could not be read: {error!r}")

    def _said(self, question: Question | QueryBatch, error: TrimtabError) -> str:
        """Which API has no answer, and why; its address is the administrator's business."""
        api = QUERIES if isinstance(question, QueryBatch) else API_NAMES[question.kind]
        servers = [self.kube.http, *([self.queries.prometheus.http] if self.queries.prometheus else [])]
        text = str(error)
        for server in servers:
            text = text.removeprefix(f"{server.address}: ")
        return text if text.startswith(api) else f"{api}: {text}"

    async def _together(self, questions: Sequence[Question], at: float) -> dict[Question, Answer]:
        """By halves where one of them spoils it, until that one is alone."""
        if len(questions) == 1:
            self.queries.keep_alone(questions[0], at)
            answer = await self._answer(questions[0], at)
            assert not isinstance(answer, QueryBatchAnswer)
            return {questions[0]: answer}
        try:
            return await self.queries.ask_together(questions)
        except (InvalidInput, FailedQuery):
            half = len(questions) // 2
            return await self._together(questions[:half], at) | await self._together(questions[half:], at)

    async def _usage(self, question: Question, at: float) -> Answer:
        listing = await self.kube.list(PodMetrics, POD_METRICS, question.namespace)
        known = [pod for pod in listing.items if pod.metadata.namespace in self._spaces]
        return {f"{pod.metadata.namespace}/{pod.metadata.name}": dated(pod, at) for pod in known}

    async def _of_pods(self, question: Question, at: float) -> Answer:
        items = await self._custom(question, "pods", "*")
        return {metric.described_object.name: reading_of(metric, at) for metric in items}

    async def _of_object(self, question: Question, at: float) -> Answer:
        api_version, kind, name = question.object.rsplit("/", 2)
        resource = await self.kube.resource(api_version, kind, question.namespace)
        plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        items = await self._custom(question, *(("", "") if kind == "Namespace" else (plural, name)))
        return reading_of(items[0], at) if len(items) == 1 else not_one(len(items))

    async def _custom(self, question: Question, plural: str, name: str) -> list[CustomMetricValue]:
        """Without a plural, of the object's own namespace: whichever it names, as HPA does."""
        try:
            body = await self._ask_custom(self._custom_version, question, plural, name)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND or self._custom_version == CUSTOM[1]:
                raise
            body = await self._ask_custom(CUSTOM[1], question, plural, name)
            self._custom_version = CUSTOM[1]  # an adapter of the older version
        items = await self.kube.items(body, CustomMetricValue)
        return [item for item in items if item.described_object.namespace in ("", question.namespace)]

    async def _ask_custom(self, version: str, question: Question, plural: str, name: str) -> bytes:
        path = namespace_metric_path(version, question.namespace, question.name)
        if plural:
            path = custom_metric_path(version, question.namespace, plural, name, question.name)
        params = {"metricLabelSelector": question.selector} if question.selector else None
        return await self.kube.raw(path, params, question.namespace)

    async def _external(self, question: Question, at: float) -> Answer:
        """The sum of all series, as HPA takes it."""
        params = {"labelSelector": question.selector} if question.selector else None
        path = external_metric_path(question.namespace, question.name)
        body = await self.kube.raw(path, params, question.namespace)
        items = self.kube.decode(body, ListPage[ExternalMetricValue]).items
        if not items:
            return Missing(reason=Reason.ABSENT, detail=question.name)
        return Reading(
            sum(counted(series.value) for series in items),
            min(measured_at(series, at) for series in items),
        )

    def _samples(self, wanted: Wanted, answers: Sequence[Answer], at: float) -> tuple[Samples | Missing, ...]:
        """One for each signal; a queue is measured by several answers."""
        parts = iter(
            [
                samples_of(answer, metric, wanted.namespace, wanted.pods, at, self.stale_after_s)
                for answer, metric in zip(answers, wanted.metrics, strict=True)
            ]
        )
        own = [queue_sample(signal, parts) if isinstance(signal, Backlog) else next(parts) for signal in wanted.signals]
        return (*own, *parts)


def _sampled_at(answer: Answer) -> float | None:
    """When usage was measured, or Prometheus evaluated a query; no tenant writes these dates."""
    if isinstance(answer, Reading):
        return answer.at
    pod = next(iter(answer.values()), None) if isinstance(answer, dict) else None
    return pod.timestamp.timestamp() if isinstance(pod, PodMetrics) and pod.timestamp else None


def _askers(asked: Sequence[tuple[Question, str]]) -> dict[Question, str]:
    """Each question once, in the turn of the namespace with the fewest: no answer waits for another's many."""
    busy, found = Counter(namespace for _, namespace in set(asked)), dict[Question, str]()
    for question, namespace in asked:
        if question not in found or busy[namespace] < busy[found[question]]:
            found[question] = namespace
    return found


def _shared(asked: Sequence[tuple[Question, str]]) -> set[Question]:
    """What several namespaces ask."""
    return {question for question, count in Counter(question for question, _ in set(asked)).items() if count > 1}


def _usage_question(namespace: str, whole: bool) -> Question:
    return Question(MetricKind.RESOURCE, "" if whole else namespace)


def _usage_namespaces(wanted: Sequence[Wanted]) -> set[str]:
    return {each.namespace for each in wanted for signal in each.signals if signal.metric.kind in BY_USAGE}


def _usage_in(answers: Sequence[Answer]) -> dict[str, PodMetrics]:
    found: dict[str, PodMetrics] = {}
    for answer in answers:
        if isinstance(answer, Missing):
            log.warning("usage of pods: %s", answer.detail)
        elif isinstance(answer, dict):
            found |= {name: usage for name, usage in answer.items() if isinstance(usage, PodMetrics)}
    return found


def _reason(error: TrimtabError) -> Reason:
    if isinstance(error, IncompleteAnswer):
        return Reason.PARTIAL
    if isinstance(error, TooManySeries):
        return Reason.AMBIGUOUS
    if isinstance(error, NotAllowed):
        return Reason.NOT_ALLOWED
    if isinstance(error, InvalidInput):
        return Reason.UNSUPPORTED
    return Reason.ABSENT if isinstance(error, Refused) and error.status == HTTPStatus.NOT_FOUND else Reason.UNREACHABLE
