"""Whatever is written: a conversion reads back, says where, in the writer's words, and never ends in a traceback."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.errors import InvalidInput
from trimtab.kinds import read
from trimtab.kinds.convert import TARGETS, Converted, convert, convertible
from trimtab.kinds.lint import lint
from trimtab.kinds.yaml import Document, load

FOLDER = Path(__file__).parents[2] / "examples"
NOW = 1_700_000_000.0
Manifest = dict[str, Any]


def _examples() -> dict[str, Manifest]:
    files = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent.name != "becomes")
    values = {str(path.relative_to(FOLDER)): next(iter(load(str(path)))).value for path in files}
    return {name: value for name, value in values.items() if convertible(value)}


EXAMPLES = _examples()
FOREIGN = {name: value for name, value in EXAMPLES.items() if name.startswith("006")}
# What other systems do by default and we name although nobody wrote it.
DEFAULTS = {"spec.minCpuChange", "spec.tolerateZero", "spec.upscaleForbiddenWindowSeconds"}


@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_becomes_every_kind_or_says_why_not_where_its_writer_wrote_it(name: str, to: str) -> None:
    value = copy.deepcopy(EXAMPLES[name])
    result = converted(value, to)
    if isinstance(result, InvalidInput):
        assert written(value, result.path), result
        return
    made, lost = result
    read(made)
    assert convert(made, to) == (made, [])
    assert [loss.path for loss in lost if not written(value, loss.path) and loss.path not in DEFAULTS] == []
    assert value == EXAMPLES[name], "the source is left as it was"


def converted(value: Manifest, to: str, beside_keda: bool = False) -> Converted | InvalidInput:
    try:
        return convert(value, to, beside_keda)
    except InvalidInput as error:
        return error


def written(value: Any, path: str) -> bool:
    """Whether the parent of a path stands in the source: the last word may be a default that is named."""
    steps = path.replace("[", ".[").split(".")
    for step in steps[:-1]:
        if step.startswith("["):
            value = value[int(step[1:-1])] if isinstance(value, list) and int(step[1:-1]) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value is not None


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "name", "metadata"]), inner),
    max_leaves=4,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        return found + [place for name, inner in value.items() for place in places(inner, (*path, name))]
    if isinstance(value, list):
        return found + [place for at, inner in enumerate(value) for place in places(inner, (*path, at))]
    return found


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_no_scaled_object_and_no_vpa_ends_in_a_traceback(data: st.DataObject) -> None:
    manifest = copy.deepcopy(FOREIGN[data.draw(st.sampled_from(sorted(FOREIGN)))])
    for _ in range(data.draw(st.integers(1, 2))):
        *way, last = data.draw(st.sampled_from(places(manifest)))
        inner: Any = manifest
        for step in way:
            inner = inner[step]
        inner[last] = data.draw(ANYTHING)
    lint([Document("web.yaml", 1, manifest)], NOW)
    if not convertible(manifest):
        return
    for beside in (False, True):
        result = converted(manifest | {"status": {"externalMetricNames": ["s0-a", "s1-b"]}}, "hpa", beside)
        assert isinstance(result, Converted) or result.fix


# What a trigger needs to reach its server, which Prometheus reaches instead, and what says no more than the default.
CONNECTS = {"hostFromEnv", "bootstrapServers", "natsServerMonitoringEndpoint", "account"}
DEFAULTED = {
    ("spec", "minReplicaCount", 0),
    ("metadata", "mode", "QueueLength"),
    ("metadata", "value", "20"),
    (2, "metricType", "Utilization"),
    ("spec", "scaleUpLimitFactor", 50),
    ("spec", "scaleStrategy", "Auto"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_field_of_another_autoscaler_is_left_out_in_silence(name: str) -> None:
    """Without it the result, or what is named as lost, is another; or the whole part it stands in is named."""
    whole = convert(copy.deepcopy(FOREIGN[name]), "autoscaler")
    named = [loss.path for loss in whole.lost]
    silent = []
    for place in places(FOREIGN[name]["spec"], ("spec",)):
        *way, last = place
        less = copy.deepcopy(FOREIGN[name])
        inner: Any = less
        for step in way:
            inner = inner[step]
        value = inner.pop(last)
        result = converted(less, "autoscaler")
        same = isinstance(result, Converted) and (result.manifest, [loss.path for loss in result.lost]) == (
            whole.manifest,
            named,
        )
        if same and last not in CONNECTS and (way[-1], last, _plain(value)) not in DEFAULTED:
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)[1:]
            silent += [] if any(path.startswith(lost) for lost in named) else [path]
    assert silent == []


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) else None
