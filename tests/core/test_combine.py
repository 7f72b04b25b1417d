"""Combine proposals into one: which one wins, and what a missing metric forbids."""

from __future__ import annotations

import pytest

from trimtab.core.combine import combine, combined
from trimtab.core.model import Missing, Proposal, Reason
from trimtab.policy import Combine

MISSING = Missing(reason=Reason.NO_READY_PODS)


@pytest.mark.parametrize(
    "replicas, allowed",
    [
        pytest.param(4, True, id="scale-up is allowed"),
        pytest.param(3, True, id="keeping the replicas is allowed"),
        pytest.param(2, False, id="scale-down is not allowed"),
    ],
)
def test_a_missing_metric_forbids_scale_down_only(replicas: int, allowed: bool) -> None:
    proposals = [Proposal(source="cpu", replicas=replicas), Proposal(source="queue", replicas=MISSING)]
    assert combine(Combine.MAXIMUM, proposals, 3) == (proposals[0] if allowed else MISSING)


@pytest.mark.parametrize(
    "how, replicas",
    [(Combine.MAXIMUM, 9), (Combine.MINIMUM, 2), (Combine.MEAN, 5), (Combine.MEDIAN, 4)],
    ids=["maximum", "minimum", "mean", "median of an even count"],
)
def test_four_recommendations_become_one(how: Combine, replicas: int) -> None:
    assert combined([9, 3, 5, 2], how) == replicas
