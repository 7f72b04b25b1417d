"""tell: status, conditions, events, metrics and the journal."""
