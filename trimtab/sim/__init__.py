"""The simulated cluster: load, pods, faults and clock around decide(); scores, the optimum, and compiled lanes."""
