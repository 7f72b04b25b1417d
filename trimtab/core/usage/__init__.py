"""usage: what containers need, from decaying histograms of what they used (VPA's mathematics, batched)."""

from trimtab.core.usage.estimate import usages
from trimtab.core.usage.histograms import ContainerSample, UsageHistograms
from trimtab.core.usage.settings import VPA_FLOOR, HistogramSettings

__all__ = ["UsageHistograms", "ContainerSample", "HistogramSettings", "VPA_FLOOR", "usages"]
