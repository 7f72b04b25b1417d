"""Objects become policies: when they are compiled again, and what overrules their mode."""

from __future__ import annotations

import pytest

from tests.live.build import AT, AUTOSCALERS, custom, spec
from trimtab.errors import InvalidInput
from trimtab.live.look.subject import ChangeRules, Compiler
from trimtab.policy import Admit, Mode, PodRules, Size, Stabilise, StabiliseMax

PINNED = {"annotations": {"trimtab.dev/pin": "6"}}


def test_the_same_object_is_compiled_once_an_hour() -> None:
    compiler, found = Compiler(), custom(spec=spec())
    first = compiler.subject(AUTOSCALERS, found, True, AT)
    assert compiler.subject(AUTOSCALERS, found, True, AT + 1).target is first.target
    assert compiler.subject(AUTOSCALERS, found, True, AT + 3600).target is not first.target


def test_an_edit_of_spec_or_annotations_counts_at_once() -> None:
    compiler = Compiler()
    compiler.subject(AUTOSCALERS, custom(spec=spec()), True, AT)
    edited = compiler.subject(AUTOSCALERS, custom(spec=spec(maxReplicas=20)), True, AT)
    assert edited.policy.bounds.max_replicas == 20
    pinned = compiler.subject(AUTOSCALERS, custom(spec=spec(maxReplicas=20), metadata=PINNED), True, AT)
    assert pinned.policy.admit.pin == 6


def test_what_cannot_be_meant_is_found_once_and_said_each_time() -> None:
    compiler, bad = Compiler(), custom(spec=spec(maxReplicas=-1))

    def refusal(at: float) -> InvalidInput:
        with pytest.raises(InvalidInput) as raised:
            compiler.subject(AUTOSCALERS, bad, True, at)
        return raised.value

    first = refusal(AT)
    assert refusal(AT + 15) is first and refusal(AT + 3600) is not first
    assert compiler.subject(AUTOSCALERS, custom(spec=spec()), True, AT).policy.bounds.max_replicas > 0, "mended at once"
    compiler.forget(set())
    assert refusal(AT + 3600) is not first


@pytest.mark.parametrize(
    ("shadow", "enabled", "mode", "is_"),
    [
        pytest.param(False, True, "Auto", Admit(pin=6), id="as written"),
        pytest.param(False, False, "Auto", Admit(mode=Mode.PAUSED), id="its namespace opted out"),
        pytest.param(True, True, "Auto", Admit(mode=Mode.SHADOW), id="--shadow, the pin included"),
        pytest.param(True, True, "Paused", Admit(mode=Mode.PAUSED, pin=6), id="--shadow leaves a pause"),
    ],
)
def test_what_overrules_the_mode(shadow: bool, enabled: bool, mode: str, is_: Admit) -> None:
    found = custom(spec=spec(mode=mode), metadata=PINNED)
    assert Compiler(shadow).subject(AUTOSCALERS, found, enabled, AT).policy.admit == is_


def test_a_bad_object_says_where_each_time() -> None:
    compiler = Compiler()
    for _ in range(2):
        with pytest.raises(InvalidInput, match="minReplicas"):
            compiler.subject(AUTOSCALERS, custom(spec=spec(minReplicas=99)), True, AT)


def test_prudence_is_the_operators_and_only_for_requests() -> None:
    least = Size(cpu_cores=0.025, memory_bytes=250 * 2.0**20)
    compiler = Compiler(change_rules=ChangeRules(up_after_s=5.0, floor=least))
    vertical = compiler.subject(AUTOSCALERS, custom(spec=spec(vertical={})), True, AT).policy.vertical
    assert vertical is not None and vertical.up_after_s == 5.0 and vertical.down_after_s == 86400.0
    assert vertical.floor == least
    usual = Compiler().subject(AUTOSCALERS, custom(spec=spec(vertical={})), True, AT).policy.vertical
    assert usual is not None and usual.floor == Size(cpu_cores=0.010, memory_bytes=32 * 2**20)
    assert compiler.subject(AUTOSCALERS, custom("b", spec=spec()), True, AT).policy.vertical is None


def test_the_window_of_the_operator_holds_where_no_behavior_says_so() -> None:
    compiler = Compiler(change_rules=ChangeRules(downscale_s=60.0))
    bare = compiler.subject(AUTOSCALERS, custom(spec=spec()), True, AT).policy
    assert bare.settle[0] == StabiliseMax(window_s=60.0)
    own = compiler.subject(AUTOSCALERS, custom("b", spec=spec(behavior={})), True, AT).policy
    assert Stabilise(up_s=0.0, down_s=300.0) in own.settle


def test_the_operator_says_which_pods_are_young() -> None:
    compiler = Compiler(change_rules=ChangeRules(cpu_init_s=25.0, readiness_delay_s=2.5))
    young = PodRules(cpu_init_s=25.0, readiness_delay_s=2.5)
    assert compiler.subject(AUTOSCALERS, custom(spec=spec()), True, AT).policy.pods == young
    assert Compiler().subject(AUTOSCALERS, custom(spec=spec()), True, AT).policy.pods == PodRules()
