"""Small random programs, and the shardings that each of their values may have."""
