"""Prove small programs by comparing each element of each tile as a number in a table of scalar terms."""
