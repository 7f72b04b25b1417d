"""act: patches, each guarded; only a leader's writer writes."""
