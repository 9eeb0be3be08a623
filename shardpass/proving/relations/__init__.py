"""Relations: what a proof knows about a value. Terms of the whole program, pieces of tiles, and the effect of ops on
both.
"""
