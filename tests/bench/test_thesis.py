"""Predictive HPA's evaluation: its traffic patterns, and the statistics of two runs."""

from __future__ import annotations

import numpy as np
import pytest

from trimtab.bench import thesis

RAMP = (thesis.Segment(1, 1, 60), thesis.Segment(1, 11, 100), thesis.Segment(5, 5, 40))


def test_a_profile_has_a_length() -> None:
    assert thesis.duration_s(RAMP) == 200


@pytest.mark.parametrize("second, rate", [(0, 1), (59.9, 1), (60, 1), (110, 6), (160, 5), (199, 5), (200, 0)])
def test_rate_at(second: float, rate: float) -> None:
    assert thesis.rate_at(RAMP, second) == pytest.approx(rate)


@pytest.mark.parametrize("name", sorted(thesis.PROFILES))
def test_the_integral_of_the_rate_is_the_number_of_requests(name: str) -> None:
    profile = thesis.PROFILES[name]
    seconds = np.arange(0, thesis.duration_s(profile), 0.5) + 0.25
    requests = sum((segment.start_rps + segment.end_rps) / 2 * segment.seconds for segment in profile)
    assert sum(thesis.rate_at(profile, second) for second in seconds) * 0.5 == pytest.approx(requests)


def test_scores_are_normalised_over_both_runs_and_low_is_good() -> None:
    ours, theirs = thesis.scores(np.array([[10.0, 1.0], [10.0, 1.0]]), np.array([[20.0, 3.0], [20.0, 3.0]]))
    assert ours == pytest.approx([2.0, 2.0])
    assert theirs == pytest.approx([-2.0, -2.0])
    only_idle, _ = thesis.scores(np.array([[10.0, 1.0]]), np.array([[20.0, 3.0]]), weights=(1.0, 0.0))
    assert only_idle == pytest.approx([1.0])


def test_compare_gives_the_published_statistics_and_the_missing_test() -> None:
    trial = thesis.compare(np.array([1.0, 2.0, 3.0, 4.0]), np.zeros(4))
    assert (trial.n, trial.mean, trial.std) == (4, 2.5, pytest.approx(1.118034))
    assert (trial.z, trial.p) == pytest.approx((2.236068, 0.012674), abs=1e-6)
    assert (trial.paired_t, trial.paired_p) == pytest.approx((3.872983, 0.0000538), abs=1e-6)


def test_equal_runs_say_nothing() -> None:
    trial = thesis.compare(np.ones(5), np.ones(5))
    assert (trial.mean, trial.z, trial.p, trial.paired_t) == (0.0, 0.0, 0.5, 0.0)
