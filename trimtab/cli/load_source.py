"""`--load SRC`: past load from a CSV or Parquet file, a Prometheus query, or a generator; and the policies of `-f`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec.structs import replace

from trimtab.cli.option_groups import PrometheusOptions, option_group, prometheus_options
from trimtab.cli.options import Finite
from trimtab.errors import InvalidInput, InvalidObject, NotEnoughData
from trimtab.policy import Policy
from trimtab.series import Frame
from trimtab.tune.demand import Demand, demand_of

if TYPE_CHECKING:
    from trimtab.kinds.yaml import Document
    from trimtab.wire.access import Access

GENERATE = "generate:"
PROMETHEUS_STEP_S, PROMETHEUS_DAYS = 60.0, 14.0
WEEK_S = 7 * 86400.0


class LoadOptions(NamedTuple):
    """Which past load."""

    source: str
    series: str = ""
    days: float | None = None


load_options = option_group(
    "load",
    LoadOptions,
    click.option(
        "--load",
        "source",
        required=True,
        metavar="SRC",
        help="FILE.csv, FILE.parquet, a Prometheus query, or generate:SHAPE[,days=14,peak=30,seed=1].",
    ),
    click.option("--series", default="", help="Which series of the file or query."),
    click.option("--days", type=Finite(0.05), help="Only the last so many days."),
)
query_options = prometheus_options("Where queries are asked.")


def read_load(load: LoadOptions, prometheus: PrometheusOptions) -> Demand:
    """The demand, or a sentence about what is wrong with it."""
    source = load.source
    if source.startswith(GENERATE):
        from trimtab.sim.generate import generate, parse_shape

        shape = parse_shape(source.removeprefix(GENERATE))
        return Demand(source, generate(shape), 0.0).last(load.days)
    if source.endswith(".csv"):
        from trimtab.history.csv import read_csv

        return demand_of(read_csv(source), source, load.series, load.days)
    if source.endswith(".parquet"):
        from trimtab.history.parquet import read_parquet

        return demand_of(read_parquet(source), source, load.series, load.days)
    access = prometheus.access()
    if access is None:
        fix = "name a .csv or .parquet file, write generate:diurnal, or say --prometheus URL to ask this query"
        raise InvalidInput("--load", source, fix)
    return demand_of(asyncio.run(_query(load, access)), f"query {source}", load.series, None)


async def _query(load: LoadOptions, access: Access) -> Frame:
    from trimtab.history.query_pages import QueryPage, query_page, total
    from trimtab.history.source import time_grid
    from trimtab.wire.prometheus import Prometheus

    end = time.time()
    wanted = time_grid(end - (load.days or PROMETHEUS_DAYS) * 86400, end, PROMETHEUS_STEP_S)
    async with Prometheus(access, timeout_s=120.0) as prometheus:
        frame = await query_page(prometheus, QueryPage(load.source, _name, total), wanted)
    if not frame.names:
        raise NotEnoughData(f"query {load.source}: it has no samples in that time; check it and --days")
    return frame


def _name(labels: Mapping[str, str]) -> str:
    named = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()) if key != "__name__")
    return labels.get("__name__", "") + (f"{{{named}}}" if named else "") or "value"


class NamedPolicy(NamedTuple):
    """One policy of a file, with the manifest it came from."""

    name: str
    policy: Policy
    manifest: dict[str, Any]


def read_policies(paths: tuple[str, ...], start: float, seconds: float) -> list[NamedPolicy]:
    """Every policy of these files, schedules laid out over the whole time; other objects are left out."""
    from trimtab.kinds.yaml import load as documents_of

    found = [
        (document, policy)
        for path in paths
        for document in documents_of(path)
        if (policy := _policy_of(document, start, seconds)) is not None
    ]
    if not found:
        raise InvalidInput("-f", ", ".join(paths), "there is no autoscaler in it")
    names, files = [policy.name for _, policy in found], [Path(document.file).stem for document, _ in found]
    marks = files if len(set(files)) == len(files) else [str(number) for number in range(1, len(files) + 1)]
    return [
        policy if names.count(policy.name) == 1 else policy._replace(name=f"{policy.name} ({mark})")
        for (_, policy), mark in zip(found, marks, strict=True)
    ]


def _policy_of(document: Document, start: float, seconds: float) -> NamedPolicy | None:
    """The policy of a document, or nothing where it is another object; what is wrong is said with file and line."""
    try:
        if document.error is not None:
            raise document.error
        if not isinstance(document.value, dict):
            raise InvalidInput("document", document.value, "write a manifest: apiVersion, kind, metadata, spec")
        return _named_policy(document.value, document.file, start, seconds)
    except InvalidInput as error:
        first = error.problems[0] if isinstance(error, InvalidObject) else error
        line = document.line if document.error else document.line_of(first.path)
        where = f"{document.file}:{line}"
        if isinstance(error, InvalidObject):
            raise InvalidObject(f"{where}: {error.what}", error.problems) from None
        raise InvalidInput(f"{where}: {error.path}".rstrip(": "), error.value, error.fix) from None


def _named_policy(manifest: dict[str, Any], file: str, start: float, seconds: float) -> NamedPolicy | None:
    from trimtab.kinds import KINDS, CustomHpa, Scaler, misspelt, read

    kind: Scaler | CustomHpa
    if "kind" not in manifest and "prometheus" in manifest:
        kind, name = CustomHpa.from_values(manifest), f"custom-hpa {file}"
    elif "kind" in manifest and not misspelt(manifest) and manifest["kind"] not in {known for _, known in KINDS}:
        return None
    else:
        checked = read(manifest)
        if not isinstance(checked, Scaler):
            raise InvalidInput("kind", manifest.get("kind"), "this kind decides nothing; give an Autoscaler or an HPA")
        kind, name = checked, str(manifest["metadata"]["name"])
    return NamedPolicy(name, _over_all_time(kind.to_policy, start, seconds), manifest)


def _over_all_time(to_policy: Callable[[float], Policy], start: float, seconds: float) -> Policy:
    """A kind lays its schedules out around one moment; a backtest needs those of its whole time."""
    policy = to_policy(start)
    if not policy.bounds.spans:
        return policy
    moments = [start + week * WEEK_S for week in range(int(seconds // WEEK_S) + 1)]
    spans = {span for at in moments for span in to_policy(at).bounds.spans}
    ordered = tuple(sorted(spans, key=lambda span: (span.start, span.end, span.name)))
    return replace(policy, bounds=replace(policy.bounds, spans=ordered))
