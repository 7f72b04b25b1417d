"""What an image is made of, as CycloneDX JSON: python deploy/sbom.py SITE_PACKAGES PACKAGE_LOCK > sbom.cdx.json

Python packages that are installed, what the page's bundle is made from, and the packages of a Debian base.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

BUNDLED = ("uplot",)  # of the page's packages the only one that reaches the browser


def component(kind: str, name: str, version: str, licence: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:{kind}/{quote(name)}@{quote(version)}",
    }
    return found | ({"licenses": [{"license": {"name": licence}}]} if licence else {})


def python_packages(site_packages: Path) -> Iterator[dict[str, Any]]:
    for found in distributions(path=[str(site_packages)]):
        about = found.metadata
        licence = about.get("License-Expression") or about.get("License") or ""
        yield component("pypi", about["Name"], found.version, licence.splitlines()[0] if licence else "")


def bundled_packages(lock: Path) -> Iterator[dict[str, Any]]:
    packages = json.loads(lock.read_text())["packages"]
    for name in BUNDLED:
        found = packages[f"node_modules/{name}"]
        yield component("npm", name, found["version"], found.get("license", ""))


def debian_packages(status: Path) -> Iterator[dict[str, Any]]:
    for paragraph in status.read_text().split("\n\n") if status.exists() else ():
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            yield component("deb/debian", fields["Package"], fields["Version"])


def sbom(site_packages: Path, lock: Path, status: Path) -> dict[str, Any]:
    parts = [*python_packages(site_packages), *bundled_packages(lock), *debian_packages(status)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": sorted(parts, key=lambda part: str(part["purl"])),
    }


if __name__ == "__main__":
    packages, lock = map(Path, sys.argv[1:])
    print(json.dumps(sbom(packages, lock, Path("/var/lib/dpkg/status")), indent=1))
