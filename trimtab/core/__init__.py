"""PURE: no clock, no I/O, no logging, no randomness, no environment, no Kubernetes. Start with `decide`."""
