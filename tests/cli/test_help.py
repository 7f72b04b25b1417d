"""`--help` answers at once: it imports nothing heavy. And what it says without its owners is what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import get_args

import pytest

from trimtab.advisor.manifests import Shape
from trimtab.cli import COMMANDS, choices
from trimtab.kinds.annotations import PROMETHEUS_ALLOWED
from trimtab.kinds.convert import TARGETS
from trimtab.kinds.lint import LintSeverity
from trimtab.kinds.lint.silenced import BASELINE
from trimtab.live.look.cluster import SYSTEM_NAMESPACES
from trimtab.live.measure.tenancy import TenancyMode
from trimtab.policy import Advice

HEAVY = ("aiohttp", "msgspec", "numba", "numpy", "pydantic", "rich", "scipy")
PROBE = f"""
import sys
from trimtab.cli import main
main(sys.argv[1:], prog_name="trimtab", standalone_mode=False)
print("imported:", *(name for name in {HEAVY} if name in sys.modules))
"""


@pytest.mark.parametrize("words", [(), *((name,) for name in sorted(COMMANDS))])
def test_help_imports_nothing_heavy(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *words, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: trimtab")
    assert done.stdout.splitlines()[-1] == "imported:"


def test_python_runs_the_package() -> None:
    done = subprocess.run([sys.executable, "-m", "trimtab", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("trimtab ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_completion(shell: str) -> None:
    def answer(**told: str) -> str:
        words = [sys.executable, "-m", "trimtab"]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | told).stdout

    assert f"_TRIMTAB_COMPLETE={shell}_complete" in answer(_TRIMTAB_COMPLETE=f"{shell}_source")
    typed = "unf" if shell == "fish" else "1"  # fish sends the word, the others its number
    found = answer(_TRIMTAB_COMPLETE=f"{shell}_complete", COMP_WORDS="trimtab unf", COMP_CWORD=typed)
    assert "unfreeze" in found and "backtest" not in found


def test_the_words_of_options_are_their_owners() -> None:
    assert set(choices.ADVICE_TYPES.values()) == set(Advice) - {Advice.BOTH}  # without a type
    assert set(TARGETS) == set(choices.CONVERT_TO)
    assert tuple(reversed(LintSeverity)) == choices.LINT_SEVERITIES
    assert choices.LINT_BASELINE == BASELINE
    assert get_args(Shape) == choices.MANIFEST_SHAPES
    assert choices.PROMETHEUS_LABEL == PROMETHEUS_ALLOWED
    assert choices.SYSTEM_NAMESPACES == SYSTEM_NAMESPACES
    assert get_args(TenancyMode) == choices.TENANCY_MODES
