"""One object's failure is caught, counted and said on that object; the others' results come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tests.live.build import AT, AUTOSCALERS, HPAS, custom, hpa
from tests.live.memory_api import MemoryApi
from tests.virtual.loop import run as virtual_run
from trimtab.errors import InvalidInput, NotLeading, Refused
from trimtab.live.guard import Guard
from trimtab.live.tell.status_writer import StatusWriter
from trimtab.live.tell.telemetry import Telemetry
from trimtab.live.tell.teller import Teller
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.objects import Custom
from trimtab.wire.resources import Resource

Item = tuple[Resource, Custom, Exception | None]
STATUS = f"{AUTOSCALERS.root}/namespaces/shop/autoscalers/bad"


def guarded(*items: Item, times: int = 1, at_once: bool = False) -> tuple[list[str], MemoryApi, Telemetry]:
    """The names of the objects that did not fail, and what was written of the others."""
    api, telemetry = MemoryApi(), Telemetry()
    if any(resource is AUTOSCALERS for resource, _, _ in items):
        api.put(STATUS, {"metadata": {"uid": "uid-bad"}, "spec": {}})

    async def run() -> list[str]:
        writer = api.kube()
        teller = Teller()
        guard = Guard(writer, StatusWriter(writer), teller, telemetry)
        for _ in range(times):
            if at_once:
                found = await guard.each_at_once(_done(items), _objects(items), AT)
            else:
                found = await guard.each(_do(items), _objects(items), AT)
            await teller.finish()
            guard.forget({item[1].metadata.uid for item in items})
        return found

    return asyncio.run(run()), api, telemetry


def _objects(items: Sequence[Item]) -> list[tuple[Resource, Custom]]:
    return [item[:2] for item in items]


def _do(items: Sequence[Item]) -> Callable[[tuple[Resource, Custom]], Awaitable[str]]:
    done = _done(items)

    async def do(served: tuple[Resource, Custom]) -> str:
        return done(served)

    return do


def _done(items: Sequence[Item]) -> Callable[[tuple[Resource, Custom]], str]:
    """Return the name of an object, or raise its error."""
    errors = {item[1].metadata.uid: item[2] for item in items}

    def done(served: tuple[Resource, Custom]) -> str:
        if error := errors[served[1].metadata.uid]:
            raise error
        return served[1].metadata.name

    return done


def conditions(api: MemoryApi) -> dict[str, Any]:
    return {one["type"]: one for one in api.objects[STATUS]["status"]["conditions"]}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(InvalidInput("spec.maxReplicas", 0, "write at least 1"), "InvalidSpec", id="a mistake"),
        pytest.param(Refused("Deployment shop/web does not exist", 404), "FailedGetScale", id="a refusal"),
        pytest.param(ZeroDivisionError("division by zero"), "InternalError", id="a bug"),
    ],
)
@pytest.mark.parametrize("at_once", [False, True], ids=["who may wait", "who waits for nobody"])
def test_the_failure_of_one_is_said_on_it_and_the_others_go_on(error: Exception, reason: str, at_once: bool) -> None:
    bad, good = (AUTOSCALERS, custom("bad"), error), (AUTOSCALERS, custom("good"), None)
    done, api, telemetry = guarded(bad, good, at_once=at_once)
    assert done == ["good"] and telemetry.failures == {type(error).__name__: 1}
    ready = conditions(api)["Ready"]
    assert (ready["status"], ready["reason"], ready["lastTransitionTime"]) == ("False", reason, rfc3339(AT))


def test_who_does_not_lead_any_more_says_nothing() -> None:
    done, api, telemetry = guarded((AUTOSCALERS, custom("bad"), NotLeading("lost")))
    assert (done, api.asked, telemetry.failures) == ([], [], {})


def test_others_objects_hear_of_it_once_by_an_event() -> None:
    _, api, _ = guarded((HPAS, hpa(), Refused("this HPA belongs to ScaledObject/x")), times=3)
    (event,) = api.objects.values()
    assert (event["reason"], event["type"], event["lastTimestamp"]) == ("ForecastNotUsed", "Warning", rfc3339(AT))


def test_what_repeats_is_logged_less_and_less_often(caplog: pytest.LogCaptureFixture) -> None:
    guarded((AUTOSCALERS, custom("bad"), Refused("no such Deployment")), times=120)
    said = [record.getMessage() for record in caplog.records]
    assert [text.rpartition("Deployment")[2] for text in said] == ["", " (10 times in a row)", " (100 times in a row)"]


def test_a_status_that_cannot_be_written_stops_nobody() -> None:
    api, telemetry = MemoryApi(), Telemetry()
    api.refused[("PATCH", f"{STATUS}/status")] = 403

    async def run() -> list[str]:
        writer = api.kube()
        teller = Teller()
        guard = Guard(writer, StatusWriter(writer), teller, telemetry)
        items: list[Item] = [(AUTOSCALERS, custom("bad"), Refused("no", 404)), (AUTOSCALERS, custom("good"), None)]
        done = await guard.each(_do(items), _objects(items), AT)
        await teller.finish()
        return done

    assert asyncio.run(run()) == ["good"]


def test_after_its_time_nobody_is_waited_for_and_whose_turn_did_not_come_is_first_next_time() -> None:
    """One namespace is stuck: its own objects fail or wait, everybody else's are done."""
    api, telemetry = MemoryApi(), Telemetry()
    stuck = [(AUTOSCALERS, custom(f"stuck-{number}", metadata={"namespace": "evil"})) for number in range(40)]
    fine = [(AUTOSCALERS, custom(f"fine-{number}")) for number in range(40)]
    tried: list[list[str]] = []

    async def verb(item: tuple[Resource, Custom]) -> str:
        tried[-1].append(item[1].metadata.name)
        if item[1].metadata.namespace == "evil":
            await asyncio.Event().wait()
        return item[1].metadata.name

    async def run() -> list[list[str]]:
        writer = api.kube()
        guard, done = Guard(writer, StatusWriter(writer), Teller(), telemetry), []
        for _ in range(2):
            tried.append([])
            done.append(await guard.each(verb, [*stuck, *fine], AT, within_s=5.0))
            guard.forget({item[1].metadata.uid for item in (*stuck, *fine)})
        return done

    for done in virtual_run(run()):
        assert done == [f"fine-{number}" for number in range(40)]
    first, second = ([name for name in names if name.startswith("stuck")] for names in tried)
    assert len(first) == 16 and not set(first) & set(second), "those of the first time come last"
    assert telemetry.failures == {"ClusterUnavailable": 32, "LeftOut": 48}
