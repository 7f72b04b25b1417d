"""Write the CustomResourceDefinitions of this chart from the kinds: `.venv/bin/python deploy/trimtab/write_crds.py`."""

from __future__ import annotations

from pathlib import Path

from trimtab.cli.output import to_yaml
from trimtab.kinds.crd import definitions

FOLDER = Path(__file__).parent / "files" / "crds"
# Uninstalling the operator must not delete everybody's objects with the definitions.
KEEP = {"helm.sh/resource-policy": "keep"}


def files() -> dict[str, str]:
    """File name -> content, for each kind."""
    made = {}
    for one in definitions():
        meta = one["metadata"]
        annotations = {**meta.get("annotations", {}), **KEEP}
        made[f"{meta['name']}.yaml"] = to_yaml({**one, "metadata": {**meta, "annotations": annotations}})
    return made


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.yaml"):
        old.unlink()
    for name, text in files().items():
        (FOLDER / name).write_text(text)
