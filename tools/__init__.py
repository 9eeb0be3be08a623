"""Benchmarks, fuzzers, proofs and the writers of generated pages. Run one as ``python -m tools.bench.compile``."""
