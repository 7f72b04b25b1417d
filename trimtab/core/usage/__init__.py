"""usage: what containers need, from decaying histograms of what they used (VPA's mathematics, batched)."""
