"""Proofs by brute force: rules of ops, laws of redistribution, and XLA's own parser as a witness."""
