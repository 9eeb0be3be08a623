"""Reports of programs in HLO: what XLA, or another partitioner that hands XLA its program, made of a user's."""
