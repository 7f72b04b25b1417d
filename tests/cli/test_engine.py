"""Where work is done: here, on this machine's cores, on the workers of a Dask cluster; the answers are the same."""

from __future__ import annotations

import asyncio
import builtins
import copy
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from trimtab.advisor.run import Advised, ChunkWorkers, Failed, advise_all
from trimtab.advisor.targets import AdvisedTarget
from trimtab.advisor.workloads import HistoryWindow
from trimtab.cli import main
from trimtab.cli.workers import EngineOptions
from trimtab.core.model import Pod
from trimtab.errors import InvalidInput, InvalidObject, NotEnoughData, Refused, TrimtabError
from trimtab.history.files import Files
from trimtab.policy import Advice, Inspection, Size
from trimtab.series import Frame
from trimtab.tune.proven_advice import AdviceTerms

RULES = Inspection(advice=Advice.BOTH)
TERMS = AdviceTerms(32.0, 120.0)
START = 1_700_006_400.0  # a midnight


def half(number: int) -> float:
    if number % 2:
        raise NotEnoughData(f"{number} is odd")
    return number / 2


@pytest.mark.parametrize("count", [pytest.param(2, id="here"), pytest.param(5, id="on all cores")])
def test_one_that_fails_costs_nobody_else_an_answer(count: int) -> None:
    answers = list(EngineOptions().each(half, [(number,) for number in range(count)]))
    assert answers[::2] == [number / 2 for number in range(0, count, 2)]
    assert [str(answer) for answer in answers[1::2]] == [f"{number} is odd" for number in range(1, count, 2)]


def test_a_scheduler_needs_its_engine() -> None:
    with pytest.raises(InvalidInput, match="--scheduler: 'tcp://a:1': it belongs to --engine dask"):
        next(EngineOptions(scheduler="tcp://a:1").each(half, [(2,)]))


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "distributed":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(InvalidInput, match=r"trimtab\[dask\]"):
        next(EngineOptions("dask").each(half, [(2,)]))


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("spec.a", 3, "write a word"),
        InvalidObject("Hvpa/web", [InvalidInput("spec.a", 3, "write a word"), InvalidInput("spec.b", 4, "or two")]),
        Refused("no", 403),
        NotEnoughData("too little"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes(error: TrimtabError) -> None:
    again = copy.copy(error)  # as pickle does it
    assert type(again) is type(error) and str(again) == str(error)
    assert {**again.__dict__, "problems": ()} == {**error.__dict__, "problems": ()}


# --- on a real Dask cluster ------------------------------------------------------------------------------------------


class DiesOnce:
    """Advice that takes its worker with it the first time it comes to one workload."""

    def __init__(self, mark: Path, victim: str) -> None:
        self.mark, self.victim = mark, victim

    def __call__(self, rules: Inspection, workload: Any, at: float) -> Any:
        if workload.name == self.victim and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return TERMS.prove(rules, workload, at)


def dies_always(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="needs trimtab[dask]")
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


def targets(count: int) -> list[AdvisedTarget]:
    return [
        AdvisedTarget(
            "apps/v1",
            "Deployment",
            "shop",
            f"web-{index}",
            4,
            {"app": Size(cpu_cores=1.0, memory_bytes=2.0**30)},
            (Pod(name=f"web-{index}-0", started_at=START, ready_since=START),),
        )
        for index in range(count)
    ]


def fleet(count: int) -> tuple[Files, HistoryWindow]:
    """Three days of a wave for each."""
    times = np.arange(3 * 1440) / 1440
    rows = np.array([2 + np.sin(2 * np.pi * (times + index / count)) for index in range(count)])
    names = tuple(f"shop/Deployment/web-{index}" for index in range(count))
    knows = frozenset([("cpu", "workload")])
    window = HistoryWindow(START, START + 3 * 86400, knows=knows)  # type: ignore[arg-type]
    return Files({"cpu": Frame(names, START, 60.0, rows)}), window


async def advised(count: int, judge: Any, workers: ChunkWorkers) -> list[Advised]:
    source, window = fleet(count)
    chunks = advise_all(RULES, targets(count), source, window, window.end, judge, workers)
    return [outcome async for some in chunks for outcome in some]


@pytest.mark.dask
def test_advice_is_the_same_to_the_bit_though_a_worker_is_killed_midway(scheduler: str, tmp_path: Path) -> None:
    count, mark = 110, tmp_path / "died"  # two chunks
    here = asyncio.run(advised(count, TERMS.prove, ChunkWorkers()))
    with EngineOptions("dask", scheduler).executor(3) as executor:
        there = asyncio.run(advised(count, DiesOnce(mark, "web-105"), ChunkWorkers(executor, 8)))
    assert mark.exists() and not any(isinstance(outcome.result, Failed) for outcome in there)
    assert [outcome.target.name for outcome in there] == [f"web-{index}" for index in range(count)]
    assert [outcome[1:] for outcome in there] == [outcome[1:] for outcome in here]  # pods are equal only to themselves


@pytest.mark.dask
def test_a_job_that_ends_every_worker_is_given_up_alone(scheduler: str) -> None:
    answers = list(EngineOptions("dask", scheduler).each(dies_always, [(0,), (1,), (2,)]))
    assert (answers[0], answers[2]) == (0, 2)
    assert isinstance(answers[1], TrimtabError) and "ended several workers" in str(answers[1])


@pytest.mark.dask
def test_commands_say_the_same_with_either_engine(scheduler: str, tmp_path: Path) -> None:
    folder = Path(__file__).parents[2] / "examples/007-history"
    files = ("-f", str(folder / "hpa.yaml"), "-f", str(folder / "web-deployment.yaml"))
    load = ("--load", str(folder / "cpu.csv"))
    commands = (
        ("recommend", "--history", str(folder / "cpu.csv"), "-f", str(folder), "-o", "json"),
        ("tune", *files, *load, "-o", "json"),
        ("backtest", *files, *load, "-o", "json"),
    )
    for command in commands:
        said = [
            CliRunner().invoke(main, [*command, *engine]).stdout
            for engine in ((), ("--engine", "dask", "--scheduler", scheduler))
        ]
        assert said[0] == said[1] and json.loads(said[0]), command[0]


@pytest.mark.dask
def test_a_scheduler_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="needs trimtab[dask]")
    monkeypatch.setattr("trimtab.cli.workers.DASK_TIMEOUT_S", 1)
    with pytest.raises(TrimtabError, match="no Dask scheduler answers"):
        next(EngineOptions("dask", "tcp://127.0.0.1:9").each(half, [(2,)]))
