"""usage: what containers need, from decaying histograms of what they used (VPA's mathematics, batched)."""

from trimtab.core.usage.book import Book, Sample
from trimtab.core.usage.estimate import usages
from trimtab.core.usage.settings import VPA_FLOOR, Settings

__all__ = ["Book", "Sample", "Settings", "VPA_FLOOR", "usages"]
