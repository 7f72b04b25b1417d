"""A large fleet on a real control plane: what it is, what is measured of it, what happens to it."""
