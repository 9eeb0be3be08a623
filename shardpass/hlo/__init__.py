"""Read optimised HLO: its ops, its collectives with their number of runs, and source lines."""
