"""The GitHub Action: what its script writes for a pull request, and when it fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HISTORY = ROOT / "examples/007-history"


@pytest.mark.parametrize("workload_first", [False, True])
@pytest.mark.parametrize(("fail_if", "code"), [("violations > 100%", 0), ("violations > 0.05%\ncost > +90%", 1)])
def test_the_report_has_both_and_the_code_is_the_worse(
    tmp_path: Path, fail_if: str, code: int, workload_first: bool
) -> None:
    new = tmp_path / "new.yaml"
    new.write_text((HISTORY / "hpa.yaml").read_text().replace("averageUtilization: 80", "averageUtilization: 85"))
    workload = tmp_path / "deployment.yaml"
    workload.write_text((HISTORY / "web-deployment.yaml").read_text().replace("# trimtab:ignore=", "# not ignored: "))
    settings = {
        "MANIFESTS": f"{workload} {new}" if workload_first else f"{new} {workload}",
        "BASE": str(HISTORY / "hpa.yaml"),
        "LOAD": "generate:office,days=1,peak=9",
        "FAIL_IF": fail_if,
        "REPORT": str(tmp_path / "report.md"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        [ROOT / "deploy/action/judge.sh"], env=os.environ | settings, capture_output=True, timeout=300
    )
    report = (tmp_path / "report.md").read_text()
    assert done.returncode == code, report
    assert "replicas-in-manifest" in report, "a warning is told and does not fail"
    assert "| web (hpa) |" in report and "| web (new) |" in report
    assert ("> over the limit: web (new): violations" in report) == (code == 1)
