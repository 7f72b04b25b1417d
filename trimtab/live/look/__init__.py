"""look: what an object says, what its target is like now, who else moves it."""
