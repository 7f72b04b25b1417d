"""act: patches, each guarded; only a leader may write."""
