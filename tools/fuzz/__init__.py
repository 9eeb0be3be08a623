"""Fuzzers: random programs, redistributions and sharding texts, held to independent witnesses."""
