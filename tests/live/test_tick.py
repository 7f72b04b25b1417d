"""A whole tick against an API server in memory: what is asked, written, said and recorded."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.live.build import AT, AUTOSCALERS, object_tick
from tests.live.memory_api import MemoryApi
from tests.live.shop import APPS, CORE, METRICS, OURS, stock, ticker, watched
from trimtab import live, wire
from trimtab.acts import Fate
from trimtab.core.model import Change, ContainerSize, Decision, Observation, Plan, RuleName, Step
from trimtab.journal import Journal
from trimtab.live.object_tick import ObjectTick
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.tick import Ticker
from trimtab.policy import Axis, Size
from trimtab.wire.from_kubernetes import rfc3339


def ticked(api: MemoryApi, journal: Path | None = None, at: float = AT) -> Telemetry:
    """One tick over everything there is, its background work included."""
    telemetry = Telemetry()

    async def run() -> None:
        made = ticker(api, watched(api), telemetry, journal)
        await made.tick(at)
        await made.teller.finish()
        await made.checkpoints.finished()

    asyncio.run(run())
    return telemetry


def test_a_load_of_twice_the_target_doubles_the_pods(tmp_path: Path) -> None:
    api = MemoryApi()
    stock(api, cores=0.25)
    telemetry = ticked(api, tmp_path / "j.db")
    assert api.objects[f"{APPS}/deployments/web"]["spec"]["replicas"] == 4
    status = api.objects[f"{OURS}/web"]["status"]
    assert (status["currentReplicas"], status["desiredReplicas"]) == (2, 4)
    (event,) = [body for path, body in api.objects.items() if "/events/" in path]
    assert (event["reason"], event["firstTimestamp"]) == ("SuccessfulRescale", rfc3339(AT)), "of the tick, not of now"
    assert 'trimtab_acts_total{axis="replicas",outcome="written"} 1\n' in telemetry.render()
    (act,) = Journal.read(tmp_path / "j.db").acts()
    assert [(part.axis, part.fate) for part in act.outcome] == [("replicas", Fate.WRITTEN)]


def test_pod_metrics_are_listed_once_for_signals_and_sizes() -> None:
    api = MemoryApi()
    stock(api, vertical={"apply": "InPlace"})
    stock(api, "other", vertical={"apply": "InPlace"})
    ticked(api)
    assert api.asked.count(("GET", METRICS)) == 1


def test_one_object_that_fails_does_not_stop_another() -> None:
    api = MemoryApi()
    stock(api, "web")
    stock(api, "gone")
    api.remove(f"{APPS}/deployments/gone")
    telemetry = ticked(api)
    assert api.objects[f"{APPS}/deployments/web"]["spec"]["replicas"] == 4
    (ready,) = [one for one in api.objects[f"{OURS}/gone"]["status"]["conditions"] if one["type"] == "Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "FailedGetScale")
    assert ready["lastTransitionTime"] == rfc3339(AT)
    assert telemetry.failures == {"Refused": 1}


def test_every_scaling_goes_before_every_word(caplog: pytest.LogCaptureFixture) -> None:
    """A thousand broken objects had their statuses written before a healthy one was scaled."""
    api = MemoryApi()
    for number in range(40):
        stock(api, f"broken-{number}")
        api.remove(f"{APPS}/deployments/broken-{number}")
    stock(api, "web")
    with caplog.at_level("INFO"):
        ticked(api)
    writes = [path for method, path in api.asked if method == "PATCH"]
    assert writes[0] == f"{APPS}/deployments/web/scale" and len(writes) == 42, "a scale, then 41 statuses"
    assert "Autoscaler shop/web: 2 -> 4 replicas: " in caplog.text, "one line per scaling, with its reason"


def test_a_target_that_stays_is_neither_read_nor_written_again() -> None:
    api = MemoryApi()
    stock(api, cores=0.125)

    async def run() -> list[tuple[str, str]]:
        made = ticker(api, watched(api), Telemetry())
        await made.tick(AT)
        await made.teller.finish()
        api.asked.clear()
        await made.tick(AT + 15)
        await made.teller.finish()
        return api.asked

    assert asyncio.run(run()) == [("GET", METRICS)]


SMALL = {"app": ContainerSize(requests=Size(cpu_cores=0.25, memory_bytes=64 * 2.0**20))}
BIGGER = {"app": ContainerSize(requests=Size(cpu_cores=0.5, memory_bytes=64 * 2.0**20))}


async def _both(made: Ticker) -> ObjectTick:
    """More pods and larger ones, decided by hand."""
    cluster = made.cluster
    (scaler,) = cluster.ours["Autoscaler"].store
    subject = made.compiler.subject(AUTOSCALERS, scaler, True, AT)
    seen = Observation(at=AT, spec_replicas=2, status_replicas=2, sizes=SMALL)
    change = Change(was=2, replicas=4, sizes=BIGGER)
    decision = Decision(plan=Plan(replicas=4, sizes=BIGGER), change=change)
    target = await cluster.target("shop", "apps/v1", "Deployment", "web")
    return object_tick(subject, seen, decision=decision, target=target)


def test_replicas_written_and_sizes_refused_are_both_in_journal_metrics_and_events(tmp_path: Path) -> None:
    api, telemetry = MemoryApi(), Telemetry()
    stock(api, vertical={"apply": "InPlace"})
    for path in [path for path in api.objects if path.startswith(f"{CORE}/pods/")]:
        api.refused[("PATCH", f"{path}/resize")] = 403

    async def run() -> None:
        made = ticker(api, watched(api), telemetry, tmp_path / "j.db")
        await made._record([await made._act_on(await _both(made))], AT)
        await made.teller.finish()

    asyncio.run(run())
    (act,) = Journal.read(tmp_path / "j.db").acts()
    assert {(part.axis, part.fate) for part in act.outcome} == {("replicas", Fate.WRITTEN), ("sizes", Fate.REFUSED)}
    for line in ('axis="replicas",outcome="written"', 'axis="sizes",outcome="refused"'):
        assert f"trimtab_acts_total{{{line}}} 1\n" in telemetry.render()
    events = {body["reason"]: body["type"] for path, body in api.objects.items() if "/events/" in path}
    assert events == {"SuccessfulRescale": "Normal", "FailedUpdateScale": "Warning"}


def _fails(_: object) -> None:
    raise ZeroDivisionError


def test_what_cannot_be_recorded_of_one_object_is_missing_of_that_one_alone(tmp_path: Path) -> None:
    """By a bug, that is: what is read is such that it can be told."""
    api, telemetry = MemoryApi(), Telemetry()
    stock(api)

    async def run() -> None:
        made = ticker(api, watched(api), telemetry, tmp_path / "j.db")
        good = await _both(made)
        never = Step(rule=RuleName.PAUSED, axis=Axis.REPLICAS, before=4, after=2, until=1e300)
        held = Decision(plan=Plan(replicas=2), change=None, steps=(never,))
        object_ = replace(good.subject.object, metadata=replace(good.subject.object.metadata, uid="other"))
        bad = good._replace(subject=good.subject._replace(object=object_), decision=held)
        telemetry.watchers.insert(0, _fails)
        await made._record([bad, good], AT)

    asyncio.run(run())
    written = Journal.read(tmp_path / "j.db")
    assert len(list(written.acts())) == len(list(written.ticks())) == 1
    assert sum(telemetry.failures.values()) == 2 and telemetry.failures["Watcher"] == 1


CLOCKS = {"time", "datetime.now", "datetime.utcnow", "date.today"}
ASKED = ("clock.now", "clock.since_boot")
MAY_ASK = {"operator.py", "serve.py", "advice.py"}  # the loops that begin a tick, a period, a round
ROOMS = (Path(live.__path__[0]), Path(wire.__path__[0]))


@pytest.mark.parametrize("module", sorted(path for room in ROOMS for path in room.rglob("*.py")), ids=lambda p: p.name)
def test_nobody_asks_another_clock_than_the_one_handed_in(module: Path) -> None:
    nodes = list(ast.walk(ast.parse(module.read_text())))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    assert not (imported | _called(nodes)) & CLOCKS or module.name == "clock.py"


@pytest.mark.parametrize("module", sorted(ROOMS[0].rglob("*.py")), ids=lambda path: path.name)
def test_only_the_loops_ask_what_time_it_is(module: Path) -> None:
    asked = {call for call in _called(ast.walk(ast.parse(module.read_text()))) if call.endswith(ASKED)}
    assert not asked or module.name in MAY_ASK, f"`at` is the only clock of a tick: {asked}"


def _called(nodes: Iterable[ast.AST]) -> set[str]:
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
