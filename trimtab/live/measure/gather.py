"""gather: the samples of every signal, with as few questions as possible.

One list of pod metrics a namespace, one question for a metric and namespace, identical Prometheus queries once. What
cannot be answered becomes Missing with its reason; one source that fails never spoils another's answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from math import ceil, isfinite
from typing import NamedTuple

from msgspec.structs import replace

from trimtab.core.model import Missing, Pod, PodSamples, Reason, Samples, TotalSample
from trimtab.errors import InvalidInput, Refused, TrimtabError
from trimtab.policy import Metric, MetricKind, Signal
from trimtab.quantity import parse_duration, parse_quantity
from trimtab.wire.kube import Kube, ListPage
from trimtab.wire.objects import CustomMetricValue, ExternalMetricValue, PodMetrics
from trimtab.wire.prometheus import IncompleteAnswer, Prometheus
from trimtab.wire.resources import POD_METRICS, custom_metric_path, external_metric_path, namespace_metric_path

CUSTOM = ("v1beta2", "v1beta1")  # versions of custom.metrics.k8s.io, the newer one first
MANY_NAMESPACES = 5  # from here on one list of the whole cluster is cheaper than one for each


class Wanted(NamedTuple):
    """What one object wants to know: its signals, about these pods."""

    namespace: str
    signals: tuple[Signal, ...]
    pods: tuple[Pod, ...]


class Question(NamedTuple):
    """One request; equal questions are asked once a tick."""

    kind: MetricKind
    namespace: str
    name: str = ""
    selector: str = ""
    object: str = ""
    query: str = ""


class Reading(NamedTuple):
    """One value of one pod or container ("" in `container`: the metric has none)."""

    value: float
    at: float
    window_s: float = 60.0


class Usage(NamedTuple):
    """The usage of one pod's containers: name -> (cores, bytes), None where the kubelet said nothing."""

    containers: dict[str, tuple[float | None, float | None]]
    at: float
    window_s: float


Answer = dict[str, Usage] | dict[str, Reading] | Reading | Missing


class Gather:
    """The metrics APIs of one cluster, and one Prometheus where it is configured."""

    def __init__(
        self, kube: Kube, prometheus: Prometheus | None, *, everywhere: bool = False, scrape_s: float = 60.0
    ) -> None:
        self.kube, self.prometheus = kube, prometheus
        self.everywhere = everywhere  # we may read all namespaces
        self.stale_after_s = 2 * scrape_s
        self._custom_version = CUSTOM[0]
        self._asks: dict[MetricKind, Callable[[Question], Awaitable[Answer]]] = {
            MetricKind.RESOURCE: self._usage,
            MetricKind.PODS: self._of_pods,
            MetricKind.OBJECT: self._of_object,
            MetricKind.EXTERNAL: self._external,
            MetricKind.PROMETHEUS: self._prometheus,
        }

    async def gather(self, wanted: Sequence[Wanted]) -> list[tuple[Samples | Missing, ...]]:
        """Samples of each object, aligned with its signals."""
        whole = self.everywhere and len(_usage_namespaces(wanted)) >= MANY_NAMESPACES
        questions = {_question(signal.metric, one.namespace, whole) for one in wanted for signal in one.signals}
        ordered = list(questions)
        answers = await asyncio.gather(*(self._answer(question) for question in ordered))
        known, at = dict(zip(ordered, answers, strict=True)), time.time()
        return [
            tuple(
                self._shape(known[_question(signal.metric, one.namespace, whole)], signal.metric, one, at)
                for signal in one.signals
            )
            for one in wanted
        ]

    async def _answer(self, question: Question) -> Answer:
        try:
            return await self._asks[question.kind](question)
        except TrimtabError as error:
            return Missing(reason=_reason(error), since=time.time(), detail=str(error))

    async def _usage(self, question: Question) -> Answer:
        listing = await self.kube.list(PodMetrics, POD_METRICS, question.namespace)
        return {f"{one.metadata.namespace}/{one.metadata.name}": pod_usage(one) for one in listing.items}

    async def _of_pods(self, question: Question) -> Answer:
        items = await self._custom(question, "pods", "*")
        return {one.described_object.name: _reading(one) for one in items}

    async def _of_object(self, question: Question) -> Answer:
        api_version, kind, name = question.object.rsplit("/", 2)
        resource = await self.kube.resource(api_version, kind)
        plural = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        items = await self._custom(question, *(("", "") if kind == "Namespace" else (plural, name)))
        return _reading(items[0]) if len(items) == 1 else _not_one(len(items))

    async def _custom(self, question: Question, plural: str, name: str) -> list[CustomMetricValue]:
        """Without a plural, of the object's own namespace: whichever it names, as HPA does."""
        try:
            body = await self._ask_custom(self._custom_version, question, plural, name)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND or self._custom_version == CUSTOM[1]:
                raise
            body = await self._ask_custom(CUSTOM[1], question, plural, name)
            self._custom_version = CUSTOM[1]  # an adapter of the older version
        items = self.kube.decode(body, ListPage[CustomMetricValue]).items
        return [item for item in items if item.described_object.namespace in ("", question.namespace)]

    async def _ask_custom(self, version: str, question: Question, plural: str, name: str) -> bytes:
        path = namespace_metric_path(version, question.namespace, question.name)
        if plural:
            path = custom_metric_path(version, question.namespace, plural, name, question.name)
        params = {"metricLabelSelector": question.selector} if question.selector else None
        return await self.kube.raw(path, params, question.namespace)

    async def _external(self, question: Question) -> Answer:
        """The sum of all series, as HPA takes it."""
        params = {"labelSelector": question.selector} if question.selector else None
        path = external_metric_path(question.namespace, question.name)
        body = await self.kube.raw(path, params, question.namespace)
        items = self.kube.decode(body, ListPage[ExternalMetricValue]).items
        if not items:
            return Missing(reason=Reason.ABSENT, detail=question.name)
        return Reading(sum(thousandths_up(parse_quantity(one.value)) for one in items), min(_at(one) for one in items))

    async def _prometheus(self, question: Question) -> Answer:
        if self.prometheus is None:
            fix = "the operator has no Prometheus: start it with --prometheus URL"
            return Missing(reason=Reason.NOT_CONFIGURED, detail=fix)
        found = await self.prometheus.query(question.query, lookback_s=self.stale_after_s)
        return Reading(found[0].value, found[0].at) if len(found) == 1 else _not_one(len(found))

    def _shape(self, answer: Answer, metric: Metric, wanted: Wanted, at: float) -> Samples | Missing:
        if isinstance(answer, Missing):
            return answer
        if isinstance(answer, Reading):
            return self._refused(answer, at) or TotalSample(value=answer.value, at=answer.at)
        values: dict[str, Reading] = {}
        why = Missing(reason=Reason.ABSENT, detail=f"no pod has {metric.label}")
        for pod in wanted.pods:
            found = answer.get(f"{wanted.namespace}/{pod.name}" if metric.kind in _BY_USAGE else pod.name)
            one = _of_usage(found, metric) if isinstance(found, Usage) else found
            if one is None:
                continue
            if refused := self._refused(one, at):
                why = replace(refused, detail=f"pod {pod.name}")
            else:
                values[pod.name] = one
        return _samples(values, at) if values else why

    def _refused(self, one: Reading, at: float) -> Missing | None:
        """Why this is no value, where it is none."""
        if not isfinite(one.value):
            return Missing(reason=Reason.NOT_FINITE)
        if one.value < 0:
            return Missing(reason=Reason.NEGATIVE)
        return Missing(reason=Reason.STALE, since=one.at) if at - one.at > self.stale_after_s else None


_BY_USAGE = (MetricKind.RESOURCE, MetricKind.CONTAINER)


def _question(metric: Metric, namespace: str, whole: bool) -> Question:
    if metric.kind in _BY_USAGE:
        return Question(MetricKind.RESOURCE, "" if whole else namespace)
    if metric.kind is MetricKind.PROMETHEUS:
        return Question(metric.kind, "", query=metric.query)
    return Question(metric.kind, namespace, metric.name, metric.selector, metric.object)


def _usage_namespaces(wanted: Sequence[Wanted]) -> set[str]:
    return {one.namespace for one in wanted for signal in one.signals if signal.metric.kind in _BY_USAGE}


def _reason(error: TrimtabError) -> Reason:
    if isinstance(error, IncompleteAnswer):
        return Reason.PARTIAL
    if isinstance(error, InvalidInput):
        return Reason.UNSUPPORTED
    return Reason.ABSENT if isinstance(error, Refused) and error.status == HTTPStatus.NOT_FOUND else Reason.UNREACHABLE


def _not_one(count: int) -> Missing:
    if count == 0:
        return Missing(reason=Reason.ABSENT)
    return Missing(reason=Reason.AMBIGUOUS, detail=f"{count} series: wrap the query in sum() or max()")


def pod_usage(one: PodMetrics) -> Usage:
    containers = {
        each.name: (_amount(each.usage.get("cpu")), _amount(each.usage.get("memory"))) for each in one.containers
    }
    return Usage(containers, _at(one), parse_duration(one.window) if one.window else 60.0)


def _amount(text: str | None) -> float | None:
    if text is None:
        return None
    if text.endswith("n") and text[:-1].isdecimal():  # what metrics-server writes; 20 times faster
        return -(-int(text[:-1]) // 1_000_000) / 1000
    return thousandths_up(parse_quantity(text))


def thousandths_up(value: float) -> float:
    """Whole thousandths, rounded up: in these Kubernetes' own controller counts."""
    return ceil(value * 1000 - 1e-6) / 1000


def _of_usage(usage: Usage, metric: Metric) -> Reading | None:
    """The sum over the containers, or one of them; a container without a value makes the pod's unknown."""
    which = 0 if metric.name == "cpu" else 1
    if metric.container:
        value = usage.containers.get(metric.container, (None, None))[which]
        return None if value is None else Reading(value, usage.at, usage.window_s)
    values = [each[which] for each in usage.containers.values()]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return Reading(sum(known), usage.at, usage.window_s)


def _reading(one: CustomMetricValue) -> Reading:
    return Reading(thousandths_up(parse_quantity(one.value)), _at(one))


def _at(one: CustomMetricValue | ExternalMetricValue | PodMetrics) -> float:
    return one.timestamp.timestamp() if one.timestamp else time.time()


def _samples(values: dict[str, Reading], at: float) -> PodSamples:
    """Windows pod by pod: scrapes are never quite as far apart, and a hair decides whose sample is of its start-up."""
    window_s = max(one.window_s for one in values.values())
    return PodSamples(
        values={name: one.value for name, one in values.items()},
        at=at,
        times={name: one.at for name, one in values.items()},
        window_s=window_s,
        windows_s={name: one.window_s for name, one in values.items() if one.window_s != window_s},
    )
