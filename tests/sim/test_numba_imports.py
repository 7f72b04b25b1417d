"""Only commands that simulate load the compiler: 70 MB and half a second that nobody else needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROBE = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
if sys.argv[1] == "trimtab.live":
    for module in pkgutil.walk_packages(package.__path__, "trimtab.live."):
        importlib.import_module(module.name)
print("numba" in sys.modules)
"""


@pytest.mark.parametrize("package", ["trimtab.cli", "trimtab.cli.run", "trimtab.live"])
def test_the_operator_and_the_command_line_import_no_compiler(package: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, package], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
