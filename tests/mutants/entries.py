"""Read the list of mutants and locate each of them in the package."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mutants.txt")
SEPARATOR = " | "


@dataclass(frozen=True)
class Mutant:
    """One wrong edit of the package and the tests that must notice it."""

    path: str
    snippet: str
    replacement: str
    tests: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return the edit as one readable line."""
        return f"{self.path}: {self.snippet} -> {self.replacement or '(deleted)'}"


def read_mutants(text: str) -> list[Mutant]:
    """Parse lines of `path | snippet | replacement | tests`; skip comments and blank lines."""
    mutants = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split(SEPARATOR, 3)
        if len(fields) != 4 or not fields[3].split():
            raise ValueError(f"line {number}: expected path | snippet | replacement | tests, got {line!r}")
        path, snippet, replacement, tests = fields
        mutants.append(Mutant(path.strip(), snippet.strip(), replacement.strip(), tuple(tests.split())))
    return mutants


def locate(mutant: Mutant, sources: dict[str, str]) -> str:
    """Return the path of the only file that holds the snippet, exactly once.

    The named file comes first. When a module moved, the whole package is searched,
    so that a rename alone never loses an entry.
    """
    if sources.get(mutant.path, "").count(mutant.snippet) == 1:
        return mutant.path
    counts = {path: source.count(mutant.snippet) for path, source in sources.items() if mutant.snippet in source}
    if list(counts.values()) != [1]:
        raise ValueError(f"{mutant.title}: the snippet must occur exactly once, found {counts or 'nowhere'}")
    return next(iter(counts))


def read_sources(root: Path = ROOT) -> dict[str, str]:
    """Return the text of every module of the package by its path below the root."""
    return {path.relative_to(root).as_posix(): path.read_text() for path in sorted((root / "trimtab").rglob("*.py"))}
