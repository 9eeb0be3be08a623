"""Edits: the annotation to drop, replace or add that saves most in another partitioner's program, verified there."""
