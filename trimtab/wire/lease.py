"""Leadership by a coordination.k8s.io Lease, with self-fencing.

A leader may write only until `renew_deadline_s` after it SENT the last renewal that succeeded; others take
over `duration_s` after they SAW that renewal. The first is shorter, so two never write at once, whatever
their clocks say: each measures with its own clock since boot, which goes on while a process is stopped or its machine
sleeps, and which no step of the wall clock moves.

A leader renews after a third of that deadline. A renewal that is not answered soon is sent once more, while the first
is still waited for: both carry the same version, so that the API server takes one of them, and either answer will do.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from trimtab.errors import InvalidInput, Refused, TrimtabError
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.clock import SYSTEM, Clock
from trimtab.wire.kube import Kube
from trimtab.wire.objects import Lease
from trimtab.wire.resources import LEASES

NO_ANNOTATIONS: Mapping[str, str] = {}
RENEWED_AFTER, SENT_AGAIN_AFTER, ANSWERED_WITHIN = 1 / 3, 0.4, 1 / 2  # of the renew deadline
STEPS = 4  # requests one after the other until a Lease is ours: see `shards`
log = logging.getLogger(__name__)


def micro_time(at: float) -> str:
    """metav1.MicroTime: six decimals even when they are zero, or the API server refuses it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


class Leadership:
    """`run()` competes and renews until cancelled, then releases; `seconds_left()` is asked when a write leaves.

    It has a client and a budget of its own: a busy tick must never cost the leadership.
    """

    def __init__(
        self,
        access: Access,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: float = 15.0,
        renew_deadline_s: float = 10.0,
        retry_s: float = 2.0,
        clock: Clock = SYSTEM,
        annotations: Mapping[str, str] = NO_ANNOTATIONS,
    ) -> None:
        if not retry_s < renew_deadline_s < duration_s:
            given = f"{retry_s}/{renew_deadline_s}/{duration_s}"
            raise InvalidInput("lease", given, "retry < renew deadline < duration must hold, such as 2/10/15")
        self._answered_s = ANSWERED_WITHIN * renew_deadline_s
        self.kube = Kube(access, Budget(per_s=5.0, burst=20.0), timeout_s=self._answered_s, clock=clock)
        self.namespace, self.name, self.identity, self.annotations = namespace, name, identity, annotations
        self._clock = clock
        self.duration_s, self.renew_deadline_s, self.retry_s = duration_s, renew_deadline_s, retry_s
        self.leading = asyncio.Event()
        self.term = 0  # leaseTransitions: grows with every change of leader
        self.holder = ""
        self.trouble = ""  # why the last try came to nothing
        self.created_at = math.inf  # when the Lease was made, as far as it was seen
        self.led_since = math.inf  # from then on, by the clock since boot, we have led without a gap
        self.told: Mapping[str, str] = NO_ANNOTATIONS  # the annotations that others can read
        self.unfit: Callable[[], bool] = lambda: False  # whether another operator should lead, if there is one
        self._others_first_until = math.inf  # while we are unfit
        self._may_write_until = float("-inf")
        self._ours: Lease | None = None  # as we last wrote it
        self._seen: tuple[str, float] = ("", 0.0)  # the lease's version and when we first saw it
        self._listeners: list[Callable[[bool], None]] = []

    def may_write(self) -> bool:
        """The fence: true only while nobody else can have taken over."""
        return self.seconds_left() > 0

    def seconds_left(self) -> float:
        """For how long we surely lead; what Kube takes for its fence."""
        return self._may_write_until - self._clock.since_boot()

    def on_change(self, listener: Callable[[bool], None]) -> None:
        """Called with True when we become leader, with False when we are no longer."""
        self._listeners.append(listener)

    async def run(self) -> None:
        try:
            while True:
                wait_s = await self._try()
                self._mark()
                await asyncio.sleep(wait_s)
        finally:
            await self._release()
            await self.kube.close()

    async def _try(self) -> float:
        """Renew it, or try to get it; the seconds until the next try."""
        began, every_s, wait_s = self._clock.since_boot(), self._pause_s(), 0.0
        try:
            if await self._others_first(began):
                return every_s
            async with asyncio.timeout(self.renew_deadline_s):
                renewed = await self._renewed()
            if renewed:
                every_s = max(self.retry_s, RENEWED_AFTER * self.renew_deadline_s)
            else:  # the fence counts from when the request that took it was sent
                async with asyncio.timeout(STEPS * self._answered_s):
                    wait_s = await self._compete()
            self.trouble = ""
        except (TrimtabError, TimeoutError) as error:
            self.trouble = str(error) or "no answer in time"
            log.warning("lease %s/%s: %s", self.namespace, self.name, self.trouble)
        except Exception as bug:  # the fence holds: who cannot renew stops writing, and need not end
            self.trouble = f"a bug of trimtab: {bug!r}"
            log.exception("lease %s/%s: a bug of trimtab; it is tried again", self.namespace, self.name)
        pause_s = max(0.0, began + every_s - self._clock.since_boot())
        return min(pause_s, wait_s) if wait_s > 0 else pause_s

    async def _others_first(self, now: float) -> bool:
        """Whoever is unfit gives the Lease back once, and for two durations of it lets others take it."""
        if not self.unfit():
            self._others_first_until = math.inf
            return False
        if self._others_first_until == math.inf:
            self._others_first_until = now + 2 * self.duration_s
            if self.may_write():
                log.warning("lease %s/%s is given back: another operator should lead", self.namespace, self.name)
                await self._hand_back()
        if now >= self._others_first_until:
            return False
        async with asyncio.timeout(self._answered_s):
            await self._look()
        return True

    def _pause_s(self) -> float:
        """Not all who compete at the same moment."""
        return self.retry_s * random.uniform(1.0, 1.2)  # noqa: S311 (jitter, no secret)

    async def _renewed(self) -> bool:
        """While it is surely ours nobody else has written it: a guarded write, and a look only if that is refused."""
        ours = self._ours
        if ours is None or not self.may_write():
            return False
        errors = await first_success(lambda: self._take(ours), SENT_AGAIN_AFTER * self.renew_deadline_s)
        refusal = next((error for error in errors if isinstance(error, Refused)), None)
        if refusal:
            self._ours = None
        if errors and (refusal is None or refusal.status not in (HTTPStatus.CONFLICT, HTTPStatus.NOT_FOUND)):
            raise refusal or errors[0]
        return not errors

    async def _compete(self) -> float:
        """Look, and write where the lease is ours or free; the seconds for which it is still somebody else's."""
        lease = await self._look()
        wait_s = self._others_time_left(lease)
        if wait_s <= 0:
            await self._take(lease)
        return wait_s

    async def _look(self) -> Lease | None:
        try:
            lease = await self.kube.get(Lease, LEASES, self.namespace, self.name)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise
            return None
        self.holder, self.created_at = lease.spec.holder_identity or "", lease.made_at
        if lease.metadata.resource_version != self._seen[0]:
            self._seen = (lease.metadata.resource_version, self._clock.since_boot())
        return lease

    def _others_time_left(self, lease: Lease | None) -> float:
        """How long the lease is still somebody else's, counted from when we saw its last renewal."""
        if lease is None or not self.holder or self.holder == self.identity:
            return 0.0
        theirs_s = float(lease.spec.lease_duration_seconds or self.duration_s)
        return self._seen[1] + theirs_s - self._clock.since_boot()

    def tell(self, name: str, value: str) -> None:
        """An annotation, from the next renewal on."""
        self.annotations = {**self.annotations, name: value}

    async def _take(self, lease: Lease | None) -> None:
        sent_at, annotations = self._clock.since_boot(), self.annotations
        self.told = self.told if annotations == self.told else NO_ANNOTATIONS  # until there is an answer
        if lease is None:
            meta = {"name": self.name, "namespace": self.namespace, "annotations": annotations}
            body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": self._spec(None)}
            written = await self.kube.create(Lease, LEASES, self.namespace, body)
        else:
            body = {
                "metadata": {"resourceVersion": lease.metadata.resource_version, "annotations": annotations},
                "spec": self._spec(lease),
            }
            written = await self.kube.patch(Lease, LEASES, self.namespace, self.name, body)
        self._seen = (written.metadata.resource_version, sent_at)
        self._ours = written
        self.holder, self.term = self.identity, written.spec.lease_transitions or 0
        self.created_at, self.told = written.made_at, annotations
        if sent_at >= self._may_write_until:
            self.led_since = sent_at
        self._may_write_until = sent_at + self.renew_deadline_s

    def _spec(self, lease: Lease | None) -> dict[str, Any]:
        now = micro_time(self._clock.now())
        spec: dict[str, Any] = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self.duration_s),
            "renewTime": now,
        }
        if lease is None:
            return spec | {"acquireTime": now, "leaseTransitions": 0}
        if lease.spec.holder_identity != self.identity:
            spec |= {"acquireTime": now, "leaseTransitions": (lease.spec.lease_transitions or 0) + 1}
        return spec

    def _mark(self) -> None:
        leads = self.may_write()
        if leads == self.leading.is_set():
            return
        if leads:
            self.leading.set()
        else:
            self.leading.clear()
        log.info("%s is %s leader of %s/%s", self.identity, "now" if leads else "no longer", self.namespace, self.name)
        for listener in self._listeners:
            listener(leads)

    async def _release(self) -> None:
        """Give it back, so that the next one need not wait for it to expire; first of all stop writing."""
        was_ours, self._may_write_until = self._may_write_until > self._clock.since_boot(), float("-inf")
        self._mark()
        if was_ours:
            await self._hand_back()

    async def _hand_back(self) -> None:
        self._ours, self._may_write_until = None, float("-inf")
        try:
            async with asyncio.timeout(2.0):
                await self._empty()
        except (TrimtabError, TimeoutError) as error:
            log.warning(
                "lease %s/%s could not be released: %s", self.namespace, self.name, str(error) or "no answer in time"
            )

    async def _empty(self) -> None:
        """The renewal that was under way when we were told to end may have been written after all: then look again."""
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": micro_time(self._clock.now())}
        try:
            await self._guarded(self._seen[0], spec)
        except Refused as refusal:
            lease = await self._look() if refusal.status == HTTPStatus.CONFLICT else None
            if lease is None or lease.spec.holder_identity != self.identity:
                raise
            await self._guarded(lease.metadata.resource_version, spec)

    async def _guarded(self, version: str, spec: dict[str, Any]) -> None:
        body = {"metadata": {"resourceVersion": version}, "spec": spec}
        await self.kube.patch(Lease, LEASES, self.namespace, self.name, body)


async def first_success(work: Callable[[], Coroutine[Any, Any, None]], again_after_s: float) -> list[Exception]:
    """Do it, and once more beside it if that takes long; nothing when one of them succeeded, else why none did."""
    second: list[asyncio.Task[None]] = []
    begin = asyncio.get_running_loop().call_later(again_after_s, lambda: second.append(asyncio.create_task(work())))
    try:
        failure = await failure_of(work())
        if failure is None or not second:
            return [failure] if failure else []
        other = await failure_of(second[0])
        return [failure, other] if other else []
    finally:
        begin.cancel()
        for task in second:
            task.cancel()
        if second:
            await asyncio.wait(second)


async def failure_of(work: Awaitable[None]) -> Exception | None:
    try:
        await work
    except Exception as error:
        return error
    return None
