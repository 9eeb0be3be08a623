"""The plan of a cheapest path over tile shapes: ``planner="rink"``, the paper's method.

Source: Rink et al., sections 6.1 and 7.3.

Problem: a path of ``rink_search`` says how many tiles each dimension has after each step, and leaves open which device
has which tile. State: a ``Tiling``, which gives each device its tile, after each step.

1. A slice is free to choose which devices keep which part. The choices tried are parts of the target's own tile
   indices, so that the permute of case 3 vanishes where it can. Of equally cheap paths and choices the first that needs
   no permute wins.
2. An all_to_all or all_gather has no choice: the neighbours along a dimension form the groups.
3. Where the tiles still end up on the wrong devices, one permute is put before the gathers, when tiles are smallest.
   It always exists (lemma 5.1), also where source and target share no mesh.

Example: 8x8 elements on x=2, y=2, from [{x}, {}] to [{}, {x}]. The all_to_all in pairs along dimension 0 leaves every
device with its target's tile. To [{}, {y}] it leaves devices 1 and 2 with each other's tile: a permute follows.

Invariants: at most one permute; the kinds of steps match dynslice* (alltoall | allpermute)* allgather*.

O(devices * rank) for each pair of a path and a choice, at most ``MOST_TRIALS`` of them are tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from shardpass.redistribute.candidates.rink_search import Phase, WeakCollective, shortest_paths
from shardpass.redistribute.problem.device_arrays import IntArray, group_of, least_permutation, moving_pairs, replaced
from shardpass.redistribute.problem.tiling import Tiling
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder
from shardpass.sharding.primes import prime_factors

MOST_TRIALS = 64  # of paths and choices for their slices, per plan
MOST_TRIED = 1 << 15  # trials times devices


def plan_rink(
    shape: tuple[int, ...], source: Tiling, target: Tiling, builder: Builder, *, in_rounds: bool = False
) -> None:
    """Append the paper's plan for an array whose ``shape`` both tilings divide.

    ``in_rounds`` goes beyond the paper: the permute and the all_to_all before it, if any, become rounds of
    permutes that take the bytes of the permute alone.
    """
    steered = _steer(shortest_paths(shape, source.counts, target.counts, len(source.index)), source, target)
    moves, here = steered.moves, steered.sliced
    _emit_slice(shape, source, here, builder)
    wanted = steered.aim.nearest(_after(here, moves))
    permuted = in_rounds and not steered.arrives
    for step in moves[:-1] if permuted else moves:
        builder.all_to_all(step.to, step.dim, here.groups(step.dim, step.factor))
        here = _moved(here, step)
    if permuted and moves:
        _permuting_all_to_all(here, moves[-1], wanted, builder)
    else:
        builder.permute(least_permutation(here.key, wanted.key))
    here = wanted
    for step in steered.gathers:
        builder.all_gather(step.dim, here.groups(step.dim, step.factor))
        here = here.joined(step.dim, step.factor)


def _permuting_all_to_all(here: Tiling, step: WeakCollective, wanted: Tiling, builder: Builder) -> None:
    """Build the all_to_all ``step`` with each chunk sent directly to its destination after the following permute."""
    groups = here.groups(step.dim, step.factor)
    place = here.index[:, step.dim] % step.factor
    member = least_permutation(_moved(here, step).key, wanted.key)  # whose tile each device gets in the end
    shift = np.arange(step.factor)[:, None]
    source_of = groups[group_of(groups)[member], (place[member] + shift) % step.factor]
    chunk = replaced(builder.tile, step.to, builder.tile[step.to] // step.factor)
    take = np.zeros((step.factor, builder.devices, len(chunk)), np.int64)
    take[:, :, step.to] = (place - shift) % step.factor * chunk[step.to]
    names = builder.sub_axes.along(moving_pairs(source_of))
    op = ops.ChunkRounds(chunk, chunk, step.dim, source_of, take, place[member], names)
    builder.rounds([op], source_of, chunk, replaced(chunk, step.dim, chunk[step.dim] * step.factor))


def _moved(tiling: Tiling, step: WeakCollective) -> Tiling:
    """Return the tiling after an all_to_all: block j of dimension ``to`` goes to the j-th neighbour along ``dim``."""
    part = tiling.index[:, step.dim] % step.factor
    return tiling.joined(step.dim, step.factor).split(step.to, step.factor, part)


def _emit_slice(shape: tuple[int, ...], source: Tiling, sliced: Tiling, builder: Builder) -> None:
    """Build all slices of the path as a single op: part ``index mod factor`` of each dimension of the source tile."""
    if sliced.counts == source.counts:
        return
    factors = np.array([k // s for k, s in zip(sliced.counts, source.counts, strict=True)])
    tile = tuple(n // k for n, k in zip(shape, sliced.counts, strict=True))
    builder.dynamic_slice(tile, sliced.index % factors * np.array(tile))


@dataclass(frozen=True, slots=True)
class _Refined:
    """The target's tiles, cut as finely as before the gathers that end the path."""

    target: Tiling
    factors: tuple[int, ...]  # per dimension, the product of its gathers

    @classmethod
    def of(cls, target: Tiling, gathers: list[WeakCollective]) -> _Refined:
        factors = (1,) * len(target.counts)
        for step in gathers:
            factors = replaced(factors, step.dim, factors[step.dim] * step.factor)
        return cls(target, factors)

    def nearest(self, here: Tiling) -> Tiling:
        """Return the part of its target tile that each device should have: its current part, where that is fair.

        Dimension by dimension; a choice is fair if the replicas of each target tile get its parts equally often.
        """
        out = self.target
        for dim, factor in enumerate(self.factors):
            if factor > 1:
                part = here.index[:, dim] % factor
                out = out.split(dim, factor, part if fair(out, factor, part) else out.replica % factor)
        return out

    def reached_by(self, here: Tiling) -> bool:
        return np.array_equal(self.nearest(here).key, here.key)


def fair(tiling: Tiling, factor: int, part: IntArray) -> bool:
    """Return whether the replicas of every tile have each of its ``factor`` parts the same number of times."""
    cells = tiling.key * factor + part
    counts = np.bincount(cells)
    return bool((counts[counts > 0] * factor == tiling.replicas).all())


@dataclass(frozen=True, slots=True)
class _SteeredPath:
    """A path with a choice of the part that each device slices."""

    sliced: Tiling
    moves: list[WeakCollective]
    gathers: list[WeakCollective]
    aim: _Refined

    @property
    def arrives(self) -> bool:
        """Whether the path needs no permute."""
        return self.aim.reached_by(_after(self.sliced, self.moves))


def _steer(paths: tuple[tuple[WeakCollective, ...], ...], source: Tiling, target: Tiling) -> _SteeredPath:
    """Return the first of equally cheap paths and choices of slices that needs no permute, else the first."""
    first: _SteeredPath | None = None
    trials = max(1, min(MOST_TRIALS, MOST_TRIED // len(source.index)))
    for trial, steered in enumerate(islice(_steered_paths(paths, source, target), trials)):
        first = steered if trial == 0 else first
        if steered.arrives:
            return steered
    assert first is not None  # there is a path, and the replica number always gives a choice
    return first


def _steered_paths(
    paths: tuple[tuple[WeakCollective, ...], ...], source: Tiling, target: Tiling
) -> Iterator[_SteeredPath]:
    for path in paths:
        slices, moves, gathers = ([step for step in path if step.phase == phase] for phase in Phase)
        aim = _Refined.of(target, gathers)
        for sliced in islice(_choices(source, _by_primes(slices), target), MOST_TRIALS // len(paths)):
            yield _SteeredPath(sliced, moves, gathers, aim)


def _after(tiling: Tiling, moves: list[WeakCollective]) -> Tiling:
    for step in moves:
        tiling = _moved(tiling, step)
    return tiling


def _by_primes(slices: list[WeakCollective]) -> list[tuple[int, int]]:
    """List (dimension, prime) for each axis that a slice puts on a dimension, major to minor."""
    return [(step.dim, p) for step in slices for p in reversed(prime_factors(step.factor))]


def _choices(source: Tiling, slices: list[tuple[int, int]], target: Tiling) -> Iterator[Tiling]:
    """List all combinations of the cuts that ``_parts`` offers for the slices, best first."""
    if not slices:
        yield source
        return
    (dim, prime), rest = slices[0], slices[1:]
    for part in _parts(source, dim, prime, target):
        yield from _choices(source.split(dim, prime, part), rest, target)


def _parts(source: Tiling, dim: int, prime: int, target: Tiling) -> Iterator[IntArray]:
    """List fair cuts of ``dim`` by ``prime``: by a factor of the target's index there or elsewhere, or by replica."""
    tried = set()
    order = [dim, *(i for i in range(len(target.counts)) if i != dim)]
    for i in order:
        stride = target.counts[i]
        for p in reversed(prime_factors(target.counts[i])):
            stride //= p
            if p != prime:
                continue
            part = target.index[:, i] // stride % p
            if (mark := part.tobytes()) not in tried and fair(source, p, part):
                tried.add(mark)
                yield part
    for part in (source.replica // (source.replicas // prime), source.replica % prime):
        if (mark := part.tobytes()) not in tried:
            tried.add(mark)
            yield part
