"""The learned forecaster: one network for all workloads, fine-tuned on the history of each."""

from trimtab.core.forecast.learned.model import FORECASTER

__all__ = ["FORECASTER"]
