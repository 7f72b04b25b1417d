"""trimtab: the right number of pods, of the right size, before the load arrives."""

__version__ = "0.2.0"
