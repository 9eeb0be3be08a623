"""The facts of ``main``, read once: its arrays, its ops with their models, its blocks. Frozen, and without MLIR.

Every value of the program has a number. ``Program.arrays[n]`` is its shape and element type, or None for a value that
is no ranked tensor (a token). Ops stand in program order and are numbered too, nested ops after the op that holds them.
Where the handles of MLIR are needed again (to write annotations, to emit), ``read.Handles`` has them under the same
numbers.

Example: ``%0 = add %x, %y; return %0`` has the values 0 (%x), 1 (%y), 2 (%0) and one op ``Op(0, "stablehlo.add",
operands=(0, 1), results=(2,))``; the body's block has ``arguments=(0, 1)`` and ``returned=(2,)``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

from shardpass.element_types import ElementType
from shardpass.ops.model import OpModel
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.sharding import Sharding


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """A ranked tensor type. Each type is one object (``array_of``), so ``is`` compares types."""

    shape: tuple[int, ...]
    element: ElementType
    bytes: int  # of the whole array

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return "x".join((*map(str, self.shape), str(self.element)))


@lru_cache(maxsize=1 << 14)
def array_of(shape: tuple[int, ...], element: ElementType) -> Array:
    """Return the ``Array`` of this type, shared by all programs."""
    return Array(shape, element, element.bytes(prod(shape)))


class OpKind(enum.Enum):
    """The ways in which partitioning handles an op."""

    SPLIT = "split as its model allows"
    WHOLE = "computed whole on every device"
    CONSTRAINT = "a sharding constraint: its operand under another sharding"
    ENTER_REGION = "the border into a manual region"
    LEAVE_REGION = "the border out of a manual region"
    CONTROL_FLOW = "while, if, case: its regions are partitioned"
    ENTER_MANUAL = "the border into a region that is manual over all axes"
    UNTOUCHED = "in a region that is manual over all axes: left alone"


@dataclass(frozen=True, slots=True)
class Op:
    """An op of the program, with numbers for its values.

    Attributes:
        operands, results: numbers of values.
        captured: numbers of outside values that its regions use, control flow's not counted.
        mesh: the module's mesh; its manual sub-axes are those of the region that the op is in.
        model: of a SPLIT op.
        why_whole: of a WHOLE op, the reason, for people.
        cheap: the op may be computed again where its result is wanted under another sharding.
        pure: the op has no effect but its results.
        blocks: of CONTROL_FLOW.
        once: of a call of the host, the one device that makes it; None of every other op.
        order: of such a call, the places of results that only order calls, which every device knows.
        trips: how often a loop's body runs; None where it is not known, 1 for other ops.
        alone: of an UNTOUCHED op, its model, by which its work on the tiles that it is given is priced.
        inside: of an UNTOUCHED op, the blocks of its control flow, for their work: nothing else looks into them. Their
            ops are UNTOUCHED, and have negative numbers.
    """

    number: int
    name: str
    kind: OpKind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    mesh: PrimeMesh
    model: OpModel[Any] | None = None
    captured: tuple[int, ...] = ()
    why_whole: str = ""
    target: str = ""  # of a custom call
    cheap: bool = False
    pure: bool = True
    blocks: tuple[Block, ...] = ()
    trips: int | None = 1
    once: int | None = None
    order: tuple[int, ...] = ()
    alone: OpModel[Any] | None = None
    inside: tuple[Block, ...] = ()

    @property
    def is_loop(self) -> bool:
        return self.name == "stablehlo.while"

    @property
    def is_manual(self) -> bool:
        """Whether the op is in a region manual over all axes or enters it; its results have no shardings."""
        return self.kind in (OpKind.ENTER_MANUAL, OpKind.UNTOUCHED)

    @property
    def called(self) -> str:
        """The op's name in messages, with the target of a custom call."""
        return f"{self.name} @{self.target}" if self.target else self.name


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Block:
    """The ops of a block in order. ``returned``: the operands of its terminator."""

    arguments: tuple[int, ...]
    ops: tuple[Op, ...]
    returned: tuple[int, ...]

    def every_op(self) -> Iterator[Op]:
        """Yield each op of the block and of nested blocks, outermost first. Not recursive: nesting may be deep."""
        stack = [iter(self.ops)]
        while stack:
            op = next(stack[-1], None)
            if op is None:
                stack.pop()
                continue
            yield op
            if op.blocks:
                stack.append(iter([inner for block in op.blocks for inner in block.ops]))


@dataclass(frozen=True, slots=True)
class ValueAnnotation:
    """The user's or an earlier pass's annotation of a value.

    Attributes:
        sharding: None without an annotation.
        open_dims: the dimensions that propagation may split further.
        priorities: of each dimension; the lowest number propagates first.
        replicated_along: a vector's sharding; the axes that split it never split the value further.
    """

    sharding: Sharding | None = None
    open_dims: tuple[int, ...] = ()
    priorities: tuple[int, ...] = ()
    replicated_along: Sharding | None = None


NO_ANNOTATION = ValueAnnotation()


@dataclass(frozen=True)
class Program:
    """The facts of ``main``: values, ops and annotations by number.

    Attributes:
        mesh: the module's, outside of manual regions.
        arrays: by value; None for tokens and the like.
        annotations: by value, of those that have an annotation.
        result_annotations: of the results of main, in order.
        count: number of ops.
        pinned: results of ops that are no constraints, and that the user annotated: they are there as annotated, and
            users start from that copy.
        donated: places of main's arguments whose memory a result reuses, each with the result's place.
        wishes: the constraints, by op, that do not hold: users of their results may start from any copy of the array.
        memory: the limit of bytes for which cheaper shardings were left; None where there are none.
    """

    mesh: PrimeMesh
    arrays: tuple[Array | None, ...]
    body: Block
    annotations: dict[int, ValueAnnotation]
    result_annotations: tuple[ValueAnnotation, ...]
    count: int
    pinned: frozenset[int] = frozenset()
    wishes: frozenset[int] = frozenset()
    memory: int | None = None
    donated: tuple[tuple[int, int], ...] = ()

    @property
    def bytes(self) -> int:
        """Count the bytes of all arrays, whole."""
        return sum([array.bytes for array in self.arrays if array is not None])

    def array(self, value: int) -> Array:
        """Return the type of a value. Raises TypeError unless it is a ranked tensor."""
        array = self.arrays[value]
        if array is None:
            raise TypeError(f"value {value} is no ranked tensor")
        return array

    def elements(self, op: Op) -> tuple[tuple[ElementType, ...], tuple[ElementType, ...]]:
        """Return the element types of an op's operands and of its results, which must be ranked tensors."""
        operands, results = ([self.array(value).element for value in side] for side in (op.operands, op.results))
        return tuple(operands), tuple(results)


def constraints_of(program: Program) -> frozenset[int]:
    """List the numbers of the program's constraints."""
    return frozenset(op.number for op in program.body.every_op() if op.kind is OpKind.CONSTRAINT)
