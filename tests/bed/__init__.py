"""The test bed, a real control plane without containers: `from tests.bed import Bed`."""

from tests.bed.bed import Bed
from tests.bed.waiting import PATIENCE_S, always, eventually

__all__ = ["PATIENCE_S", "Bed", "eventually", "always"]
