"""Redistribution problems by number: random ones, every one of a small mesh, and those that Shardy's passes take."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from random import Random

from shardpass.element_types import ELEMENT_TYPES, element_type
from shardpass.sharding import AxisRef
from tools.prove.redistribution_problems import AXES, Problem, Side

MESHES: tuple[tuple[int, ...], ...] = (
    (2, 2, 2), (2, 4), (8,), (2, 3), (4, 6), (2, 2, 3, 2),
    (5,), (7,), (3, 5), (1,), (16,), (4, 4), (2, 2), (3, 2, 2), (12,), (2, 1, 4), (24,), (9,), (3, 3),
)  # fmt: skip

SMALL_MESHES = {"2x2": (2, 2), "2x4": (2, 4), "2x2x2": (2, 2, 2), "2x2x3": (2, 2, 3)}

EVEN_SHAPE, UNEVEN_SHAPE = (24, 24), (7, 9)  # both of every exhaustive problem

SCATTER = 1009  # a prime that divides none of their counts


def random_problem(seed: int, elements: int = 1 << 13, element: str = "") -> Problem:
    """A problem of about ``elements`` elements at most, of a random type unless one is given."""
    rng = Random(f"redistribute/{seed}")
    sizes = rng.choices(MESHES, [4] * 6 + [1] * (len(MESHES) - 6))[0]
    devices = math.prod(sizes)
    rank = rng.choices(range(7), [1, 4, 8, 6, 3, 2, 2])[0]
    source = _side(rng, sizes, rank)
    if source.kind == "tiled" and rng.random() < 0.12:
        source = _with_sums(rng, source)
    target = _target(rng, source, sizes, rank)
    shape = _shape(rng, [side.counts(rank) for side in (source, target)], elements)
    chosen = rng.choice(ELEMENT_TYPES).mlir
    element = element or chosen
    if source.unreduced and "E8M0" in element:
        element = "bf16"  # a type that has a zero, and so sums
    profile = rng.choices(["default", "paper", "cpu", "ethernet"], [7, 1, 1, 1])[0]
    problem = Problem(seed, shape, element, source, target, devices, profile)
    bytes_of_tile = element_type(element).bytes(problem.greatest_tile())
    limit = rng.choices(["max", None, 2 * bytes_of_tile, 4 * bytes_of_tile], [17, 1, 1, 1])[0]
    return _with_extremes(rng, replace(problem, limit=limit))


def _with_extremes(rng: Random, problem: Problem) -> Problem:
    """Some problems of partial sums made such of partial maxima or minima."""
    if not problem.source.unreduced or problem.element.startswith("complex") or rng.random() < 0.7:
        return problem
    reduction = rng.choice(["max", "min"])
    source, target = (
        replace(side, reduction=reduction) if side.unreduced else side for side in (problem.source, problem.target)
    )
    return replace(problem, source=source, target=target)


def _side(rng: Random, sizes: tuple[int, ...], rank: int) -> Side:
    dice = rng.random()
    if dice < 0.05:
        return Side("replicated")
    if dice < 0.12:
        return Side("maximal", device=rng.randrange(math.prod(sizes)))
    if dice < 0.22:
        sizes = rng.choice([s for s in MESHES if math.prod(s) == math.prod(sizes)])
    return Side("tiled", sizes, _order(rng, sizes), _dims(rng, sizes, rank))


def _order(rng: Random, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    """The devices in mesh order: mostly their own; a transposed iota; or any, which no two meshes share."""
    devices, dice = math.prod(sizes), rng.random()
    if dice < 0.75:
        return None
    if dice < 0.88:
        return tuple(rng.sample(range(devices), devices))
    turned = rng.sample(range(len(sizes)), len(sizes))
    strides = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    grid = itertools.product(*(range(sizes[k]) for k in turned))
    return tuple(sum(i * strides[k] for i, k in zip(place, turned, strict=True)) for place in grid)


def _dims(rng: Random, sizes: tuple[int, ...], rank: int) -> tuple[tuple[AxisRef, ...], ...]:
    parts = [part for k, size in enumerate(sizes) for part in _parts(rng, AXES[k], size)]
    rng.shuffle(parts)
    dims: list[tuple[AxisRef, ...]] = [()] * rank
    fill = rng.choice([0.5, 0.8, 1.0])
    for part in parts:
        if rank and rng.random() < fill:
            dim = rng.randrange(rank)
            dims[dim] += (part,)
    return tuple(dims)


def _parts(rng: Random, name: str, size: int) -> list[AxisRef]:
    """An axis, or two sub-axes of it."""
    cuts = [k for k in range(2, size) if size % k == 0]
    if not cuts or rng.random() < 0.7:
        return [AxisRef(name)]
    cut = rng.choice(cuts)
    return [AxisRef(name, 1, cut), AxisRef(name, cut, size // cut)]


def _with_sums(rng: Random, side: Side) -> Side:
    """Partial over some of the axes that split nothing, or over one that did."""
    used = [ref for axes in side.dims for ref in axes]
    free = [AxisRef(AXES[k]) for k in range(len(side.sizes)) if all(ref.name != AXES[k] for ref in used)]
    if not free and used:
        taken = rng.choice(used)
        free = [taken]
        side = replace(side, dims=tuple(tuple(ref for ref in axes if ref != taken) for axes in side.dims))
    free = [ref for ref in free if side._size(ref) > 1]
    return replace(side, unreduced=tuple(rng.sample(free, rng.randint(min(1, len(free)), len(free)))))


def _target(rng: Random, source: Side, sizes: tuple[int, ...], rank: int) -> Side:
    dice = rng.random()
    if dice < 0.03:
        return source if not source.unreduced or rng.random() < 0.5 else replace(source, unreduced=())
    if source.kind != "tiled" or dice < 0.25:
        target = _side(rng, sizes, rank)
    else:
        target = replace(source, dims=_dims(rng, source.sizes, rank), unreduced=())
    if source.unreduced and target.kind == "tiled" and target.sizes == source.sizes and rng.random() < 0.35:
        return _keeping(rng, source, target)
    return target


def _keeping(rng: Random, source: Side, target: Side) -> Side:
    """The target with some of the source's partial sums kept; the axes of these split nothing."""
    kept = tuple(rng.sample(source.unreduced, rng.randint(1, len(source.unreduced))))
    names = {ref.name for ref in kept}
    dims = tuple(tuple(ref for ref in axes if ref.name not in names) for axes in target.dims)
    return replace(target, dims=dims, unreduced=kept)


def _shape(rng: Random, counts: list[tuple[int, ...]], elements: int) -> tuple[int, ...]:
    """Sizes that every count divides, or any, among them less than the count and such that leave last tiles empty."""
    even = rng.random() < 0.55
    out: list[int] = []
    left = elements
    for one, other in zip(*counts, strict=True):
        need = math.lcm(one, other)
        dice = rng.random()
        if even or dice < 0.3:
            size = need * rng.choice([1, 1, 2, 3])
        elif dice < 0.5:
            size = rng.choice([one, other]) * rng.randint(1, 3)
        else:
            size = rng.randint(1, 13)
        if size > left:
            size = need if need <= left else rng.randint(1, max(1, min(left, 5)))
        left //= size
        out.append(size)
    if out and rng.random() < 0.02:
        out[rng.randrange(len(out))] = 0
    return tuple(out)


@cache
def placements(mesh: str) -> tuple[tuple[tuple[AxisRef, ...], ...], ...]:
    """Every way to put the axes of a small mesh on two dimensions: each on one or on none, in every order."""
    found = []
    names = AXES[: len(SMALL_MESHES[mesh])]
    for where in itertools.product((None, 0, 1), repeat=len(names)):
        dims = [[AxisRef(n) for n, w in zip(names, where, strict=True) if w == dim] for dim in (0, 1)]
        found += list(itertools.product(*(itertools.permutations(axes) for axes in dims)))
    return tuple(found)


def exhaustive(mesh: str) -> int:
    """How many problems ``exhaustive_problem`` knows."""
    return 2 * len(placements(mesh)) ** 2


def exhaustive_problem(mesh: str, number: int) -> Problem:
    """Problem ``number``: a pair of placements, for a shape that all tiles divide or for one that few do.

    Every problem once, and in an order in which the first few hundred are of every kind.
    """
    sizes, ways = SMALL_MESHES[mesh], placements(mesh)
    rest, uneven = divmod(number * SCATTER % exhaustive(mesh), 2)
    before, after = (Side("tiled", sizes, None, ways[k]) for k in divmod(rest, len(ways)))
    return Problem(number, UNEVEN_SHAPE if uneven else EVEN_SHAPE, "i32", before, after, math.prod(sizes))


def whole_axes_problem(seed: int) -> Problem:
    """A random problem that Shardy can be asked: whole axes of one plain mesh, tiles that divide; f32."""
    rng = Random(f"shardy/{seed}")
    while True:
        sizes = rng.choice(MESHES[:6])
        rank = rng.randint(1, 4)
        names = [AxisRef(AXES[k]) for k in range(len(sizes))]
        sides = []
        for _ in range(2):
            dims: list[tuple[AxisRef, ...]] = [()] * rank
            for ref in rng.sample(names, len(names)):
                where = rng.randint(-1, rank - 1)
                if where >= 0:
                    dims[where] += (ref,)
            sides.append(Side("tiled", sizes, None, tuple(dims)))
        counts = zip(*(side.counts(rank) for side in sides), strict=True)
        shape = tuple(math.lcm(*pair) * rng.randint(1, 2) for pair in counts)
        problem = Problem(seed, shape, "f32", sides[0], sides[1], math.prod(sizes))
        if problem.communicates:
            return problem
