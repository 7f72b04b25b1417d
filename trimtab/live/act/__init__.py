"""act: patches, each guarded; only a leader's pen writes."""
