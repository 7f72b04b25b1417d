"""The bill of materials that every image carries."""

from __future__ import annotations

import importlib.util
from importlib.metadata import version
from pathlib import Path
from sysconfig import get_path

DEPLOY = Path(__file__).parents[1] / "deploy"
STATUS = """Package: base-files
Status: install ok installed
Version: 12.4+deb12u5

Package: left-over
Status: deinstall ok config-files
Version: 1
"""


def test_it_names_python_s_the_page_s_and_the_base_s_packages(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("sbom", DEPLOY / "sbom.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "status").write_text(STATUS)
    lock = DEPLOY.parent / "page/package-lock.json"
    found = module.sbom(Path(get_path("purelib")), lock, tmp_path / "status")
    purls = [part["purl"] for part in found["components"]]
    assert purls == sorted(purls) and f"pkg:pypi/numpy@{version('numpy')}" in purls
    assert "pkg:deb/debian/base-files@12.4%2Bdeb12u5" in purls and not any("left-over" in purl for purl in purls)
    assert any(purl.startswith("pkg:npm/uplot@") for purl in purls)
