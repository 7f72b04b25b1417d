"""Half an hour on a real control plane: operators restarted in turn while objects come and go."""
