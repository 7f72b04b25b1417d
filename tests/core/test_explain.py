"""Sentences a person can act on, and the conditions HPA users know."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.core.build import NOW, busy, custom_hpa, hpa, per_second, total
from trimtab.core.decide import decide
from trimtab.core.explain import _REASONS, _RULES, conditions, sentence, table
from trimtab.core.model import Change, Memory, Missing, Reason, RuleName, Veto
from trimtab.core.remember import first_sight, remember
from trimtab.policy import Admit, Axis, Mode

MINUTE = NOW - NOW % 60


def explained(policy, seen, memory) -> str:  # type: ignore[no-untyped-def]
    return sentence(policy, seen, memory, decide(policy, seen, memory))


def test_every_rule_and_every_absence_has_its_words() -> None:
    assert set(_RULES) == set(RuleName)
    assert set(_REASONS) == set(Reason)


def test_a_cooldown_is_named_with_its_end() -> None:
    policy = custom_hpa(up=(180, 0.1, 1.0))
    memory = remember(policy, Memory(), Change(was=2, replicas=4), MINUTE)
    text = explained(policy, total(4, 150, at=MINUTE + 30), memory)
    assert text == "4 replicas: query wants 6, cooldown until 22:16 UTC allows 4"


@pytest.mark.parametrize(
    "policy, seen, memory, text",
    [
        pytest.param(hpa(50), busy(4, 0.9), Memory(), "8 replicas: cpu wants 8", id="growing"),
        pytest.param(
            hpa(50, most=6),
            busy(4, 0.9),
            Memory(),
            "6 replicas: cpu wants 8, maxReplicas is 6",
            id="capped",
        ),
        pytest.param(
            hpa(50),
            busy(4, 0.1, at=MINUTE),
            first_sight(MINUTE - 60, 4),
            "4 replicas: cpu wants 1, stabilisation until 22:17 UTC allows 4",
            id="stabilised",
        ),
        pytest.param(hpa(50, admit=Admit(mode=Mode.PAUSED)), busy(1, 0.9), Memory(), "1 replica: paused", id="paused"),
        pytest.param(
            per_second(10),
            replace(total(3, 0), samples=(Missing(reason=Reason.UNREACHABLE, detail="http://prometheus"),)),
            Memory(),
            "3 replicas: requests_per_second: the source does not answer (http://prometheus), "
            "metrics are missing (Unreachable), the size is kept",
            id="missing",
        ),
    ],
)
def test_sentences(policy, seen, memory, text) -> None:  # type: ignore[no-untyped-def]
    assert explained(policy, seen, memory) == text


def test_the_table_lists_every_proposal_and_every_rule() -> None:
    decision = decide(hpa(50, most=6), busy(4, 2.0), Memory())
    rows = [(row.what, row.before, row.after) for row in table(decision)]
    assert rows == [("cpu", "200/50", "16"), ("replicas", "16", "8"), ("replicas", "8", "6")]


def test_conditions_of_a_rescale() -> None:
    policy, seen = hpa(50, most=6), busy(4, 2.0)
    decision = decide(policy, seen, Memory())
    found = {one.type: (one.status, one.reason) for one in conditions(policy, seen, Memory(), decision)}
    assert found == {
        "AbleToScale": (True, "SucceededRescale"),
        "ScalingActive": (True, "ValidMetricFound"),
        "ScalingLimited": (True, "TooManyReplicas"),
        "ScaledToZero": (False, "NotScaledToZero"),
    }


def test_a_veto_is_named_by_its_own_reason() -> None:
    veto = Veto(axis=Axis.REPLICAS, direction=None, reason="Conflict", detail="an HPA moves it too")
    seen = replace(busy(4, 2.0), vetoes=(veto,))
    decision = decide(hpa(50), seen, Memory())
    found = {one.type: one for one in conditions(hpa(50), seen, Memory(), decision)}
    able = found["AbleToScale"]
    assert (able.status, able.reason, able.message) == (False, "Conflict", "an HPA moves it too")


def test_conditions_of_a_failure_name_the_metric() -> None:
    policy = per_second(10)
    seen = replace(total(3, 0), samples=(Missing(reason=Reason.UNREACHABLE),))
    decision = decide(policy, seen, Memory())
    found = {one.type: (one.status, one.reason) for one in conditions(policy, seen, Memory(), decision)}
    assert found["ScalingActive"] == (False, "FailedGetExternalMetric")
