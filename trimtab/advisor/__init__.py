"""The advisor: document 000 on a cluster's objects and their past, for the operator and for `trimtab recommend`."""
