"""Savings that are too small to pay for memory: a model's seconds are off by more than these."""

MATERIAL = 0.05  # of the seconds of a plan: a smaller saving pays for no memory
MOST = 1.1  # times the temporaries of propagation alone, for a saving of starts
MUCH = 1.2  # of the memory of a plan: one that stores more saves a material part of the time, and says by how much
