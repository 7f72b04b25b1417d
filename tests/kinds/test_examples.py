"""Every example is read, compiled, linted and converted; what it becomes stands beside it.

`python -m tests.kinds.test_examples` writes the files under `becomes/` again.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trimtab.cli.output import to_yaml
from trimtab.kinds import KINDS, Analytics, CustomHpa, Scaler, read
from trimtab.kinds.convert import convert, convertible
from trimtab.kinds.lint import LintSeverity, lint
from trimtab.kinds.yaml import documents, load

FOLDER = Path(__file__).parents[2] / "examples"
WORKLOADS = sorted(FOLDER.rglob("*-deployment.yaml"))
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent.name != "becomes" and path not in WORKLOADS)
NOW = 1_700_000_000.0


def value_of(path: Path) -> dict[str, Any]:
    (document,) = load(str(path))
    assert document.error is None, document.error
    value: dict[str, Any] = document.value
    return value


def becomes(value: dict[str, Any]) -> str | None:
    """The same as an Autoscaler, unless that is refused; an Analytics as its whole configuration."""
    if value.get("kind") == "Analytics":
        obj = read(value)
        assert isinstance(obj, Analytics)
        settings: dict[str, Any] = msgspec.to_builtins(obj.to_inspection())
        return to_yaml({name: setting for name, setting in settings.items() if name != "is"})
    if value.get("kind") == "Autoscaler" or not convertible(value):
        return None
    converted = convert(value, "autoscaler")
    return None if converted.loses_signal else to_yaml(converted.manifest)


def beside(path: Path) -> Path:
    return path.parent / "becomes" / path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_an_example_compiles_and_has_no_errors(path: Path) -> None:
    value = value_of(path)
    foreign = (value.get("apiVersion"), value.get("kind")) not in KINDS
    whole = convert(value, "autoscaler").manifest if foreign and "kind" in value else value
    obj = read(whole) if "kind" in value else CustomHpa.from_values(value)
    if isinstance(obj, Scaler | CustomHpa):
        assert obj.to_policy(NOW).bounds.max_replicas >= 8
    found = lint(list(load(str(path))), NOW)
    assert [one for one in found if one.severity is LintSeverity.ERROR] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_it_becomes_stands_beside_it(path: Path) -> None:
    made = becomes(value_of(path))
    assert (beside(path).read_text() if beside(path).exists() else None) == made
    if made and "apiVersion" in made:
        (document,) = documents(made)
        read(document.value)


def test_every_folder_explains_itself() -> None:
    folders = [path for path in FOLDER.iterdir() if path.is_dir()]
    assert len(folders) >= 6
    assert all((folder / "README.md").exists() for folder in folders)


def test_the_first_example_of_hvpa_weights_is_byte_for_byte() -> None:
    text = (FOLDER / "001-weights" / "example-1.yaml").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "83987e4cb9d6a0c81a5b41675cc974a3fd87456edc2a68844bef12c290d125f3"


def test_the_analytics_of_crane_is_byte_for_byte() -> None:
    text = (FOLDER / "000-recommendation" / "analytics-hpa.yaml").read_bytes()
    assert hashlib.sha256(text).hexdigest() == "54e7f822211772cc9c2fb71407a6399060c5aba6d55d863d3a2a407348337965"


def test_the_workload_of_crane_is_the_one_its_analytics_selects() -> None:
    (path,) = (FOLDER / "000-recommendation").glob("*-deployment.yaml")
    workload = value_of(path)
    (selector,) = value_of(path.parent / "analytics-hpa.yaml")["spec"]["resourceSelectors"]
    named = {"kind": workload["kind"], "apiVersion": workload["apiVersion"], "name": workload["metadata"]["name"]}
    assert named == selector


def test_variables_say_what_the_values_say() -> None:
    folder = FOLDER / "002-custom-hpa"
    lines = (folder / "custom-hpa.env").read_text().splitlines()
    env = dict(line.split("=", 1) for line in lines)
    assert CustomHpa.from_env(env).to_policy(NOW) == CustomHpa.from_values(value_of(folder / "values.yaml")).to_policy(
        NOW
    )


if __name__ == "__main__":
    for each in FILES:
        text = becomes(value_of(each))
        if text:
            beside(each).parent.mkdir(exist_ok=True)
            beside(each).write_text(text)
