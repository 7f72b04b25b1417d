"""docs/architecture.md walks five ways through the program: every hop exists, and a run calls them in this order."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from types import FrameType
from typing import Any

import numpy as np
import pytest
import yaml
from aiohttp import web
from click.testing import CliRunner

from tests.advisor.workloads import END, target
from tests.tune.test_one_answer import Workload, night_of, page_of
from tests.wire.fake import Fake
from trimtab.advisor.ranking import Prices, rank
from trimtab.advisor.run import Advised, advise_all
from trimtab.advisor.workloads import HistoryWindow
from trimtab.cli import main
from trimtab.cli.recommend_table import table
from trimtab.core.advise import WorkloadAdvice
from trimtab.core.model import Pod
from trimtab.history.workload_history import WorkloadHistory
from trimtab.policy import Advice, Inspection
from trimtab.tune.proven_advice import AdviceTerms
from trimtab.wire.access import Access
from trimtab.wire.prometheus import Prometheus

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
MOST = 15
DAYS = 3
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
SPEC = {
    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
    "minReplicas": 2,
    "maxReplicas": 40,
    "metrics": [CPU],
}
WEB_TARGET = target("web", pods=(Pod(name="web-5d-abc", started_at=0.0, ready_since=0.0),))
LOAD = 5.0 + 4.0 * np.sin(2 * np.pi * np.arange(DAYS * 1440) / 1440)
WEB = Workload("HorizontalPodAutoscaler", SPEC, LOAD.astype(np.float32).astype(np.float64), 1.0, None, 60.0, 32.0)


def hops(title: str) -> list[str]:
    section = PAGE.read_text().partition(f"## {title}")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w.]+)`", section, re.MULTILINE)


def calls_of(run: Callable[[], object]) -> list[str]:
    """Functions of ours, in the order of their first call, in any thread."""
    called: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_globals.get("__name__", "").startswith("trimtab."):
            called.setdefault(f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(called)


async def prometheus(request: web.Request) -> web.Response:
    """One Deployment's pods, their owners, and a wave of CPU."""
    asked: dict[str, Any] = {**request.query, **await request.post()}
    if request.path.endswith("/series"):
        pods = {"pod": "web-5d-abc", "owner_kind": "ReplicaSet", "owner_name": "web-5d"}
        sets = {"replicaset": "web-5d", "owner_kind": "Deployment", "owner_name": "web"}
        matched = "".join(map(str, asked.values()))
        return web.json_response(
            {"status": "success", "data": [{"namespace": "shop"} | (pods if "kube_pod" in matched else sets)]}
        )
    first, end, step_s = (float(asked[name]) for name in ("start", "end", "step"))
    times = np.arange(first, end + 1, step_s)
    values = [[at, f"{5.0 + 4.0 * np.sin(2 * np.pi * at / 86400):.3f}"] for at in times.tolist()]
    labels = {"namespace": "shop", "stem": "web-5d", "pod": "web-5d-abc", "container": "app"}
    data = {"resultType": "matrix", "result": [{"metric": labels, "values": values}]}
    return web.json_response({"status": "success", "data": data})


def recommend() -> None:
    rules, window = Inspection(advice=Advice.BOTH), HistoryWindow(END - DAYS * 86400, END)

    async def run() -> list[Advised]:
        async with Fake(prometheus) as server, Prometheus(Access(server.url)) as client:
            source, judge = WorkloadHistory(client), AdviceTerms(32.0, 60.0).prove
            return [one async for some in advise_all(rules, [WEB_TARGET], source, window, END, judge) for one in some]

    outcomes = asyncio.run(run())
    assert isinstance(outcomes[0].result, WorkloadAdvice), outcomes[0].result
    assert table(rank(outcomes, Prices()), rules).row_count == 1


@pytest.fixture
def files(tmp_path: Path) -> Path:
    rows = "".join(f"{60 * minute},{value!r}\n" for minute, value in enumerate(WEB.load.tolist()))
    (tmp_path / "load.csv").write_text(f"timestamp,value\n{rows}")
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(WEB.manifest))
    return tmp_path


def backtest(files: Path) -> None:
    done = CliRunner().invoke(
        main, ["backtest", "-f", f"{files}/web.yaml", "--load", f"{files}/load.csv", "-o", "json"]
    )
    assert json.loads(done.stdout)["policies"][0]["violations"] < 50.0


WALKS: dict[str, Callable[[Path], object]] = {
    "Prometheus history, to a row of `recommend`": lambda files: recommend(),
    "A CSV file, to a row of `backtest`": backtest,
    "What-if": lambda files: page_of(WEB, "whatif", target=0.6),
    "A night": lambda files: night_of(WEB),
}


@pytest.mark.parametrize("title", WALKS)
def test_a_run_takes_every_hop_in_this_order(title: str, files: Path) -> None:
    named = hops(title)
    assert 5 < len(named) <= MOST and all(callable(resolve_name(hop)) for hop in named)
    called = calls_of(lambda: WALKS[title](files))
    assert [hop for hop in named if hop not in called] == []
    assert sorted(named, key=called.index) == named
