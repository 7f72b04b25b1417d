"""One load, policy, pods and yardstick have one answer: in backtest, tune, recommend, a night, what-if and Advice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import yaml
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab.cli import main
from trimtab.core.model import Pod
from trimtab.core.nights import NightCase, Verdict
from trimtab.core.overload import Yardstick, of_pods
from trimtab.journal import ObjectName
from trimtab.kinds import Scaler, read
from trimtab.policy import Objective, Policy, Size, Tuning, TuningMode
from trimtab.series import Floats
from trimtab.sim.generate import LoadShape, generate
from trimtab.tune.night import find
from trimtab.web.packing import PageTable
from trimtab.web.sources import derived

DAYS = (4, 8)  # with less than a week, nothing may move far
START = 1_700_006_400.0  # a midnight
JUDGED = ("j", "cost", "violations", "churn_per_day")
PRINTED = 6  # significant digits of the figures that `recommend -o json` prints


class Workload(NamedTuple):
    """A scaler's manifest, its load by the minute in cores, and what its pods request and may use at most."""

    kind: str
    spec: dict[str, Any]
    load: Floats
    request: float
    limit: float | None
    startup_s: float
    price: float

    @property
    def manifest(self) -> dict[str, Any]:
        version = {"Autoscaler": "trimtab.dev/v1alpha1"}.get(self.kind, "autoscaling/v2")
        return {"apiVersion": version, "kind": self.kind, "metadata": {"name": "web"}, "spec": self.spec}

    @property
    def deployment(self) -> dict[str, Any]:
        limits = {} if self.limit is None else {"limits": {"cpu": f"{self.limit:g}"}}
        resources = {"requests": {"cpu": f"{self.request:g}"}} | limits
        container = {"name": "app", "image": "web", "resources": resources}
        spec = {"replicas": 4, "template": {"spec": {"containers": [container]}}}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}

    @property
    def pod(self) -> Yardstick:
        limits = {} if self.limit is None else {"": self.limit}
        pod = Pod(name="web", requests=Size(cpu_cores=self.request), cpu_limits=limits)
        found = of_pods(self.policy, self.policy.signals[0], (pod,))
        assert isinstance(found, Yardstick)
        return found

    @property
    def policy(self) -> Policy:
        scaler = read(self.manifest)
        assert isinstance(scaler, Scaler)
        return scaler.to_policy(START)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    request = draw(st.sampled_from((0.25, 0.5, 1.0, 2.0)))
    shape = LoadShape(
        peak=request * draw(st.floats(3.0, 25.0)),
        valley=draw(st.floats(0.1, 0.9)),
        noise=draw(st.floats(0.0, 0.1)),
        days=draw(st.sampled_from(DAYS)),
        bursts_a_day=draw(st.sampled_from((0, 4))),
        seed=draw(st.integers(0, 99)),
    )
    load = np.round(generate(shape).reshape(-1, 4).mean(axis=1) * 1024) / 1024  # a journal keeps 32 bits
    if draw(st.booleans()):
        first = draw(st.integers(10, len(load) - 200))
        load[first : first + draw(st.integers(1, 150))] = np.nan  # nobody knows the load
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": draw(st.integers(30, 95))}}
    spec: dict[str, Any] = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": draw(st.integers(1, 4)),
        "maxReplicas": draw(st.integers(20, 60)),
        "metrics": [{"type": "Resource", "resource": cpu}],
    }
    if draw(st.booleans()):
        spec["behavior"] = {"scaleDown": {"stabilizationWindowSeconds": draw(st.sampled_from((60, 300, 1200)))}}
    kind = draw(st.sampled_from(("HorizontalPodAutoscaler", "Autoscaler")))
    if kind == "Autoscaler":
        spec["bridge"] = {"maxFactor": "1.5"}
    price = draw(st.sampled_from((8.0, 32.0, 128.0)))
    times = draw(st.sampled_from((None, 1.0, 1.25, 2.0)))  # no limit, Guaranteed, burstable a little, and much
    limit = None if times is None else times * request
    return Workload(kind, spec, load, request, limit, draw(st.sampled_from((30.0, 120.0, 300.0))), price)


class Commands(NamedTuple):
    """Runs what a user types, on files in a folder."""

    workload: Workload
    folder: Path

    def write(self, name: str, *manifests: dict[str, Any]) -> Path:
        path = self.folder / name
        path.write_text(yaml.safe_dump_all(manifests))
        return path

    def csv(self, column: str = "value") -> Path:
        minutes = enumerate(self.workload.load.tolist())
        lines = [f"{START + 60 * minute:.0f},{value!r}" for minute, value in minutes if value == value]
        path = self.folder / "load.csv"
        path.write_text("\n".join((f"timestamp,{column}", *lines, "")))
        return path

    def run(self, *words: object) -> Any:
        terms = ("--startup", f"{self.workload.startup_s:g}s", "--objective", f"{self.workload.price:g}")
        done = CliRunner().invoke(main, [*map(str, words), *terms, "-o", "json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    def backtest(self, manifest: dict[str, Any]) -> dict[str, float]:
        files = "-f", self.write("judged.yaml", manifest, self.workload.deployment)
        (told,) = self.run("backtest", *files, "--load", self.csv())["policies"]
        return told | {"churn_per_day": told["churn"]}

    def tune(self) -> dict[str, Any]:
        files = "-f", self.write("tuned.yaml", self.workload.manifest, self.workload.deployment)
        return self.run("tune", *files, "--load", self.csv())

    def recommend(self) -> dict[str, Any]:
        files = "-f", self.write("advised.yaml", self.workload.manifest, self.workload.deployment)
        (told,) = self.run("recommend", "--history", self.csv(), *files)
        return told


def night_of(workload: Workload) -> Verdict:
    return find(
        NightCase(
            uid="web",
            workload="shop/web",
            policy=replace(workload.policy, tuning=Tuning(mode=TuningMode.NIGHTLY)),
            start=START,
            demand=workload.load.astype(np.float32).tobytes(),
            pod=workload.pod,
            startup_s=workload.startup_s,
        )
    )


def page_of(workload: Workload, question: str, **knobs: float) -> Any:
    """What the dashboard answers from a journal of this workload."""
    count = len(workload.load)
    about = {
        "name": ObjectName(workload.kind, "shop", "web")._asdict(),
        "policy": msgspec.to_builtins(workload.policy),
        "unit": "cores",
        "startup": [[0.5, workload.startup_s]],
        "pod": msgspec.to_builtins(workload.pod),
    }
    columns: dict[str, Any] = {
        "at": START + 60.0 * np.arange(count),
        "load": workload.load.astype(np.float32),
        "cpu_cores": np.full(count, workload.request, dtype=np.float32),
    }
    query = {"price": repr(workload.price)} | {key: repr(value) for key, value in knobs.items()}
    found = derived(question, PageTable(about, columns), query)
    assert isinstance(found, dict | PageTable), found
    return found


def judged(figures: dict[str, Any]) -> tuple[float, ...]:
    return tuple(figures[name] for name in JUDGED)


def whatif(workload: Workload, **knobs: float) -> tuple[float, ...]:
    figures = page_of(workload, "whatif", **knobs).about["figures"]
    return judged(figures | {"churn_per_day": figures["churn"]})


def printed(figures: dict[str, Any]) -> tuple[float, ...]:
    named = figures | {"churn_per_day": figures.get("churnPerDay", figures.get("churn_per_day"))}
    return tuple(float(f"{value:.{PRINTED}g}") for value in judged(named))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(workload=workloads())
def test_everybody_gives_the_same_figures_and_finds_the_same_best(workload: Workload, tmp_path: Path) -> None:
    commands = Commands(workload, tmp_path)
    tune, advice = commands.tune(), page_of(workload, "advice")
    was, now = judged(tune["was"]), judged(tune["now"])

    assert judged(commands.backtest(workload.manifest)) == was
    assert judged(commands.backtest(tune["manifest"])) == now

    assert whatif(workload) == was
    assert whatif(workload, **advice["knobs"]) == now
    assert [judged(figures) for figures in advice["figures"]] == [was, now]
    assert advice["changed"] == tune["changed"]

    if workload.price == Objective().price:  # a night goes by the objective that is written
        verdict = night_of(workload)
        assert verdict.evidence is not None, verdict.reason
        assert judged(msgspec.structs.asdict(verdict.evidence.before)) == was
        assert judged(msgspec.structs.asdict(verdict.evidence.after)) == now
        chosen = verdict.settings or verdict.present
        assert chosen is not None
        assert (chosen.target, chosen.tolerance, chosen.window_s, chosen.ceiling) == tuple(
            tune["now"][name] for name in ("target", "tolerance", "window_s", "ceiling")
        )

    if workload.kind == "HorizontalPodAutoscaler":  # recommend writes no Autoscaler
        recommended = commands.recommend()["evidence"]
        assert printed(recommended["present"]) == printed(tune["was"])
        best = recommended.get("then") or (recommended.get("refused") or {}).get("figures")
        assert (best is not None) == tune["changed"]
        if best is not None:
            assert printed(best) == printed(tune["now"])
            plain = recommended.get("withoutTolerance")
            assert not plain or printed(plain["figures"]) == printed(tune["withoutTolerance"])
