"""loop: one period of nanit custom-hpa: fetch the sample, decide, scale, and remember what was done.

Whatever goes wrong ends this period and is said; the Deployment keeps its size and the next period tries again.
"""

from __future__ import annotations

import logging
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.structs import replace

from trimtab.core.decide import decide
from trimtab.core.explain import sentence
from trimtab.core.model import Decision, Missing, Observation, RuleName, Samples, TotalSample, Veto
from trimtab.core.propose import judge
from trimtab.core.remember import remember
from trimtab.errors import InvalidInput, Refused, TrimtabError
from trimtab.journal import ObjectName
from trimtab.kinds import CustomHpa
from trimtab.kinds.annotations import ENABLED
from trimtab.live.act import apply
from trimtab.live.look import conflict, memory, revert
from trimtab.live.look.cluster import ScaleTarget, WatchedCluster
from trimtab.live.look.memory import ObjectMemory, ReplicasWritten
from trimtab.live.look.subject import Compiler, Subject
from trimtab.live.measure.gather import Gather, Wanted
from trimtab.live.tell.telemetry import Family, Line, render
from trimtab.policy import Admit, Mode, Policy
from trimtab.wire.kube import Kube
from trimtab.wire.objects import ConfigMap, Custom, ObjectMeta, PartialObject, Scale
from trimtab.wire.prometheus import NOTHING, Prometheus, SeriesValue
from trimtab.wire.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES

FAMILIES = {  # named by the program, its counters without the suffix that they have today
    "custom_hpa_up": Family("counter", "Periods since the start."),
    "custom_hpa_metric_requests": Family("counter", "Questions to Prometheus, by whether it answered."),
    "custom_hpa_metric_samples": Family("gauge", "The last sample."),
    "custom_hpa_status": Family("gauge", "1 for what was true of the last period."),
    "custom_hpa_status_current_replicas": Family("gauge", "Replicas that the Deployment has in its spec."),
    "custom_hpa_status_desired_replicas": Family("gauge", "Replicas that were last decided on."),
    "custom_hpa_scale_factor": Family("gauge", "The last sample over its target."),
    "custom_hpa_spec_min_replicas": Family("gauge", "The floor."),
    "custom_hpa_spec_max_replicas": Family("gauge", "The ceiling."),
    "custom_hpa_spec_target_value": Family("gauge", "The target."),
}
STATUSES = {
    RuleName.COOLDOWN: "cooldown",
    RuleName.MIN_FACTOR: "below-min-factor",
    RuleName.MAX_FACTOR: "above-max-factor",
}
SCALED = "scaled"


class Gauges:
    def __init__(self, custom: CustomHpa) -> None:
        self.custom = custom
        self.periods = 0
        self.requests: Counter[str] = Counter(success=0, failure=0)
        self.statuses: set[tuple[str, str]] = set()  # what was true of the last period: (status, up or down)
        self._values: dict[str, float] = {}  # by name; a number that was never known is not shown

    def fetched(self, sample: float | None) -> None:
        """One question to Prometheus; without a usable answer nothing is true of this period."""
        self.requests["failure" if sample is None else "success"] += 1
        if sample is None:
            self.statuses = set()
        else:
            self._values["custom_hpa_metric_samples"] = sample

    def decided(self, current: int, decision: Decision, scaled: bool) -> None:
        self._values["custom_hpa_status_current_replicas"] = current
        if decision.change is not None:
            self._values["custom_hpa_status_desired_replicas"] = decision.plan.replicas
        factor = scale_factor(decision)
        if factor is None:
            self.statuses = set()
            return
        self._values["custom_hpa_scale_factor"] = factor
        way = "up" if factor > 1.0 else "down"
        found = [STATUSES[step.rule] for step in decision.steps if step.rule in STATUSES] + [SCALED] * scaled
        self.statuses = {(status, way) for status in found}

    def render(self) -> str:
        deployment = {"deployment": self.custom.target.deployment}
        return render(((name, deployment | labels, value) for name, labels, value in self._lines()), FAMILIES)

    def _lines(self) -> Iterable[Line]:
        custom = self.custom
        yield "custom_hpa_up", {}, self.periods
        for status, count in self.requests.items():
            yield "custom_hpa_metric_requests", {"status": status}, count
        for status in (*STATUSES.values(), SCALED):
            for way in ("up", "down"):
                yield "custom_hpa_status", {"status": status, "scale": way}, float((status, way) in self.statuses)
        for name, value in self._values.items():
            yield name, {}, value
        yield "custom_hpa_spec_min_replicas", {}, custom.min_replicas
        yield "custom_hpa_spec_max_replicas", {}, custom.max_replicas
        yield "custom_hpa_spec_target_value", {}, custom.target.value


def scale_factor(decision: Decision) -> float | None:
    """sample / target before any rule; None without a sample, or where none was asked for."""
    for proposal in decision.proposals:
        if not isinstance(proposal.replicas, Missing) and proposal.value is not None and proposal.target:
            return proposal.value / proposal.target
    return None


log = logging.getLogger(__name__)
KEY = "memory"
ALONE_S = 60.0  # longer than any request takes: nobody else waits for this one
LOOKBACK_S = 300.0  # Prometheus' own: how old a sample may be


class FirstSeries(Prometheus):
    """Exact mode: of several series the first one counts."""

    async def query(
        self,
        expression: str,
        at: float | None = None,
        *,
        lookback_s: float | None = None,
        extra: Mapping[str, str] = NOTHING,
    ) -> list[SeriesValue]:
        return (await super().query(expression, at, lookback_s=lookback_s, extra=extra))[:1]


class Loop:
    """Holds what outlives a period; `cluster` is asked who else scales the Deployment (exact mode: nobody asks)."""

    def __init__(
        self, custom: CustomHpa, kube: Kube, prometheus: Prometheus, release: ReleaseMemory, cluster: WatchedCluster
    ) -> None:
        self.custom, self.kube, self.release, self.cluster = custom, kube, release, cluster
        self.gauges = Gauges(custom)
        self.compiler = Compiler()
        self.gather = Gather(kube, prometheus, scrape_s=LOOKBACK_S / 2, patience_s=ALONE_S)
        self.edition = zlib.crc32(custom.model_dump_json().encode())  # an edit of the settings ends a rest
        self._said = ""

    async def period(self, at: float) -> None:
        """`at` is now for everything in it."""
        self.gauges.periods += 1
        policy = self.custom.to_policy(at)
        sample = await self._fetch(policy, at)
        target = await self._target()
        memory = await self._remembered(target, at)
        policy = await self._admitted(policy)
        seen = Observation(
            at=at,
            spec_replicas=target.replicas,
            status_replicas=target.status_replicas,
            samples=(sample,),
            vetoes=self._vetoes(policy, memory, at),
        )
        decision = decide(policy, seen, memory.core)
        self._say(sentence(policy, seen, memory.core, decision), decision.change is not None)
        memory, scaled = await self._act(policy, target, decision, memory, at)
        self.gauges.decided(target.replicas, decision, scaled)
        await self._store(memory)

    async def _fetch(self, policy: Policy, at: float) -> Samples | Missing:
        wanted = Wanted(self.custom.target.namespace, policy.signals, ())
        ((found,),) = (await self.gather.gather([wanted], at)).samples
        sample = judge(found, policy.absence, at)
        self.gauges.fetched(sample.value if isinstance(sample, TotalSample) else None)
        return sample

    async def _target(self) -> ScaleTarget:
        namespace, name = self.custom.target.namespace, self.custom.target.deployment
        scale = await self.kube.get(Scale, DEPLOYMENTS, namespace, name, "scale")
        meta = scale.metadata
        replicas, status_replicas = scale.spec.replicas, scale.status.replicas
        return ScaleTarget(DEPLOYMENTS, namespace, name, meta.uid, meta.resource_version, replicas, status_replicas)

    async def _remembered(self, target: ScaleTarget, at: float) -> ObjectMemory:
        memory = await self.release.read(at, target.replicas)
        if self.custom.exact:
            return memory
        return await revert.noticed(self.cluster, target, memory, self.edition, at)

    async def _admitted(self, policy: Policy) -> Policy:
        """The opt-out of a whole namespace holds here too."""
        if self.custom.exact:
            return policy
        found = await self.kube.get(PartialObject, NAMESPACES, "", self.custom.target.namespace)
        opted_out = (found.metadata.labels or {}).get(ENABLED) == "false"
        return replace(policy, admit=Admit(mode=Mode.PAUSED)) if opted_out else policy

    def _vetoes(self, policy: Policy, memory: ObjectMemory, at: float) -> tuple[Veto, ...]:
        if self.custom.exact:
            return ()
        claims = conflict.Claims(self.cluster, self._operated(at), at).against(self._subject(policy, at), at)
        return conflict.vetoes(claims) + revert.veto(memory, at)

    def _operated(self, at: float) -> list[Subject]:
        """What an operator of ours steers in this namespace; what it cannot understand it does not steer."""
        found: list[Subject] = []
        seen = [
            (feed.resource, custom) for feed in self.cluster.ours.values() if feed.resource for custom in feed.store
        ]
        for resource, custom in seen:
            with suppress(InvalidInput):
                found.append(self.compiler.subject(resource, custom, True, at))
        self.compiler.forget({custom.metadata.uid for _, custom in seen})
        return found

    def _subject(self, policy: Policy, at: float) -> Subject:
        """We, as the other autoscalers of a target are compared with: younger than any of them."""
        namespace = self.custom.target.namespace
        made_at = datetime.fromtimestamp(at, UTC)
        ourselves = Custom(metadata=ObjectMeta(name=self.custom.name, namespace=namespace, creation_timestamp=made_at))
        name = ObjectName("custom-hpa", namespace, self.custom.name)
        return Subject(name, CONFIG_MAPS, ourselves, self.custom.workload, policy)

    async def _act(
        self, policy: Policy, target: ScaleTarget, decision: Decision, memory: ObjectMemory, at: float
    ) -> tuple[ObjectMemory, bool]:
        """Memory of an act only after its write succeeded: a refusal or a dry run starts no cooldown."""
        change, after = decision.change, replace(memory, core=decision.memory)
        if change is None or change.replicas is None or policy.admit.mode is not Mode.AUTO:
            return after, False
        try:
            await apply.scale(self.kube, target, change)
        except Refused as refusal:
            log.warning("%s keeps its size: %s", target.text, refusal)
            return after, False
        wrote = ReplicasWritten(was=change.was, replicas=change.replicas, at=at)
        return replace(after, core=remember(policy, after.core, change, at), wrote=wrote), True

    async def _store(self, memory: ObjectMemory) -> None:
        """What was done is done: a memory that cannot be stored now is kept here and stored later."""
        try:
            await self.release.write(memory)
        except TrimtabError as error:
            log.warning("ConfigMap %s/%s is not written yet: %s", self.release.namespace, self.release.name, error)

    def _say(self, text: str, would_act: bool) -> None:
        """News at info, what was said before only at debug."""
        level = logging.DEBUG if text == self._said else logging.INFO
        dry = " (dry run: nothing is written)" if would_act and self.custom.dry_run else ""
        log.log(level, "%s/%s: %s%s", self.custom.target.namespace, self.custom.target.deployment, text, dry)
        self._said = text


class ReleaseMemory:
    """What one release remembers, in a ConfigMap of its name, so that a restart loses no cooldown.

    Read once, then written when something that must outlive us has changed. The chart makes the ConfigMap, so that the
    process needs no right to create any; without the chart it makes its own.
    """

    def __init__(self, kube: Kube, namespace: str, name: str) -> None:
        self.kube, self.namespace, self.name = kube, namespace, name
        self._now: ObjectMemory | None = None
        self._stored = ObjectMemory()

    async def read(self, at: float, replicas: int) -> ObjectMemory:
        """Raises while the ConfigMap cannot be read: acting without the memory could break a cooldown."""
        if self._now is None:
            self._now = memory.read({KEY: await self._load()}, at, replicas)
            self._stored = _without_wishes(self._now)
        return self._now

    async def write(self, now: ObjectMemory) -> None:
        """What is not stored yet is tried again each time, until it is."""
        self._now = now
        lasting = _without_wishes(now)
        if lasting != self._stored:
            await self._store(memory.written(lasting))
            self._stored = lasting

    async def _load(self) -> dict[str, Any]:
        try:
            found = await self.kube.get(ConfigMap, CONFIG_MAPS, self.namespace, self.name)
            stored = msgspec.json.decode(found.data.get(KEY) or "{}")
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return {}
        except msgspec.DecodeError:  # somebody wrote into it: there is nothing to remember
            return {}
        return stored if isinstance(stored, dict) else {}

    async def _store(self, lasting: dict[str, Any]) -> None:
        data = {"data": {KEY: msgspec.json.encode(lasting).decode()}}
        try:
            await self.kube.patch(ConfigMap, CONFIG_MAPS, self.namespace, self.name, data)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": self.name}} | data
            await self.kube.create(ConfigMap, CONFIG_MAPS, self.namespace, body)


def _without_wishes(now: ObjectMemory) -> ObjectMemory:
    """Drop recommendations and the time of the first failure, which custom-hpa's rules never read but always change."""
    return replace(now, core=replace(now.core, wanted=(), failing_since=None))
