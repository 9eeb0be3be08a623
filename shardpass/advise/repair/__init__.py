"""Repair programs with explicit axes, whose types contain shardings: which types to write, and which to omit."""
