"""queries: what is asked of Prometheus. A namespace's queries go together, by one request: a thousand are a few dozen.

Never with another namespace's, so that nobody's query keeps another tenant's waiting. Whoever was in a batch that was
late, or made one fail, is asked alone from then on, until it has done well for a while.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from trimtab.core.model import Missing, Reason
from trimtab.live.measure.readings import Answer, Reading
from trimtab.live.measure.tenancy import QueryTenancy
from trimtab.policy import MetricKind
from trimtab.promql import joinable
from trimtab.wire.prometheus import Prometheus, SeriesValue

MOST = 25  # queries ...
MOST_CHARACTERS = 4000  # ... in one request: some servers and proxies refuse a longer text
ALONE_S = 600.0
FAILURES = (Reason.UNREACHABLE, Reason.PARTIAL, Reason.UNSUPPORTED)


class Question(NamedTuple):
    """One request; equal questions are asked once per tick."""

    kind: MetricKind
    namespace: str
    name: str = ""
    selector: str = ""
    object: str = ""
    query: str = ""

    @property
    def about_usage(self) -> bool:
        return self.kind is MetricKind.RESOURCE


class QueryBatch(NamedTuple):
    """Questions that are one request."""

    questions: tuple[Question, ...]


class QueryBatchAnswer(NamedTuple):
    answers: dict[Question, Answer]


class Queries:
    """One Prometheus, where it is configured, and which queries are asked alone."""

    def __init__(self, prometheus: Prometheus | None, tenancy: QueryTenancy, stale_after_s: float) -> None:
        self.prometheus, self.tenancy, self.stale_after_s = prometheus, tenancy, stale_after_s
        self._alone: dict[Question, float] = {}  # until when

    def question(self, namespace: str, query: str) -> Question:
        return Question(MetricKind.PROMETHEUS, self.tenancy.asker(namespace), query=query)

    async def ask(self, question: Question, _: float) -> Answer:
        if self.prometheus is None:
            fix = "the operator has no Prometheus: start it with --prometheus URL"
            return Missing(reason=Reason.NOT_CONFIGURED, detail=fix)
        extra = self.tenancy.params(question.namespace)
        return _one(await self.prometheus.query(question.query, lookback_s=self.stale_after_s, extra=extra))

    async def ask_together(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """InvalidInput or FailedQuery: one of them spoils it for all."""
        assert self.prometheus is not None
        extra, texts = self.tenancy.params(questions[0].namespace), [question.query for question in questions]
        found = await self.prometheus.query_together(texts, lookback_s=self.stale_after_s, extra=extra)
        return {question: _one(series) for question, series in zip(questions, found, strict=True)}

    def keep_alone(self, question: Question, at: float) -> None:
        self._alone[question] = at + ALONE_S

    def joined(
        self, askers: Mapping[Question, str], shared: Collection[Question], at: float
    ) -> dict[Question | QueryBatch, str]:
        """The same questions with their namespaces, those that go together as one; `shared` ones of several do not."""
        self._alone = {question: until for question, until in self._alone.items() if at < until and question in askers}
        found, together = dict[Question | QueryBatch, str](), defaultdict[tuple[str, str], list[Question]](list)
        for question, asker in askers.items():
            if question not in shared and self._joins(question):
                together[asker, question.namespace].append(question)
            else:
                found[question] = asker
        for (asker, _), questions in together.items():
            found |= {batch if len(batch.questions) > 1 else batch.questions[0]: asker for batch in _batches(questions)}
        return found

    def _joins(self, question: Question) -> bool:
        asks = question.kind is MetricKind.PROMETHEUS and self.prometheus is not None
        return asks and question not in self._alone and joinable(question.query)

    def apart(
        self, answers: Mapping[Question | QueryBatch, Answer | QueryBatchAnswer | Missing], at: float
    ) -> dict[Question, Answer]:
        """The answer to each question."""
        found = dict[Question, Answer]()
        for asked, answer in answers.items():
            if isinstance(answer, QueryBatchAnswer):
                found |= answer.answers
            elif isinstance(asked, Question):
                found[asked] = answer
                if asked in self._alone and isinstance(answer, Missing) and answer.reason in FAILURES:
                    self.keep_alone(asked, at)
            elif isinstance(answer, Missing):
                for question in asked.questions:
                    found[question] = answer
                    self.keep_alone(question, at)
        return found


def _batches(questions: Sequence[Question]) -> Iterator[QueryBatch]:
    batch, characters = list[Question](), 0
    for question in questions:
        if batch and (len(batch) == MOST or characters + len(question.query) > MOST_CHARACTERS):
            yield QueryBatch(tuple(batch))
            batch, characters = [], 0
        batch.append(question)
        characters += len(question.query)
    yield QueryBatch(tuple(batch))


def _one(found: Sequence[SeriesValue]) -> Answer:
    return Reading(found[0].value, found[0].at) if len(found) == 1 else not_one(len(found))


def not_one(count: int) -> Missing:
    if count == 0:
        return Missing(reason=Reason.ABSENT)
    return Missing(reason=Reason.AMBIGUOUS, detail=f"{count} series: wrap the query in sum() or max()")
