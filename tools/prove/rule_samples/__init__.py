"""The one-op programs on which the rules are proved, one file for each sort of op."""
