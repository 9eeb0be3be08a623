"""Redistribution problems one step simpler than one that fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tools.prove.redistribution_problems import Problem, Side


def smaller(problem: Problem) -> Iterator[Problem]:
    """Problems one step simpler, the boldest first."""
    rank = len(problem.shape)
    for i in range(rank):
        shape = problem.shape[:i] + problem.shape[i + 1 :]
        yield replace(
            problem, shape=shape, source=_without_dim(problem.source, i), target=_without_dim(problem.target, i)
        )
    yield from (replace(problem, source=side) for side in _smaller_sides(problem.source))
    yield from (replace(problem, target=side) for side in _smaller_sides(problem.target))
    if problem.profile != "default":
        yield replace(problem, profile="default")
    if problem.limit != "max":
        yield replace(problem, limit="max")
    if problem.element != "i32":
        yield replace(problem, element="i32")
    for i, n in enumerate(problem.shape):
        for less in (1, n // 2, n - 1):
            if 0 < less < n:
                yield replace(problem, shape=(*problem.shape[:i], less, *problem.shape[i + 1 :]))


def _without_dim(side: Side, dim: int) -> Side:
    return replace(side, dims=side.dims[:dim] + side.dims[dim + 1 :]) if side.dims else side


def _smaller_sides(side: Side) -> Iterator[Side]:
    """``side`` with the devices in mesh order, without one of its axes, or on device 0."""
    if side.order is not None:
        yield replace(side, order=None)
    for i, axes in enumerate(side.dims):
        for k in range(len(axes)):
            yield replace(side, dims=(*side.dims[:i], axes[:k] + axes[k + 1 :], *side.dims[i + 1 :]))
    if side.device:
        yield replace(side, device=0)
