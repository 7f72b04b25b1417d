"""Apply every mutant of the list to a copy and check that its tests fail: `make mutants`.

    python -m tests.mutants [--only TEXT] [--workers 2]

Exits with 1 when a mutant survives, when a named test fails without a mutant or when a
snippet does not occur exactly once. A survivor is a missing test.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.entries import LIST, ROOT, Mutant, locate, read_mutants, read_sources
from tests.mutants.runner import FAILED, PASSED, Copy, Run, preload

TIMEOUT_S = 120.0
_copy: Copy


def main() -> int:
    """Run the list and print one row per mutant."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants")
    parser.add_argument("--only", default="", help="run only the entries that contain this text")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    sources = read_sources()
    mutants = [mutant for mutant in read_mutants(LIST.read_text()) if options.only in f"{mutant.title} {mutant.tests}"]
    paths = [locate(mutant, sources) for mutant in mutants]
    start = time.monotonic()
    preload()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        context = multiprocessing.get_context("fork")
        ids = context.Value("i", 0)
        with context.Pool(options.workers, _make_copy, (folder, ids)) as pool:
            unmutated = sorted({mutant.tests for mutant in mutants})
            broken = [
                tests
                for tests, run in zip(unmutated, pool.imap(_run_unmutated, unmutated), strict=True)
                if run.status != PASSED
            ]
            runs = pool.imap(_run_mutant, zip(mutants, paths, strict=True))
            survivors = [mutant for mutant, run in zip(mutants, runs, strict=True) if _print_row(mutant, run)]
    for tests in broken:
        print(f"FAILS WITHOUT A MUTANT  {' '.join(tests)}")
    print(f"{len(mutants)} mutants, {len(survivors)} survived, {time.monotonic() - start:.0f} s")
    return 1 if survivors or broken else 0


def _make_copy(folder: str, ids) -> None:  # type: ignore[no-untyped-def]  # a synchronized value has no public type
    global _copy
    with ids.get_lock():
        ids.value += 1
        number = ids.value
    _copy = Copy(ROOT, Path(folder) / f"copy-{number}")


def _run_unmutated(tests: tuple[str, ...]) -> Run:
    return _copy.run(tests, TIMEOUT_S)


def _run_mutant(entry: tuple[Mutant, str]) -> Run:
    return _copy.run_mutant(*entry, TIMEOUT_S)


def _print_row(mutant: Mutant, run: Run) -> bool:
    """Print the row and return whether the mutant survived."""
    # Endless loops count as noticed: a test that hangs is a test that fails.
    killed = run.status is None or run.status == FAILED
    print(f"{'killed  ' if killed else 'SURVIVED'} {run.seconds:5.1f} s  {mutant.title}", flush=True)
    return not killed


if __name__ == "__main__":
    sys.exit(main())
