"""advice: the controllers of Analytics and Recommendation: which workloads to advise on and what to write.

A Recommendation that belongs to no Analytics is advised on by itself. An earlier recommendation stays when a round
fails. Each Analytics with its Recommendations is one job, and namespaces take turns: see `measure/background`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple

from trimtab.advisor import records
from trimtab.advisor.adopt import NO_STATUS, adopt, is_gone
from trimtab.advisor.run import Advised, Failed, advise_all, server_time
from trimtab.advisor.select import find, select
from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import HistoryWindow
from trimtab.errors import InvalidInput, MetricsUnavailable, NotLeading, Refused, TrimtabError
from trimtab.history.pod_owners import EVERYTHING, SeriesMatchers
from trimtab.history.workload_history import WorkloadHistory
from trimtab.kinds import read
from trimtab.kinds.analytics import ANALYSIS_API, Analytics, CompletionStrategy
from trimtab.kinds.analytics import Recommendation as RecommendationKind
from trimtab.kinds.annotations import ANALYTICS_UID
from trimtab.kinds.config_keys import effective
from trimtab.kinds.meta import seconds_of
from trimtab.live.look.cluster import Feed
from trimtab.live.look.subject import name_of
from trimtab.live.measure.background import Lane, Lanes, TookTooLong
from trimtab.live.tell.telemetry import NOT_READY, Line, labels_of
from trimtab.policy import Advice, Inspection
from trimtab.wire.access import Access
from trimtab.wire.from_kubernetes import conditions_in
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Custom, Followed
from trimtab.wire.prometheus import Prometheus
from trimtab.wire.resources import Resource

KINDS = ("Analytics", "Recommendation")
EVERY_S = 15.0
TIMEOUT_S = 120.0
NO_PROMETHEUS = "the operator has no Prometheus to read history from: start it with --prometheus URL"
FIRST_RETRY_S, LAST_RETRY_S = 15.0, 600.0
LEAST_PERIOD_S = 60.0  # whatever periodSeconds says
log = logging.getLogger(__name__)


class Job(NamedTuple):
    """An object to advise on, as which kind ("": not at all), and the Recommendations to adopt after it."""

    found: Custom
    round: str
    records: Sequence[Custom]


class Advisor:
    """Call `run()` beside the operator's own loop; it writes only while the writer may."""

    def __init__(
        self,
        kube: Kube,
        prometheus: Access | None,
        own_namespaces: Collection[str],
        namespace: str = "",
        *,
        shadow: bool = False,
        every_s: float = EVERY_S,
        matchers: SeriesMatchers = EVERYTHING,
        enabled: Callable[[str], bool] = lambda namespace: True,
        lane: Lane | None = None,
    ) -> None:
        self.kube, self.every_s = kube, every_s
        self.shadow = shadow  # recommend, but adopt nothing
        self.enabled = enabled  # a namespace may opt out
        self.own_namespaces = own_namespaces  # those of administrators: an Analytics there looks everywhere
        self.namespace = namespace  # "": the whole cluster
        self.matchers = matchers  # of this cluster's series, where Prometheus has those of several
        self.prometheus = Prometheus(prometheus, timeout_s=TIMEOUT_S) if prometheus else None
        self.feeds: dict[str, Feed[Custom]] = {
            kind: Feed(self.kube, Followed, (ANALYSIS_API, kind), namespace) for kind in KINDS
        }
        self.rounds, self.adoption = Rounds(), Adoption(kube)
        self.lane = lane or Lanes.new().advice
        self._jobs: dict[str, asyncio.Task[None]] = {}  # by uid
        self._said: dict[tuple[str, str], str] = {}  # by what failed, and the uid of whose it is

    async def run(self) -> None:
        async with self.following():
            while True:
                if self.kube.may_write() and all(feed.settled for feed in self.feeds.values()):
                    await self._guarded(self._begin(self.kube.clock.now()), "this round of advice")
                await asyncio.sleep(self.every_s)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Objects are watched, not listed: while nothing is due, nothing is asked."""
        tasks = [asyncio.create_task(feed.run()) for feed in self.feeds.values()]
        try:
            yield
        finally:
            tasks += self._jobs.values()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self.prometheus:
                await self.prometheus.close()

    async def tick(self, at: float) -> None:
        """Do everything that is due now."""
        await self._begin(at)
        await asyncio.gather(*self._jobs.values())

    async def _begin(self, at: float) -> None:
        """Start a job for everything that is due now and not under way."""
        analytics, kept = self._served("Analytics"), self._served("Recommendation")
        alive = {"", *(found.metadata.uid for found in (*analytics, *kept))}
        for part in (self.rounds, self.adoption):
            part.forget(alive)
        self._said = {about: said for about, said in self._said.items() if about[1] in alive}
        self._jobs = {uid: task for uid, task in self._jobs.items() if not task.done()}
        for job in _jobs(analytics, kept):
            due = job.round != "" and self.rounds.due(job.found, at)
            adopts = [] if self.shadow else [record for record in job.records if self.adoption.has_news(record)]
            if (due or adopts) and job.found.metadata.uid not in self._jobs:
                task = asyncio.create_task(self._do(job._replace(records=adopts), at))
                self._jobs[job.found.metadata.uid] = task

    async def _do(self, job: Job, at: float) -> None:
        loop, what = asyncio.get_running_loop(), f"{job.round or 'Recommendation'} {_title(job.found)}"
        began = loop.time()
        work = partial(self._carry_out, job, lambda: at + loop.time() - began)  # it may have waited for its turn
        try:
            await self.lane.do(job.found.metadata.namespace, work)
        except NotLeading:
            log.debug("%s: the new leader goes on", what)
        except TookTooLong as error:
            log.warning("%s: %s", what, error)
            self.rounds.later(job.found, at + loop.time() - began)

    async def _carry_out(self, job: Job, now: Callable[[], float]) -> None:
        found = job.found
        if job.round == "Analytics":
            await self._guarded(self._round(found, now()), f"Analytics {_title(found)}", found)
        elif job.round == "Recommendation":
            await self._guarded(self._alone(found, now()), f"Recommendation {_title(found)}", found)
        for record in job.records:
            await self._guarded(self._adopt(record, now()), f"adoption of {_title(record)}", record)

    def not_ready(self) -> Iterator[Line]:
        """For /metrics: one line for each Analytics and Recommendation that has no result."""
        for kind in KINDS:
            for found in self._served(kind):
                ready = conditions_in(found.status).get("Ready", {})
                if ready.get("status") == "False":
                    yield NOT_READY, labels_of(name_of(kind, found)) | {"reason": str(ready.get("reason", ""))}, 1.0

    def _served(self, kind: str) -> list[Custom]:
        return [found for found in self.feeds[kind].store if self.enabled(found.metadata.namespace)]

    async def _guarded(self, work: Any, what: str, whose: Custom | None = None) -> None:
        about = (what, whose.metadata.uid if whose else "")
        try:
            await work
        except NotLeading:
            raise
        except TrimtabError as error:
            if self._said.get(about) != str(error):  # what stays wrong is said once, not every tick
                log.warning("%s: %s", what, error)
            self._said[about] = str(error)
        except Exception:
            log.exception("%s: a bug of trimtab", what)
        else:
            self._said.pop(about, None)

    async def _resource(self, kind: str) -> Resource:
        return await self.kube.resource(ANALYSIS_API, kind)

    async def _fresh(self, seen: Custom, kind: str) -> Custom:
        """As it stands now: what is watched may lag behind our own last word, and Once means once."""
        return await self.kube.get(Custom, await self._resource(kind), seen.metadata.namespace, seen.metadata.name)

    # --- an Analytics ---

    async def _round(self, seen: Custom, at: float) -> None:
        if not self.rounds.due(seen, at):
            return
        found = await self._fresh(seen, "Analytics")
        if not self.rounds.due(found, at):
            return
        everywhere = found.metadata.namespace in self.own_namespaces and not self.namespace
        try:
            analytics = read(_manifest(found, "Analytics"))
            assert isinstance(analytics, Analytics)
            rules = analytics.to_inspection()
            selected = await select(self.kube, analytics, everywhere, at)
            targets = [target for target in selected if self.enabled(target.namespace)]
        except TrimtabError as error:
            self.rounds.later(found, at)
            reason = "InvalidSpec" if isinstance(error, InvalidInput) else "FailedSelectResource"
            failed = records.condition("Ready", False, reason, str(error))
            await self._write(found, "Analytics", {"conditions": records.conditions([failed], found.status, at)})
            return
        outcomes = await self._outcomes(rules, targets, at)
        label = f"{ANALYTICS_UID}={found.metadata.uid}"
        kept = await self._resource("Recommendation")
        mine = (await self.kube.list(Custom, kept, found.metadata.namespace, labels=label)).items
        missions = [await self._mission(found, rules, outcome, mine, at) for outcome in outcomes]
        await self._prune(mine, targets)
        ready = records.analytics_ready(missions)
        conditions = records.conditions([ready], found.status, at)
        status: dict[str, Any] = {"conditions": conditions, "recommendations": missions}
        if not self.rounds.again(found, outcomes, at):
            status |= records.round_done(found, at) | {"config": effective(rules)}
        await self._write(found, "Analytics", status)

    async def _outcomes(self, rules: Inspection, targets: Sequence[AdvisedTarget], at: float) -> list[Advised]:
        """Of every target; where no history can be read at all, that is the outcome of each."""
        if self.prometheus is None:
            return [Advised(target, Failed(MetricsUnavailable(NO_PROMETHEUS), NO_PROMETHEUS)) for target in targets]
        try:
            now, _ = await server_time(self.prometheus, at)
            source = WorkloadHistory(self.prometheus, self.kube, self.matchers)
            window = HistoryWindow.before(now, rules)
            return [outcome async for some in advise_all(rules, targets, source, window, at) for outcome in some]
        except TrimtabError as error:
            return [Advised(target, Failed(error, str(error))) for target in targets]

    async def _mission(
        self, analytics: Custom, rules: Inspection, outcome: Advised, mine: Sequence[Custom], at: float
    ) -> dict[str, Any]:
        """The Recommendation of one target, made or brought up to date."""
        record = next((present for present in mine if _is_of(present, outcome.target)), None)
        message = records.message_of(outcome)
        try:
            if record is None:
                body = records.new_recommendation(analytics, outcome.target, rules.advice)
                namespace = analytics.metadata.namespace
                record = await self.kube.create(Custom, await self._resource("Recommendation"), namespace, body)
            await self._write(record, "Recommendation", records.status_of(rules, outcome, record.status, at))
        except NotLeading:
            raise
        except TrimtabError as error:
            message = f"the recommendation could not be written: {error}"
        return records.mission(outcome, record, message, at)

    async def _prune(self, mine: Sequence[Custom], targets: Sequence[AdvisedTarget]) -> None:
        """Of targets that are no longer selected; one whose run only failed is not among them."""
        for record in mine:
            if not any(_is_of(record, target) for target in targets) and self.kube.may_write():
                meta = record.metadata
                await self.kube.delete(await self._resource("Recommendation"), meta.namespace, meta.name, uid=meta.uid)

    # --- a Recommendation by itself ---

    async def _alone(self, seen: Custom, at: float) -> None:
        if not self.rounds.due(seen, at):
            return
        found = await self._fresh(seen, "Recommendation")
        if not self.rounds.due(found, at):
            return
        try:
            kind = read(_manifest(found, "Recommendation"))
            assert isinstance(kind, RecommendationKind)
            everywhere = found.metadata.namespace in self.own_namespaces and not self.namespace
            target = await find(self.kube, kind.spec.target_ref, found.metadata.namespace, everywhere, at)
        except TrimtabError as error:
            self.rounds.later(found, at)
            status = records.without_value(type(error).__name__, str(error), found.status, at)
            await self._write(found, "Recommendation", status)
            return
        rules = Inspection(advice=Advice(kind.spec.type))
        outcome = (await self._outcomes(rules, [target], at))[0]
        status = records.status_of(rules, outcome, found.status, at)
        if not self.rounds.again(found, [outcome], at):
            status |= records.round_done(found, at)
        await self._write(found, "Recommendation", status)

    # --- writing ---

    async def _write(self, found: Custom, kind: str, changes: dict[str, Any]) -> None:
        """What is not applied again would be removed, so all of it is, guarded against a newer one."""
        status = found.status | changes
        if status != found.status:
            body = records.status_body(found, kind, status)
            resource = await self._resource(kind)
            if not resource.has_status:
                raise Refused(NO_STATUS, HTTPStatus.NOT_FOUND)
            await self.kube.apply(Custom, resource, body, "status")

    async def _adopt(self, record: Custom, at: float) -> None:
        conditions = await self.adoption.carry_out(record, at)
        if conditions is not None:
            await self._write(record, "Recommendation", {"conditions": conditions})


def _jobs(analytics: Sequence[Custom], kept: Sequence[Custom]) -> Iterator[Job]:
    """An Analytics with its Recommendations is one job, so that two never write the same object; others are alone."""
    records: dict[tuple[str, str], list[Custom]] = defaultdict(list)
    for record in kept:
        records[record.metadata.namespace, (record.metadata.labels or {}).get(ANALYTICS_UID, "")].append(record)
    for found in analytics:
        yield Job(found, "Analytics", records.pop((found.metadata.namespace, found.metadata.uid), []))
    for (_, owner), orphans in records.items():
        yield from (Job(record, "" if owner else "Recommendation", [record]) for record in orphans)


def _is_of(record: Custom, target: AdvisedTarget) -> bool:
    return records.same_target(record.spec.get("targetRef") or {}, target, record.metadata.namespace)


def _manifest(found: Custom, kind: str) -> dict[str, Any]:
    meta = found.metadata
    named = {"name": meta.name, "namespace": meta.namespace}
    notes = {"labels": meta.labels or {}, "annotations": meta.annotations or {}}
    return {"apiVersion": ANALYSIS_API, "kind": kind, "metadata": named | notes, "spec": found.spec}


def _title(found: Custom) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"


class Retry(NamedTuple):
    """When a round that failed is tried again, unless the object is edited first."""

    at: float
    wait_s: float
    spec: dict[str, Any]


class Rounds:
    """Tells when an Analytics or a Recommendation is due.

    It is due when it is new or edited, and a Periodical one again after its period. A failed round is retried soon,
    then less and less often.
    """

    def __init__(self) -> None:
        self._retries: dict[str, Retry] = {}

    def forget(self, alive: set[str]) -> None:
        """All but these are gone."""
        self._retries = {uid: retry for uid, retry in self._retries.items() if uid in alive}

    def due(self, found: Custom, at: float) -> bool:
        retry = self._retry(found)
        if retry is not None:  # a round that could not do its work yet, although Once may be over
            return at >= retry.at
        updated, strategy = seconds_of(found.status.get("lastUpdateTime")), _strategy(found)
        if updated is None or strategy is None or records.edited(found):
            return True
        period_s = strategy.period_s
        return period_s is not None and at >= updated + max(period_s, LEAST_PERIOD_S)

    def later(self, found: Custom, at: float) -> None:
        before = self._retry(found)
        wait_s = min(2 * before.wait_s, LAST_RETRY_S) if before else FIRST_RETRY_S
        self._retries[found.metadata.uid] = Retry(at + wait_s, wait_s, found.spec)

    def again(self, found: Custom, outcomes: Sequence[Advised], at: float) -> bool:
        """Whether it is tried again soon: nothing could be read, or pods that may be starting are not there yet."""
        retry = self._retry(found)
        starting = any(outcome.without_pods for outcome in outcomes)
        patient = retry is None or retry.wait_s < LAST_RETRY_S
        if all(outcome.unread for outcome in outcomes) or (starting and patient):
            self.later(found, at)
            return True
        self._retries.pop(found.metadata.uid, None)
        return False

    def _retry(self, found: Custom) -> Retry | None:
        """None where nothing failed, and where it was edited since."""
        retry = self._retries.get(found.metadata.uid)
        return retry if retry and retry.spec == found.spec else None


def _strategy(found: Custom) -> CompletionStrategy | None:
    """None when it cannot be read; the round says why."""
    given = found.spec.get("completionStrategy") or {}
    try:
        return CompletionStrategy.model_validate(given)
    except ValueError:
        return None


class Adoption:
    """Carries out each Recommendation that asks for it, once per value; a condition says why it cannot."""

    def __init__(self, writer: Kube) -> None:
        self.writer = writer
        self._adopted: dict[str, tuple[str, str]] = {}

    def forget(self, alive: set[str]) -> None:
        """All but these are gone."""
        self._adopted = {uid: adopted for uid, adopted in self._adopted.items() if uid in alive}

    def has_news(self, record: Custom) -> bool:
        return self._adopted.get(record.metadata.uid) != _wanted(record)

    async def carry_out(self, record: Custom, at: float) -> list[dict[str, Any]] | None:
        """The conditions to write, where there is news."""
        if not self.has_news(record):
            return None
        try:
            await adopt(self.writer, record)
            self._adopted[record.metadata.uid] = _wanted(record)
        except (Refused, InvalidInput) as refusal:
            if is_gone(refusal):
                return None  # the next round tells
            return _conditions(record, records.condition("Adopted", False, "AdoptionFailed", str(refusal)), at)
        return _conditions(record, None, at)


def _wanted(record: Custom) -> tuple[str, str]:
    return str(record.spec.get("adoptionType")), str(record.status.get("recommendedValue"))


def _conditions(record: Custom, problem: dict[str, Any] | None, at: float) -> list[dict[str, Any]] | None:
    """A condition while it fails, none when it works: Crane's HPA recommendation prints none."""
    present = conditions_in(record.status)
    others = [condition for kind, condition in present.items() if kind != "Adopted"]
    if problem is None and len(others) == len(present):
        return None
    return records.conditions([*others, problem] if problem else others, record.status, at)
