"""The rules: the contents of the results of each op follow from those of its operands. One file a family; ``table`` has
all.
"""
