"""The sub-axes over which a split leaves partial results."""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.ops.splits.factors import Axes, Kind, Rule


def partial_axes(rule: Rule, factors: Sequence[Axes]) -> Axes:
    """List the sub-axes of all split REDUCTION factors, factor by factor; ``factors[f]`` splits factor f."""
    return tuple(
        axis
        for factor, axes in zip(rule.factors, factors, strict=True)
        if factor.kind is Kind.REDUCTION
        for axis in axes
    )
