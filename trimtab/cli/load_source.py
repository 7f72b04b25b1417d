"""`--load SRC`: past load from a file (CSV, Prometheus' JSON, Parquet), a Prometheus query, or a generator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import click

from trimtab.cli.option_groups import PrometheusOptions, option_group, prometheus_options
from trimtab.cli.options import Finite, duration, objective
from trimtab.errors import InvalidInput, NotEnoughData

if TYPE_CHECKING:
    from trimtab.cli.policy_files import NamedPolicy
    from trimtab.policy import Objective
    from trimtab.series import Frame
    from trimtab.sim.cluster_spec import ClusterSpec
    from trimtab.sim.queue import WorkQueue
    from trimtab.tune.demand import Demand
    from trimtab.tune.judge import JudgedPod, PodTerms
    from trimtab.wire.access import Access

GENERATE = "generate:"
PROMETHEUS_STEP_S, PROMETHEUS_DAYS = 60.0, 14.0
OLDEST_METRIC_S = 120.0  # two scrapes of the usual minute


class LoadOptions(NamedTuple):
    """Which past load."""

    source: str
    series: str = ""
    days: float | None = None
    step_s: float | None = None
    time_column: str = ""
    unit: str | None = None

    def judged(
        self, demand: Demand, named: NamedPolicy, terms: PodTerms, objective: Objective
    ) -> tuple[Demand, JudgedPod, str]:
        """The load in the unit of the policy, what one pod carries of it, and a doubt about the unit."""
        from trimtab.tune.demand import check_unit
        from trimtab.tune.judge import judged_pod
        from trimtab.tune.units import LoadUnit, check_cores, in_cores

        if self.unit is not None:
            own = judged_pod(named.policy, named.template).judged
            demand, terms = in_cores(demand, LoadUnit(self.unit), own, terms)
        pod, doubt = judged_pod(named.policy, named.template, terms, objective), ""
        if self.unit is None:
            known = named.template is not None
            most = named.policy.bounds.max_replicas
            doubt = check_cores(demand, pod.judged, most, self.source, known, terms.burst)
        check_unit(demand, pod.judged.request, self.source)
        return demand, pod, doubt


step_option = click.option(
    "--step",
    "step_s",
    type=duration,
    metavar="DURATION",
    help="From one sample to the next; else as usual in the file.",
)
time_column_option = click.option(
    "--time-column", default="", metavar="NAME", help="Of a file whose column of times is called otherwise."
)
load_options = option_group(
    "load",
    LoadOptions,
    click.option(
        "--load",
        "source",
        required=True,
        metavar="SRC",
        help="FILE.csv, .tsv, .json (each also .gz) or .parquet, - for the standard input, a query, or"
        " generate:SHAPE[,days=14,peak=30,seed=1].",
    ),
    click.option("--series", default="", help="Which series of the file or query."),
    click.option(
        "--unit",
        type=click.Choice(["cores", "millicores", "percent", "rps"]),
        help="Of the load, for policies on CPU: percent is of one core, rps needs --pod-capacity. Default: cores.",
    ),
    click.option("--days", type=Finite(0.05), help="Only the last so many days."),
    step_option,
    time_column_option,
)


VARYING_STARTUP = (0.7, 1.6)  # of the usual start-up time


class JudgingOptions(NamedTuple):
    """What pods take to start and carry then, and what a violation costs."""

    startup_s: float
    pod_capacity: float | None
    service_level: float | None
    burst: float
    price: float | None
    metric_delay_s: float
    jitter: bool

    @property
    def pod_terms(self) -> PodTerms:
        from trimtab.tune.judge import PodTerms

        return PodTerms(self.service_level, self.pod_capacity, self.burst)

    def cluster(self, pod: JudgedPod, queue: WorkQueue | None) -> ClusterSpec:
        """The simulated cluster that all policies are judged on."""
        from trimtab.tune.judge import cluster_of

        return cluster_of(
            pod.judged,
            self.burst,
            startup_s=self.startup_s,
            startup_jitter=VARYING_STARTUP if self.jitter else (1.0, 1.0),
            metric_delay_s=self.metric_delay_s,
            queue=queue,
        )


def _fresh_enough(ctx: click.Context, param: click.Parameter, seconds: float) -> float:
    if seconds > OLDEST_METRIC_S:
        raise click.BadParameter(f"{seconds:g}s: the operator takes metrics older than 2m for missing; give at most 2m")
    return seconds


judging_options = option_group(
    "judging",
    JudgingOptions,
    click.option(
        "--startup",
        "startup_s",
        type=duration,
        default="2m",
        show_default=True,
        help="From a pod's creation to serving.",
    ),
    click.option(
        "--pod-capacity",
        type=Finite(0, min_open=True),
        help="The most load that one pod can carry: it is overloaded above 80 % of that. It does not change what a pod"
        " requests. Default: the limit of its manifest, or target / 0.7.",
    ),
    click.option(
        "--service-level",
        type=Finite(0, min_open=True),
        metavar="SHARE",
        help="Above which share of its request a pod is overloaded, such as 0.8. Default: above its request, or 80 % of"
        " its limit where that is less.",
    ),
    click.option(
        "--burst",
        type=Finite(1.0),
        default=2.0,
        show_default=True,
        help="How many times its request a pod without a limit can use.",
    ),
    click.option(
        "--objective",
        "price",
        type=objective,
        help=f"{objective.__doc__}; else the objective that is written, or balanced",
    ),
    click.option(
        "--metric-delay",
        "metric_delay_s",
        type=duration,
        callback=_fresh_enough,
        default="15s",
        show_default=True,
        help="How old the newest metric is when a policy or a bridge sees it.",
    ),
    click.option("--jitter", is_flag=True, help="Start-ups vary by 0.7 to 1.6 of --startup."),
)
query_options = prometheus_options("Where queries are asked.")


def read_load(load: LoadOptions, prometheus: PrometheusOptions) -> Demand:
    """The demand, or a sentence about what is wrong with it."""
    import asyncio

    from trimtab.history.files import FileReading
    from trimtab.history.read_file import ENDINGS, STDIN, read_file
    from trimtab.tune.demand import Demand, demand_of

    source = load.source
    if source.startswith(GENERATE):
        from trimtab.sim.generate import generate, parse_shape

        shape = parse_shape(source.removeprefix(GENERATE))
        return Demand(source, generate(shape), 0.0).last(load.days)
    if source == STDIN or source.endswith(ENDINGS):
        reading = FileReading(load.step_s, load.time_column)
        return demand_of(read_file(source, reading), source, load.series, load.days)
    access = prometheus.access()
    if access is None:
        fix = "name a .csv, .json or .parquet file, write generate:diurnal, or say --prometheus URL to ask this query"
        raise InvalidInput("--load", source, fix)
    return demand_of(asyncio.run(_query(load, access)), f"query {source}", load.series, None)


def read_series(option: str, load: LoadOptions, prometheus: PrometheusOptions) -> Frame:
    """One series as it was sampled, from a file or a query."""
    import asyncio

    from trimtab.history.files import FileReading
    from trimtab.history.read_file import ENDINGS, STDIN, read_file

    access = prometheus.access()
    if load.source == STDIN or load.source.endswith(ENDINGS):
        frame = read_file(load.source, FileReading(load.step_s, load.time_column))
    elif access is None:
        fix = "name a .csv, .json or .parquet file, or say --prometheus URL to ask this query"
        raise InvalidInput(option, load.source, fix)
    else:
        frame = asyncio.run(_query(load, access))
    if len(frame.names) != 1:
        some = ", ".join(frame.names[:3])
        raise InvalidInput(option, f"{len(frame.names)} series", f"give one number, as by sum() or max(): {some} ...")
    return frame


async def _query(load: LoadOptions, access: Access) -> Frame:
    from trimtab.history.query_pages import QueryPage, query_page, total
    from trimtab.history.source import time_grid
    from trimtab.wire.prometheus import Prometheus

    end = time.time()
    step_s = load.step_s or PROMETHEUS_STEP_S
    wanted = time_grid(end - (load.days or PROMETHEUS_DAYS) * 86400, end, step_s)
    async with Prometheus(access, timeout_s=120.0) as prometheus:
        frame = await query_page(prometheus, QueryPage(load.source, _name, total), wanted)
    if not frame.names:
        raise NotEnoughData(f"query {load.source}: it has no samples in that time; check it and --days")
    return frame


def _name(labels: Mapping[str, str]) -> str:
    named = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")
    return labels.get("__name__", "") + (f"{{{named}}}" if named else "") or "value"
