"""Reports of HLO programs, from XLA or from other partitioners that produce HLO."""
