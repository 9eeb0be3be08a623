"""The choices of a program: for each value the shardings that it may have.

A sharding gives whole mesh axes to dimensions, in every order. Only
splits into at most as many parts as a dimension has elements are looked at. What the user fixed is one sharding; an
open argument or result of main takes splits that divide it, as the outside can hold no others; a result whose value the
user fixed leaves as that was fixed.

A *variable* is a value of the program, or a result of main (``Slot``), which has a sharding of its own. The values of a
constraint are one array with two variables.

Example on d=2, m=2: a matrix that nothing is said of has 11 shardings: none; d or m on either dimension; d and m on
different dimensions, two ways; on one dimension, in two orders each.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from shardpass.ops.splits.factors import Axes, DimAxes
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.options.axes import whole_axes
from shardpass.program.program import NO_ANNOTATION, OpKind, Program, ValueAnnotation
from shardpass.program.shardings import Shardings
from shardpass.sharding import Sharding

KNOWN_KINDS = (OpKind.SPLIT, OpKind.WHOLE, OpKind.CONSTRAINT)


class Unsupported(Exception):
    """The program has something that the choices do not cover; the message says what."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A result of main, by its place."""

    place: int


Variable = int | Slot


def distributions(given: Sequence[Axes], places: int) -> Iterator[tuple[Axes, ...]]:
    """Every way to give some of ``given`` to ``places`` lists, in every order within a list.

    The prime parts of one axis keep their order, major to minor: ``given`` of one axis is never turned around.
    """
    for chosen in itertools.product(range(places + 1), repeat=len(given)):
        lists = [[unit for unit, place in zip(given, chosen, strict=True) if place == at] for at in range(places)]
        for orders in itertools.product(*(list(itertools.permutations(one)) for one in lists)):
            yield tuple(tuple(axis for unit in order for axis in unit) for order in orders)


@dataclass(frozen=True)
class Space:
    """``domains``: the shardings of each variable; one that the user fixed has one."""

    program: Program
    domains: dict[Variable, tuple[Sharding, ...]]

    @property
    def free(self) -> list[Variable]:
        return [variable for variable, domain in self.domains.items() if len(domain) > 1]

    @property
    def size(self) -> int:
        """The number of assignments."""
        return prod(len(domain) for domain in self.domains.values())

    def shardings(self, chosen: dict[Variable, Sharding]) -> Shardings:
        """``chosen`` as the planner takes it; a slot that is not chosen holds what its value does."""
        results = tuple(chosen.get(Slot(place)) for place in range(len(self.program.body.returned)))
        return Shardings({v: s for v, s in chosen.items() if isinstance(v, int)}, results)


class Domains:
    """The shardings of each shape, made once for a mesh."""

    def __init__(self, mesh: PrimeMesh) -> None:
        self.mesh = mesh
        self.units = whole_axes(mesh)
        self._known: dict[tuple[tuple[int, ...], bool], tuple[Sharding, ...]] = {}

    def of(self, shape: tuple[int, ...], even: bool) -> tuple[Sharding, ...]:
        """Every sharding of an array of ``shape``, replicated first."""
        key = (shape, even)
        if key not in self._known:
            found = [dims for dims in distributions(self.units, len(shape)) if self._allowed(shape, dims, even)]
            self._known[key] = tuple(dict.fromkeys(map(self.mesh.sharding, found)))
        return self._known[key]

    def _allowed(self, shape: tuple[int, ...], dims: DimAxes, even: bool) -> bool:
        counts = [self.mesh.count(axes) for axes in dims]
        return all(count <= size and not (even and size % count) for size, count in zip(shape, counts, strict=True))


def space_of(program: Program, domains: Domains) -> Space:
    """The choices of ``program``. Raises Unsupported."""
    for op in program.body.ops:
        if op.kind not in KNOWN_KINDS:
            raise Unsupported(f"{op.name}: {op.kind.value}")
    border = set(program.body.arguments)
    found: dict[Variable, tuple[Sharding, ...]] = {}
    for value, array in enumerate(program.arrays):
        if array is None:
            raise Unsupported(f"value {value} is no array")
        said = program.annotations.get(value, NO_ANNOTATION)
        found[value] = _fixed(said, program.mesh, array.rank) or domains.of(array.shape, value in border)
    for place, (value, said) in enumerate(zip(program.body.returned, program.result_annotations, strict=True)):
        array = program.array(value)
        even = domains.of(array.shape, True)
        held = tuple(sharding for sharding in found[value] if len(found[value]) == 1 and sharding in even)
        found[Slot(place)] = _fixed(said, program.mesh, array.rank) or held or even
    return Space(program, found)


def _fixed(said: ValueAnnotation, mesh: PrimeMesh, rank: int) -> tuple[Sharding, ...]:
    sharding = said.sharding
    if sharding is None or sharding.is_unknown:
        return ()
    if said.open_dims or said.priorities or said.replicated_along or mesh.dims(sharding, rank) is None:
        raise Unsupported(f"an annotation that fixes only a part: {sharding}")
    dims = mesh.dims(sharding, rank)
    assert dims is not None
    return (mesh.sharding(dims),)
