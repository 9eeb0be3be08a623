"""Which devices certainly hold equal values of a manual region, and whether its outputs may rely on that."""
