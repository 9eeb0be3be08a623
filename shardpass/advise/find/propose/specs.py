"""Specs as edits change them: the axes that split each dimension."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product
from math import prod

from shardpass.advise.place.specs import Spec
from shardpass.program.program import Array, Program
from shardpass.sharding import Sharding

Axes = Mapping[str, int]


def variants(spec: Spec, shape: Sequence[int], axes: Axes) -> Iterator[Spec]:
    """Yield specs like ``spec``: with an axis more, less or elsewhere, another axis, two axes exchanged, and
    no axis.
    """
    used = [(dim, name) for dim, names in enumerate(spec) for name in names]
    rank = len(shape)
    specs: list[Spec] = []
    for name in axes:
        if all(name != other for _, other in used):
            specs += [with_axis(spec, dim, name) for dim in range(rank)]
    for dim, name in used:
        without = without_axis(spec, name)
        specs += [with_axis(without, dim, other) for other in axes if all(other != known for _, known in used)]
        specs += [with_axis(without, other, name) for other in range(rank) if other != dim]
    for (first, one), (second, other) in permutations(used, 2):
        if first < second:
            swapped = without_axis(without_axis(spec, one), other)
            specs.append(with_axis(with_axis(swapped, first, other), second, one))
    specs += [without_axis(spec, name) for _, name in used]
    specs.append(((),) * rank)
    yield from (one for one in dict.fromkeys(specs) if one != spec and divides(one, shape, axes))


def every_spec(shape: Sequence[int], axes: Axes, most: int | None = None) -> Iterator[Spec]:
    """Yield the specs of an array: each axis on a dimension that it divides evenly, or unused; specs with few axes
    come first.

    ``most``: axes that split anything; by default all.
    """
    places = sorted(product(range(-1, len(shape)), repeat=len(axes)), key=lambda some: sum(dim >= 0 for dim in some))
    for some in places:
        if most is not None and sum(dim >= 0 for dim in some) > most:
            return
        split = list(zip(some, axes, strict=True))
        spec = tuple(tuple(name for dim, name in split if dim == place) for place in range(len(shape)))
        if divides(spec, shape, axes):
            yield spec


def over(axes: Iterable[str], rank: int, dim: int = 0) -> Spec:
    """Return the spec that splits one dimension alone."""
    return tuple(tuple(axes) if place == dim else () for place in range(rank))


def with_axis(spec: Spec, dim: int, name: str) -> Spec:
    return tuple((*names, name) if place == dim else names for place, names in enumerate(spec))


def without_axis(spec: Spec, name: str) -> Spec:
    return tuple(tuple(one for one in names if one != name) for names in spec)


def axes_of(spec: Spec | None) -> frozenset[str]:
    """Return the axes that split any dimension."""
    return frozenset(name for names in spec or () for name in names)


def divides(spec: Spec, shape: Sequence[int], axes: Axes) -> bool:
    """Return whether the axes divide the sizes of all dimensions, and no axis splits two of them."""
    every = [name for names in spec for name in names]
    if len(set(every)) < len(every):
        return False
    return all(size % prod(axes.get(name, 1) for name in names) == 0 for names, size in zip(spec, shape, strict=True))


def tile(array: Array, spec: Spec | None, axes: Axes) -> float:
    """Return the bytes of ``array`` on a device, split as ``spec``."""
    return array.bytes / prod(axes.get(name, 1) for names in spec or () for name in names)


def whole(sharding: Sharding | None, rank: int, program: Program) -> Spec | None:
    """Return ``sharding`` by whole axes, without parts of axes; None where axes of the mesh cannot express it."""
    dims = None if sharding is None else program.mesh.dims(sharding, rank)
    if dims is None:
        return None
    refs = [program.mesh.refs(axes) for axes in dims]
    return tuple(tuple(ref.name for ref in some if ref.size is None) for some in refs)
