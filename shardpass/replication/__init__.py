"""Compute which devices hold equal values in manual regions, and check outputs declared replicated."""
