"""python -m tests.virtual.chaos.undone OUT.json [ROW...]: takes away one fix after the other; which seed notices?

Each is undone in a copy of the package; then seeds run that bring the faults it is about, until one fails, or a
property does. What nobody notices is a hole in the checkers.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.virtual.chaos.fixes import FIXES, Fix

ROOT = Path(__file__).parents[3]
PARTS = ("trimtab", "tests", "pyproject.toml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "static")
MOST_SEEDS = 40


class Noticed(NamedTuple):
    """What failed without the fix; "" is nothing."""

    row: str
    undone: str
    by: str


def main() -> int:
    path, wanted = Path(sys.argv[1]), sys.argv[2:]
    known = {each["row"]: each for each in json.loads(path.read_text())} if path.exists() else {}
    for fix in FIXES:
        if not wanted or any(fix.row.startswith(word) for word in wanted):
            found = known[fix.row] = noticed(fix)._asdict()
            print(f"{fix.row}: {found['by'] or 'NOT NOTICED'}", flush=True)
            rows = [known[each.row] for each in FIXES if each.row in known]
            path.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if all(row["by"] for row in known.values()) else 1


def noticed(fix: Fix) -> Noticed:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for part in PARTS:
            source, target = ROOT / part, copy / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target, ignore=LEFT_OUT) if source.is_dir() else shutil.copy(source, target)
        undo(fix, copy)
        return Noticed(fix.row, fix.undone, _property(fix, copy) if fix.property else _seed(fix, copy))


def undo(fix: Fix, root: Path) -> None:
    for edit in fix.edits:
        path = root / edit.file
        text = path.read_text()
        assert text.count(edit.old) == 1, f"{edit.file}: {edit.old!r} is there {text.count(edit.old)} times"
        path.write_text(text.replace(edit.old, edit.new))


def _seed(fix: Fix, root: Path) -> str:
    words = [word for name in fix.faults for word in ("--fault", name)]
    words += [word for name in fix.tenants for word in ("--tenant", name)]
    command = [sys.executable, "-m", "tests.virtual.chaos", "--seeds", str(MOST_SEEDS), "--until-failure", *words]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True)
    said = [line for line in ended.stdout.splitlines() if line.startswith("seed ")]
    if ended.returncode and not said:
        raise RuntimeError(f"{fix.row}: {ended.stderr[-2000:]}")
    return said[0] if said else ""


def _property(fix: Fix, root: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", fix.property]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if ended.returncode not in (0, 1):
        raise RuntimeError(f"{fix.row}: {ended.stdout[-2000:]}")
    return f"`{fix.property}`" if ended.returncode else ""


if __name__ == "__main__":
    sys.exit(main())
