"""Redistribution problems by number: random ones, every one of a small mesh, and smaller ones of one that fails.

A problem is plain data, and says for itself, by the arithmetic of its mesh alone, which tile each device holds
(``Side.held``) and of which partial sum (``Side.summands``). What ``shardpass.sharding`` makes of the same words is a
second opinion.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from shardpass.element_types import ELEMENT_TYPES, element_type
from shardpass.sharding import AxisRef, Mesh, Sharding, parse_sharding

MESHES: tuple[tuple[int, ...], ...] = (
    (2, 2, 2), (2, 4), (8,), (2, 3), (4, 6), (2, 2, 3, 2),
    (5,), (7,), (3, 5), (1,), (16,), (4, 4), (2, 2), (3, 2, 2), (12,), (2, 1, 4), (24,), (9,), (3, 3),
)  # fmt: skip
SMALL_MESHES = {"2x2": (2, 2), "2x4": (2, 4), "2x2x2": (2, 2, 2), "2x2x3": (2, 2, 3)}
AXES = "abcdef"
EVEN_SHAPE, UNEVEN_SHAPE = (24, 24), (7, 9)  # both of every exhaustive problem
SCATTER = 1009  # a prime that divides none of their counts


@dataclass(frozen=True, slots=True)
class Side:
    """A source or a target. ``kind``: tiled, replicated or maximal (then ``device`` holds the array).

    A tiled one has mesh axes ``sizes``, called a, b, c.. by place; ``order``, the devices in row-major mesh order
    (None: 0, 1, 2..); for each dimension the axes, or sub-axes, that split it, major to minor; and those over which
    the value is a partial sum, or a partial ``reduction`` (sum, max or min).
    """

    kind: str
    sizes: tuple[int, ...] = ()
    order: tuple[int, ...] | None = None
    dims: tuple[tuple[AxisRef, ...], ...] = ()
    unreduced: tuple[AxisRef, ...] = ()
    reduction: str = "sum"
    device: int = 0

    @classmethod
    def of(cls, text: str) -> Side:
        """What a sharding's text says, as ``shardpass.sharding`` reads it."""
        sharding = parse_sharding(text)
        assert isinstance(sharding, Sharding)
        if sharding.is_maximal or sharding.mesh is None:
            return cls("maximal" if sharding.is_maximal else "replicated", device=sharding.device or 0)
        mesh = sharding.mesh

        def named(axes: tuple[AxisRef, ...]) -> tuple[AxisRef, ...]:
            return tuple(replace(ref, name=AXES[mesh.names.index(ref.name)]) for ref in axes)

        return cls("tiled", mesh.shape, mesh.device_ids, tuple(map(named, sharding.dims)), named(sharding.unreduced))

    @property
    def mesh(self) -> Mesh:
        return Mesh(tuple(zip(AXES, self.sizes, strict=False)), self.order)

    def sharding(self) -> Sharding:
        if self.kind == "replicated":
            return Sharding.replicated()
        if self.kind == "maximal":
            return Sharding.maximal(self.device)
        return Sharding.tiled(self.mesh, self.dims, unreduced=self.unreduced, reduction=self.reduction)

    def counts(self, rank: int) -> tuple[int, ...]:
        """Tiles along each dimension."""
        return tuple(math.prod(map(self._size, axes)) for axes in self.dims) if self.dims else (1,) * rank

    def tile(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(-(-n // k) for n, k in zip(shape, self.counts(len(shape)), strict=True))

    def held(self, shape: tuple[int, ...], devices: int) -> list[tuple[slice, ...] | None]:
        """Where each device's tile lies in the array, padding and all; None for one that holds nothing."""
        if self.kind != "tiled":
            whole = tuple(slice(0, n) for n in shape)
            return [None if self.kind == "maximal" and d != self.device else whole for d in range(devices)]
        tile = self.tile(shape)
        found = []
        for place in self._places(devices):
            index = [self._number(axes, place) for axes in self.dims]
            found.append(tuple(slice(i * n, (i + 1) * n) for i, n in zip(index, tile, strict=True)))
        return list(found)

    def summands(self, devices: int) -> list[int]:
        """The number of the partial sum that each device has a tile of; 0 everywhere where values are whole."""
        if not self.unreduced:
            return [0] * devices
        return [self._number(self.unreduced, place) for place in self._places(devices)]

    def _places(self, devices: int) -> list[tuple[int, ...]]:
        """The mesh coordinates of each device."""
        found: list[tuple[int, ...]] = [()] * devices
        order = self.order or range(devices)
        for device, place in zip(order, itertools.product(*map(range, self.sizes)), strict=True):
            found[device] = place
        return found

    def _size(self, ref: AxisRef) -> int:
        return ref.size or self.sizes[AXES.index(ref.name)]

    def _number(self, axes: tuple[AxisRef, ...], place: tuple[int, ...]) -> int:
        number = 0
        for ref in axes:
            k, size = AXES.index(ref.name), self._size(ref)
            number = number * size + place[k] // (self.sizes[k] // (ref.pre * size)) % size
        return number


@dataclass(frozen=True, slots=True)
class Problem:
    """An array of ``shape`` that goes from ``source`` to ``target`` on ``devices`` devices; ``number``: its seed."""

    number: int
    shape: tuple[int, ...]
    element: str
    source: Side
    target: Side
    devices: int
    profile: str = "default"
    limit: int | str | None = "max"

    @property
    def is_even(self) -> bool:
        """Whether tiles fill the array on both sides."""
        rank = len(self.shape)
        counts = [side.counts(rank) for side in (self.source, self.target)]
        return all(n % k == 0 for row in counts for n, k in zip(self.shape, row, strict=True))

    @property
    def is_identity(self) -> bool:
        """Whether every device holds its target tile, and nothing else."""
        before, after = (side.held(self.shape, self.devices) for side in (self.source, self.target))
        return all(want in (None, have) for have, want in zip(before, after, strict=True))

    @property
    def communicates(self) -> bool:
        """Whether some device needs what it does not hold."""
        before, after = (side.held(self.shape, self.devices) for side in (self.source, self.target))
        return any(
            want is not None
            and (have is None or any(w.start < h.start or h.stop < w.stop for h, w in zip(have, want, strict=True)))
            for have, want in zip(before, after, strict=True)
        )

    def __str__(self) -> str:
        source, target = self.source.sharding(), self.target.sharding()
        terms = "" if self.profile == "default" else f", profile={self.profile!r}"
        terms += "" if self.limit == "max" else f", memory_limit={self.limit!r}"
        call = f"{self.shape}, {self.element!r}, {str(source)!r}, {str(target)!r}, num_devices={self.devices}{terms}"
        return f"plan_redistribution({call})"

    def greatest_tile(self) -> int:
        """Elements of the greater of the two tiles.

        A dimension that both sides split into tiles whose borders cross is padded to a multiple of both counts; one
        that a single side splits to a multiple of that side's.
        """
        rank = len(self.shape)
        counts = [side.counts(rank) for side in (self.source, self.target)]
        padded = []
        for n, column in zip(self.shape, zip(*counts, strict=True), strict=True):
            filled = {-(-n // k) * k for k in column if k > 1} or {n}
            both = math.lcm(*column)
            padded.append(filled.pop() if len(filled) == 1 else -(-n // both) * both)
        return max(math.prod(-(-n // k) for n, k in zip(padded, row, strict=True)) for row in counts)


# ---------------------------------------------------------------- random


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


# ---------------------------------------------------------------- of every kind there is


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


# ---------------------------------------------------------------- smaller


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
