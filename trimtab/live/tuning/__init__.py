"""tuning: better settings at night, from each workload's own days; and back again where they do worse than promised."""
