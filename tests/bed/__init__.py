"""The test bed, a real control plane without containers: `from tests.bed import Bed`."""

from tests.bed.bed import Bed
from tests.bed.waiting import always, eventually

__all__ = ["Bed", "eventually", "always"]
