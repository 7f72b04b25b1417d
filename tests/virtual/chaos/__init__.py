"""Seeded trouble for the whole operator: honest objects among hostile ones, faults, and checkers after every step."""
