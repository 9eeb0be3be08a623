"""Computes which devices hold equal values in manual regions, and checks outputs declared replicated."""
