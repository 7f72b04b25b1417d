"""Manifests as people really have them: many documents, lists, tabs, bombs, templates."""

from __future__ import annotations

import io
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab.kinds import yaml as reader
from trimtab.kinds.yaml import documents, load


def values(text: str) -> list[Any]:
    return [document.value for document in documents(textwrap.dedent(text))]


def errors(text: str | bytes) -> list[str]:
    return [str(document.error) for document in documents(text) if document.error]


def test_documents_lists_and_lines() -> None:
    text = textwrap.dedent("""\
        # a comment
        a: 1
        ---
        kind: List
        items:
        - kind: A
          spec: {x: [10, 20]}
        - kind: B
        ---
        ---
        b:
          c: 2
        """)
    found = list(documents(text, "f.yaml"))
    assert [document.value for document in found] == [
        {"a": 1},
        {"kind": "A", "spec": {"x": [10, 20]}},
        {"kind": "B"},
        {"b": {"c": 2}},
    ]
    assert [document.line for document in found] == [1, 6, 8, 10]
    assert found[1].line_of("spec.x[1]") == 7
    assert found[3].line_of("b.c") == 12
    assert found[3].line_of("b.missing.deeper") == 12


def test_items_merged_in_from_an_anchor_are_objects_too() -> None:
    assert values("base: &b {items: [{kind: A}, {kind: B}]}\n<<: *b\nkind: List\n") == [{"kind": "A"}, {"kind": "B"}]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"], ids=["as PowerShell writes", "with a mark at its start"])
def test_other_encodings_say_what_they_are(encoding: str) -> None:
    assert [document.value for document in documents("a: größer\n".encode(encoding))] == [{"a": "größer"}]


@pytest.mark.parametrize("between", ["", " ", "\n", "\r\n\n"])
def test_objects_of_json_stand_one_after_the_other(between: str) -> None:
    """As `kubectl get hpa -o json | jq '.items[]'` writes them."""
    text = '{"a": "---"}' + between + '{\n\t"b": 1\n}' + between + '{"c": 1, "c": 2}\n'
    found = list(documents(text))
    assert [document.value for document in found] == [{"a": "---"}, {"b": 1}, None]
    assert [document.line for document in found] == [1, 1 + between.count("\n"), 3 + 2 * between.count("\n")]
    assert "stands here twice" in str(found[2].error)


def test_a_list_of_one_kind_says_what_its_items_are() -> None:
    """As the API server itself answers; `items:` with nothing behind it holds nothing."""
    text = "apiVersion: x/v1\nkind: %s\nitems: %s\n"
    assert values(text % ("FooList", "[{a: 1}, {kind: Bar}]")) == [
        {"apiVersion": "x/v1", "kind": "Foo", "a": 1},
        {"kind": "Bar"},
    ]
    assert values(text % ("List", "[{a: 1}]")) == [{"a": 1}]
    assert values(text % ("List", "")) == []


def test_a_broken_document_names_its_line_and_does_not_stop_the_others() -> None:
    text = "a: 1\n---\nb:\n\tc: 2\n---\nd: 3\n"
    found = list(documents(text))
    assert [document.value for document in found] == [{"a": 1}, None, {"d": 3}]
    assert str(found[1].error).startswith("line 4: ")
    assert "spaces, never with tabs" in str(found[1].error)


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("a: 1\nb: {c: 1, c: 2}\n", "line 2: 'c': this key stands here twice", id="duplicate key"),
        pytest.param("start: * * * * *\n", "quote this value", id="an unquoted star"),
        pytest.param("a: b: c\n", "quote this value: it has a colon", id="an unquoted colon"),
        pytest.param("a: {{ .Values.x }}\nb: ]\n", "Helm template", id="a template"),
        pytest.param("a:\n  b: {{ .Values.x }}\n", "line 2: '{{': this looks like a Helm", id="a short template"),
        pytest.param("a: !!float x\n", "line 1: 'x': this cannot be read as a number", id="a tag that lies: float"),
        pytest.param("a: !!bool maybe\n", "'maybe': this cannot be read as true or false", id="a tag that lies: bool"),
        pytest.param("a: 0x_\n", "'0x_': this cannot be read as a whole number", id="no digit at all"),
        pytest.param("a: " + "9" * 5000, "'99999999999999999999...': this cannot be read", id="five thousand digits"),
        pytest.param("a: .inf\n", "write a finite number", id="infinity"),
        pytest.param("a: !!python/object:os.system x\n", "no tags", id="a tag"),
        pytest.param("? [a]\n: b\n", "keys are plain words", id="a list as key"),
        pytest.param("[" * 100_000, "nests deeper", id="deep flow"),
        pytest.param("- " * 2_000 + "x", "nests deeper", id="deep block"),
        pytest.param("a: &a\n  b: *a\n", "nests deeper", id="an anchor inside itself"),
        pytest.param(b"\x80\x00a", "not UTF-8", id="binary"),
        pytest.param(b"\xff\xfea", "not UTF-8", id="half a character"),
        pytest.param("a: \x07\n", "not YAML", id="a control character"),
    ],
)
def test_what_cannot_be_read_gets_a_clear_answer(text: str | bytes, said: str) -> None:
    (error,) = errors(text)
    assert said in error


def test_a_bomb_of_anchors_is_defused() -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    (error,) = errors("\n".join(levels))
    assert "unfolds to more than" in error


def test_too_large_a_file_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_BYTES", 100)
    (error,) = errors("a: 1\n" * 50)
    assert "split it" in error


def test_scalars_are_what_kubernetes_takes_them_for() -> None:
    (value,) = values("""\
        date: 2022-05-15
        clock: 12:30
        octal: 010
        big: 1_000
        half: .5
        off: Off
        none: ~
        text: "5"
        hex: 0x1F
        """)
    assert value == {
        "date": "2022-05-15",
        "clock": "12:30",
        "octal": 8,
        "big": 1000,
        "half": 0.5,
        "off": False,
        "none": None,
        "text": "5",
        "hex": 31,
    }


def test_merges_give_way_to_what_is_written() -> None:
    (value,) = values("base: &b {a: 1, b: 2}\nmore:\n  <<: *b\n  b: 3\n")
    assert value["more"] == {"a": 1, "b": 3}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="abc:-#'\" ", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=100, deadline=None)
@given(value=st.dictionaries(st.text(alphabet="xyz", min_size=1), _JSON, min_size=1, max_size=3))
def test_what_is_dumped_is_read(value: dict[str, Any]) -> None:
    import yaml

    assert [document.value for document in documents(yaml.safe_dump(value))] == [value]


@settings(max_examples=100, deadline=None)
@given(text=st.text(alphabet="ab:-[]{}&*!|>'\"%@#\n \t,?0", max_size=60))
def test_nothing_makes_it_fall_over(text: str) -> None:
    for document in documents(text):
        assert (document.value is None) == (document.error is not None)


def test_files_folders_and_the_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.yml").write_text("b: 1")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.yaml").write_text("a: 1")
    (tmp_path / "notes.txt").write_text("no: manifest")
    assert [document.value for document in load(str(tmp_path))] == [{"b": 1}, {"a": 1}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"c: 1")))
    assert [document.value for document in load("-")] == [{"c": 1}]
    (missing,) = load(str(tmp_path / "nothing.yaml"))
    assert "no such file" in str(missing.error)
