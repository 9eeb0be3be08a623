"""The rules: for each op, what its results hold, from what its operands hold. One file a family; ``table`` has all."""
