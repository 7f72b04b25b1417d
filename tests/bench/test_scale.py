"""What the benchmark of a large fleet reads from the API server's audit log."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.growth import fill, settle
from benchmarks.scale.measure import Requests
from tests.virtual.cluster import Cluster


@pytest.mark.parametrize(
    ("codes", "scaled", "unanswered"),
    [
        pytest.param([200], 1, 0, id="answered"),
        pytest.param([504], 0, 1, id="given up midway"),
        pytest.param([504, 200], 1, 1, id="tried again"),
        pytest.param([409], 0, 0, id="refused"),
    ],
)
def test_a_scaling_without_an_answer_is_neither_done_nor_refused(
    codes: list[int], scaled: int, unanswered: int, tmp_path: Path
) -> None:
    """Otherwise a storm is waited for without an end: what is written is not written again."""
    log = tmp_path / "audit.log"
    log.touch()
    asked = Requests(log, "us")
    log.write_text("".join(_line(code, user) for code in codes for user in ("us", "others")))
    assert [scaling.key for scaling in asked.scalings()] == [("shop", "web")] * scaled
    assert [scaling.key for scaling in asked.unanswered()] == [("shop", "web")] * unanswered


def _line(code: int, user: str) -> str:
    about = {"resource": "deployments", "namespace": "shop", "name": "web", "subresource": "scale"}
    at = datetime.fromtimestamp(time.time() + 1, UTC).isoformat()
    event = {"user": {"username": user}, "verb": "patch", "objectRef": about, "requestReceivedTimestamp": at}
    return json.dumps(event | {"responseStatus": {"code": code}}, separators=(",", ":")) + "\n"


def test_growth_is_measured_at_rest() -> None:
    """A request budget that is used up by first statuses would count as the cost of a tick."""
    with Cluster(seed=1, api_per_s=0.5, api_burst=20.0) as cluster:
        fill(cluster, objects=40, pods=1)
        settle(cluster)
        settled_at = cluster.now()
        cluster.run(minutes=1)
        statuses = [asked for asked in cluster.server.audit if asked.at > settled_at and asked.path.endswith("status")]
    assert statuses == []
