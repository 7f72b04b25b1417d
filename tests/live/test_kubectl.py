"""kubectl trimtab: which object is meant, what is noted on it, what is listed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner

from tests.live.memory_api import MemoryApi
from trimtab.cli import COMMANDS, status
from trimtab.cli.kubectl import (
    MANAGER,
    FoundObject,
    StatusRow,
    annotate,
    find,
    plugin,
    status_row,
    status_rows,
    types,
)
from trimtab.errors import InvalidInput
from trimtab.kinds.annotations import ORIGINAL_FLOOR, PAUSED, PIN, PIN_UNTIL, RAISED_FLOOR
from trimtab.wire.decode import decode
from trimtab.wire.objects import Custom

AUTOSCALER = "/apis/trimtab.dev/v1alpha1/namespaces/shop/autoscalers/web"
HPA = "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers/web"


def manifest(version: str, kind: str, notes: dict[str, str], **more: Any) -> dict[str, Any]:
    meta = {"name": "web", "namespace": "shop", "annotations": notes}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": spec} | more


def shop(hpa_notes: dict[str, str] | None = None) -> MemoryApi:
    """An Autoscaler web, and where notes are given an HPA of the same name."""
    api = MemoryApi()
    api.put(AUTOSCALER, manifest("trimtab.dev/v1alpha1", "Autoscaler", {"team": "a"}))
    if hpa_notes is not None:
        api.put(HPA, manifest("autoscaling/v2", "HorizontalPodAutoscaler", hpa_notes))
    return api


def found(api: MemoryApi, text: str) -> str:
    async def ask() -> str:
        async with api.kube() as kube:
            return (await find(kube, text, "shop")).resource.plural

    return asyncio.run(ask())


@pytest.mark.parametrize("text", ["web", "autoscaler/web", "asc/web", "Autoscaler/web", "autoscalers.trimtab.dev/web"])
def test_an_object_is_found_as_kubectl_finds_it(text: str) -> None:
    assert found(shop({}), text) == "autoscalers"  # the HPA of that name is none of ours


def test_a_predictive_hpa_is_one_of_ours() -> None:
    assert found(shop({"predictive": "true"}), "hpa/web") == "horizontalpodautoscalers"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("web", "say which: autoscalers/web, horizontalpodautoscalers/web", id="two of one name"),
        pytest.param("other", "check -n and the name", id="unknown name"),
        pytest.param("deployment/web", "write one of", id="unknown type"),
    ],
)
def test_what_cannot_be_meant_is_named(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        found(shop({"predictive": "true"}), text)


def test_an_hpa_that_nobody_annotated_is_not_touched() -> None:
    with pytest.raises(InvalidInput, match="not annotated predictive=true"):
        found(shop({}), "hpa/web")


def test_notes_come_and_go_and_leave_the_users_own() -> None:
    api = shop()

    async def note(**notes: str | None) -> dict[str, str]:
        async with api.kube() as kube:
            await annotate(kube, await find(kube, "web", "shop"), {PIN: notes["pin"], PIN_UNTIL: None})
        return dict(api.objects[AUTOSCALER]["metadata"]["annotations"])

    assert asyncio.run(note(pin="4")) == {"team": "a", PIN: "4"}
    assert asyncio.run(note(pin=None)) == {"team": "a"}


def test_a_note_is_its_users_word_and_not_the_operators() -> None:
    api = shop()

    async def managers() -> set[str]:
        async with api.kube() as kube:
            await annotate(kube, await find(kube, "web", "shop"), {PIN: "4"})
            body = json.loads(await kube.raw(AUTOSCALER))
            return {entry["manager"] for entry in body["metadata"]["managedFields"]}

    assert MANAGER in (written := asyncio.run(managers())) and "trimtab" not in written


def test_the_status_says_what_holds_an_object() -> None:
    api = shop({"team": "a"})
    body = manifest("trimtab.dev/v1alpha1", "Autoscaler", {PAUSED: "true", PIN: "4"})
    body["status"] = {"currentReplicas": 3, "desiredReplicas": 4, "sized": "2/3", "lastDecision": "4 replicas: pinned"}
    body["status"]["conditions"] = [
        {"type": "Ready", "status": "True", "reason": "Running"},
        {"type": "ResizePending", "status": "True", "reason": "Deferred", "message": "pod web-1: Deferred"},
    ]
    api.put(AUTOSCALER, body)

    async def rows() -> list[StatusRow]:
        async with api.kube() as kube:
            return [row async for row in status_rows(kube, "")]

    assert asyncio.run(rows()) == [
        StatusRow(
            namespace="shop",
            object="Autoscaler/web",
            ready="True",
            current="3",
            desired="4",
            sized="2/3",
            held="paused, pinned to 4, pod web-1: Deferred",
            decision="4 replicas: pinned",
        )
    ]


def test_an_annotated_hpa_is_listed_with_the_floor_that_we_raised() -> None:
    api = shop({"predictive": "true", RAISED_FLOOR: "6", ORIGINAL_FLOOR: "2"})
    body = manifest("trimtab.dev/v1alpha1", "Autoscaler", {})
    body["status"] = {"conditions": [{"type": "AbleToScale", "status": "False", "reason": "Conflict"}]}
    api.put(AUTOSCALER, body)

    async def rows() -> list[StatusRow]:
        async with api.kube() as kube:
            return [row async for row in status_rows(kube, "shop")]

    held = {row.object: row.held for row in asyncio.run(rows())}
    assert held == {"Autoscaler/web": "Conflict", "HorizontalPodAutoscaler/web": "floor 6 instead of 2"}


@pytest.mark.parametrize(
    "conditions, ready, decision",
    [
        ([], "Unknown", "no operator has looked at it yet"),
        (
            [{"type": "Ready", "status": "False", "reason": "InvalidSpec", "message": "spec.maxReplicas: -1"}],
            "False",
            "InvalidSpec: spec.maxReplicas: -1",
        ),
    ],
)
def test_the_status_says_why_an_object_is_not_served(conditions: list[Any], ready: str, decision: str) -> None:
    body = manifest("trimtab.dev/v1alpha1", "Autoscaler", {})
    body["status"] = {"conditions": conditions, "lastDecision": "4 replicas: before the edit"}
    resource = types()["autoscaler"]
    found = status_row(FoundObject(resource, decode(json.dumps(body).encode(), Custom)))
    assert found.ready == ready and found.decision.startswith(decision) and found.held == ""


def test_the_status_is_for_programs_too(capsys: pytest.CaptureFixture[str]) -> None:
    row = StatusRow("shop", "Autoscaler/web", "True", "3", "4", "", "paused", "")
    status.show([row], "json")
    assert json.loads(capsys.readouterr().out) == [row._asdict()]
    status.show([], "json")
    assert json.loads(capsys.readouterr().out) == []


def test_trimtab_itself_lists_them_too() -> None:
    assert COMMANDS["status"] and plugin.commands["status"] is status.command


def test_every_word_of_the_plugin_has_its_help() -> None:
    words = ("explain", "why", "status", "pin", "pause", "resume", "tuning", "freeze", "unfreeze")
    assert set(plugin.commands) == set(words)
    for word in words:
        shown = CliRunner().invoke(plugin, [word, "--help"]).output
        assert "--context" in shown and "--kubeconfig" in shown and "-n, --namespace" in shown
