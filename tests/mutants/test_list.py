"""The list of mutants stays complete while the code moves."""

import pytest

from tests.mutants.entries import LIST, ROOT, Mutant, locate, read_mutants, read_sources

MUTANTS = read_mutants(LIST.read_text())
AT_LEAST = 150


def test_the_list_holds_at_least_150_mutants() -> None:
    assert len(MUTANTS) >= AT_LEAST
    assert len({(mutant.path, mutant.snippet, mutant.replacement) for mutant in MUTANTS}) == len(MUTANTS)


def test_every_snippet_occurs_exactly_once() -> None:
    sources = read_sources()
    for mutant in MUTANTS:
        assert sources[locate(mutant, sources)].count(mutant.snippet) == 1
        assert mutant.snippet != mutant.replacement


def test_every_named_test_exists() -> None:
    names = [name for mutant in MUTANTS for name in mutant.tests]
    missing = [
        name
        for name in names
        if f"def {name.split('::')[1].split('[')[0]}(" not in (ROOT / name.split("::")[0]).read_text()
    ]
    assert not missing


def test_a_snippet_in_a_moved_module_is_located() -> None:
    mutant = Mutant("trimtab/old.py", "a < b", "a <= b", ("tests/test_a.py::test_a",))
    assert locate(mutant, {"trimtab/new.py": "if a < b:"}) == "trimtab/new.py"


@pytest.mark.parametrize(
    "sources",
    [{"trimtab/a.py": "a < b or a < b"}, {"trimtab/b.py": "a < b", "trimtab/c.py": "a < b"}, {"trimtab/a.py": ""}],
    ids=["twice in its file", "in two other files", "nowhere"],
)
def test_a_lost_or_ambiguous_snippet_is_an_error(sources: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="exactly once"):
        locate(Mutant("trimtab/a.py", "a < b", "a <= b", ("tests/test_a.py::test_a",)), sources)
