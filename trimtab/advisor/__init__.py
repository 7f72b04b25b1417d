"""The advisor: recommendations from a cluster's objects and their history, for the operator and `trimtab recommend`."""
