"""annotations: the keys that the operator itself writes or reads; those of users' wishes are of `kinds`."""

ORIGINAL_FLOOR = "trimtab.dev/min-replicas"  # of a predictive HPA: its user's own minReplicas
RAISED_FLOOR = "trimtab.dev/floor"  # the minReplicas that the operator wrote
RAISED_FLOOR_UNTIL = "trimtab.dev/floor-until"  # unix seconds: it is not lowered before
ENABLED = "trimtab.dev/enabled"  # label of a namespace; "false": nothing in it is touched
KEDA_PAUSED = "autoscaling.keda.sh/paused"  # "true": KEDA does not scale this ScaledObject
