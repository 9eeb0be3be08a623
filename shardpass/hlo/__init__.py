"""Optimised HLO as a value: its ops, the collectives that run and how often, and the lines that they come from."""
