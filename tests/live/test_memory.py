"""What is remembered in the status comes back; what cannot be read starts anew, and safely."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from trimtab.core.model import ContainerSize, Memory
from trimtab.live.look import memory as module
from trimtab.live.look.memory import ObjectMemory, Quarrel, ReplicasWritten
from trimtab.policy import Size

FULL = ObjectMemory(
    core=Memory(wanted=((1.0, 3),), grown=((5.0, 2),), up_at=5.5, zeroed=True),
    wrote=ReplicasWritten(was=1, replicas=3, at=5.5),
    sizes={"app": ContainerSize(requests=Size(cpu_cores=0.25))},
    quarrels={
        "replicas": Quarrel(by="argocd", until=99.0, generation=1, moments=(1.0, 2.0, 3.0)),
        "sizes": Quarrel(by="flux", generation=2, moments=(1.0,)),
    },
)


def test_everything_but_the_wishes_comes_back_through_json() -> None:
    status = {"memory": json.loads(json.dumps(module.written(FULL)))}
    found = module.read(status, at=100.0, replicas=7)
    assert found.core.wanted == ((100.0, 7),), "windows start again with the replicas in force"
    assert (found.core.grown, found.core.up_at, found.core.zeroed) == (((5.0, 2),), 5.5, True)
    assert (found.wrote, found.sizes, found.quarrels) == (FULL.wrote, FULL.sizes, FULL.quarrels)


def test_what_is_empty_is_not_shown() -> None:
    assert module.written(ObjectMemory(core=Memory(up_at=5.5))) == {
        "is": "Kept",
        "version": 1,
        "core": {"is": "Memory", "version": 1, "up_at": 5.5, "overloaded": False, "zeroed": False, "bridge": 1.0},
        "bridge_resizes": 0,
    }


def test_a_wish_alone_is_no_reason_to_write() -> None:
    later = replace(FULL, core=replace(FULL.core, wanted=((2.0, 9),)))
    assert module.written(later) == module.written(FULL)


def test_what_is_of_another_version_or_spoiled_starts_anew() -> None:
    for memory in ({"is": "Kept", "version": 99}, {"core": "nonsense"}, None):
        found = module.read({"memory": memory}, at=100.0, replicas=7)
        assert found == ObjectMemory(core=Memory(wanted=((100.0, 7),), planned=((100.0, 7),)))


@pytest.mark.parametrize("memory", [{"is": "Kept", "version": 99, "core": []}, "nonsense", None])
def test_of_a_memory_we_cannot_read_the_rest_of_the_status_tells(memory: object) -> None:
    asleep = {"type": "ScaledToZero", "status": "True"}
    status = {"memory": memory, "lastScaleTime": "2026-01-01T00:00:00Z", "conditions": [asleep]}
    found = module.read(status, at=2e9, replicas=0).core
    assert (found.up_at, found.down_at, found.resized_at) == (1767225600.0,) * 3, "no cooldown is cut short"
    assert found.zeroed and not module.read(status, at=2e9, replicas=3).core.zeroed
    of_an_hvpa = {"memory": memory, "lastScaling": {"lastScaleTime": "2026-01-01T00:00:00Z"}}
    assert module.read(of_an_hvpa, at=2e9, replicas=0).core.up_at == 1767225600.0
