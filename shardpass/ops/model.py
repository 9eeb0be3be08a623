"""The model of one op: how it may be split, the communication of a split, and how to build its per-device form.

Three values follow one another, each made from the one before and from nothing else:

    OpModel  --plan(split)-->  LocalPlan  --emit(plan, site)-->  StableHLO

* ``OpModel``: the facts of one op, read once from the module, as a frozen value. ``rule`` says which dimensions belong
  together (``splits.factors``).
* ``LocalPlan``: what a device does for the op under one split: every collective with its bytes, and whatever the family
  decided on the way (which halo, in which rounds). Prices are sums over ``LocalPlan.collectives``; no MLIR is touched.
* ``emit`` builds what the plan lists and decides nothing.

A dot_general ``[m,k] x [k,n]`` on the mesh x=2, y=2 with m over x and k over y: its rule has the factors m, k, n; under
the split (m: x, k: y, n: -) a device multiplies ``[m/2, k/2] x [k/2, n]``, the plan lists no collective of its own, and
the partial sums over y are completed by the partitioner, which knows them from the rule.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from jaxlib.mlir import ir

from shardpass.cost.machine import IDEAL, Machine
from shardpass.ir.annotations import AXES, CAUSE
from shardpass.ir.integers import numbers
from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import retype
from shardpass.ops.splits.factors import Axes, DimAxes, Rule, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh

Shape = tuple[int, ...]
Shapes = tuple[Shape, ...]


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective in which every device takes part. ``bytes``: received by one device from others.

    ``positions``: the receiving devices' positions along ``axes``; None: all.
    """

    kind: str  # one of ``cost.collective.KINDS``
    axes: Axes
    bytes: int
    cause: str  # for people: why it is there
    positions: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Split:
    """A split of an op: the sub-axes of each factor, and the resulting split of each operand and result.

    ``factors[f]`` are the sub-axes of factor f of the op's rule, () where it is not split. Shapes are those of
    the whole arrays. ``machine``: its times decide alternatives of a family, such as how windows are fetched.
    """

    mesh: PrimeMesh
    factors: tuple[Axes, ...]
    operands: tuple[DimAxes, ...]
    results: tuple[DimAxes, ...]
    operand_shapes: Shapes
    result_shapes: Shapes
    machine: Machine = IDEAL

    @classmethod
    def of(
        cls,
        rule: Rule,
        mesh: PrimeMesh,
        factors: dict[int, Axes],
        operands: Shapes,
        results: Shapes,
        machine: Machine = IDEAL,
    ) -> Split:
        """Return the split of an op with ``rule`` that splits the factors by the sub-axes ``factors``."""
        sides = [
            tuple(unproject(rule, m, s, factors, mesh.sizes) for m, s in zip(maps, shapes, strict=True))
            for maps, shapes in ((rule.operands, operands), (rule.results, results))
        ]
        table = tuple(factors.get(f, ()) for f in range(len(rule.factors)))
        return cls(mesh, table, sides[0], sides[1], operands, results, machine)

    @cached_property
    def count(self) -> int:
        """Count the parts that the loop nest of the op is cut into."""
        total = 1
        for axes in self.factors:
            total *= self.mesh.count(axes)
        return total

    @cached_property
    def result_tiles(self) -> Shapes:
        """Return the shapes of the results on one device."""
        return tuple(self.mesh.tile(s, d) for s, d in zip(self.result_shapes, self.results, strict=True))

    @cached_property
    def largest_tile(self) -> int:
        """Count the elements of the largest tile of an operand or result."""
        operands = [self.operand_tile(index) for index in range(len(self.operands))]
        return max([self.largest_result, *[prod(tile) for tile in operands]])

    @cached_property
    def largest_result(self) -> int:
        """Count the elements of the largest tile of a result."""
        return max([prod(tile) for tile in self.result_tiles], default=0)

    @cached_property
    def largest_beside_first(self) -> int:
        """Count elements of the largest tile, without operand 0 and the results of its shape that reuse its buffer."""
        operands = [self.operand_tile(index) for index in range(1, len(self.operands))]
        rows = zip(self.result_tiles, self.result_shapes, strict=True)
        results = [tile for tile, shape in rows if shape != self.operand_shapes[0]]
        return max([prod(tile) for tile in (*operands, *results)], default=0)

    def operand_tile(self, index: int) -> Shape:
        """Return the shape of operand ``index`` on one device."""
        return self.mesh.tile(self.operand_shapes[index], self.operands[index])

    def result_tile(self, index: int) -> Shape:
        """Return the shape of result ``index`` on one device."""
        return self.result_tiles[index]


@dataclass(frozen=True)
class LocalPlan:
    """The computation of a device for an op under ``split``. Families with more decisions extend the class.

    ``ignored``: operands that ``emit`` does not read, as their shapes alone matter; they are not fetched.
    """

    split: Split
    collectives: tuple[Collective, ...] = ()
    ignored: frozenset[int] = field(default=frozenset(), kw_only=True)


P = TypeVar("P", bound=LocalPlan)


class OpModel(abc.ABC, Generic[P]):
    """The facts of an op, made by the ``read`` of its family. Equal ops of a program share a model.

    ``looks_on``: the op only reports its operands (a callback), in whatever split they have; result i is operand i.
    ``shows_tiles``: the report shows tiles to the user, so cost must not change their split.
    """

    rule: Rule
    looks_on: ClassVar[bool] = False
    shows_tiles: ClassVar[bool] = False

    @abc.abstractmethod
    def plan(self, split: Split) -> P:
        """Plan the computation of a device under ``split``, without MLIR."""

    @abc.abstractmethod
    def emit(self, plan: P, site: Site) -> Sequence[Any]:
        """Build ``plan`` at ``site`` and return the tiles that replace the op's results.

        The op's operands are tiles already, split as ``plan.split`` says; its results have whole types still.
        """


@dataclass(frozen=True, eq=False)
class Pointwise(OpModel[LocalPlan]):
    """An op that is unchanged on tiles: no communication, and no attribute depends on sizes."""

    rule: Rule

    def plan(self, split: Split) -> LocalPlan:
        return LocalPlan(split)

    def emit(self, plan: LocalPlan, site: Site) -> Sequence[Any]:
        return site.keep()


class Site:
    """The place where ``emit`` builds: the op, whose operands are tiles, and the position in the block."""

    def __init__(
        self, op: Any, split: Split, next_op: Any, channels: Iterator[int], results: list[Any] | None = None
    ) -> None:
        self.op = op
        self.split = split
        self.next = next_op  # the op that follows in the block
        self.channels = channels
        self.results = list(op.results) if results is None else results
        self.discarded = False

    @contextmanager
    def before(self) -> Iterator[None]:
        """Set the insertion point before the op, and the op's location."""
        with ir.InsertionPoint(self.op), self.op.location:
            yield

    @contextmanager
    def after(self) -> Iterator[None]:
        """Set the insertion point after the op, and the op's location."""
        with ir.InsertionPoint(self.next), self.op.location:
            yield

    def tile_type(self, index: int) -> Any:
        """Return the type of result ``index`` on one device, while the op still has whole types."""
        return retype(self.op.results[index].type, self.split.result_tile(index))

    def keep(self) -> list[Any]:
        """Keep the op itself, on tiles: its results get the types of tiles."""
        for result, tile, whole in zip(self.results, self.split.result_tiles, self.split.result_shapes, strict=True):
            if tile != whole:
                result.set_type(retype(result.type, tile))
        return self.results

    def discard(self) -> None:
        """Mark the op, which no built op uses, for erasure after partitioning."""
        self.discarded = True

    def start(self, axes: Axes, tile: int, kind: Any = None) -> Any:
        """Build the scalar offset of this device's tile along a dimension that ``axes`` split into ``tile``s.

        ``kind``: its type; by default the narrowest of ``numbers`` that can represent all starts.
        """
        mesh = self.split.mesh
        kind = numbers((mesh.count(axes) - 1) * tile) if kind is None else kind
        return device_value(mesh.index(axes) * np.int64(tile), kind)

    def explain(self, collective: Any, axes: Axes, cause: str) -> None:
        """Write the axes and the cause on ``collective``, for reports."""
        explain(collective, self.split.mesh, axes, cause)


def explain(collective: Any, mesh: PrimeMesh, axes: Axes, cause: str) -> None:
    """Write the axes and the cause on a collective op, for reports."""
    collective.attributes[CAUSE] = ir.StringAttr.get(cause)
    collective.attributes[AXES] = ir.StringAttr.get(mesh.names(axes))


Read = Callable[[Any], OpModel[Any] | None]
