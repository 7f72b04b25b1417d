"""trimtab unfreeze: see freeze."""

from trimtab.cli.freeze import unfreeze as command

__all__ = ["command"]
