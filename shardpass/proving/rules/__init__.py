"""Rules that derive the contents of an op's results from those of its operands. One file for each family; ``table``
lists all.
"""
