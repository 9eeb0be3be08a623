"""Generators of random ops, one file for each sort."""
