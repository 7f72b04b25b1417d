"""annotations: the keys that the operator itself writes or reads; those of users' wishes are of `kinds`."""

ENABLED = "trimtab.dev/enabled"  # a label of a namespace; "false" opts out
ORIGINAL_FLOOR, FLOOR, UNTIL = "trimtab.dev/min-replicas", "trimtab.dev/floor", "trimtab.dev/floor-until"
