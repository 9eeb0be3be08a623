"""Find the values that may stay partial sums: summands of a product are added to others before one collective
completes the sum.

A value is *partial over axes* where the sum of its tiles along these axes is the value. Linear ops keep it so, each
device on its own summand: ``f(a + b) = f(a) + f(b)``. ``ops.linear`` says which ops are linear, and in which operands
*together*: a sum of two arrays is linear in the pair. Beside a partial operand, a whole one is a summand too, once it
is zero everywhere but on the first device along the axes (``steps.Alone``).

A value may wait where

1. a split contraction, sum or scatter may make it, or a linear op of such a value; and
2. all that is done with it is linear in it, in the same block: a sum that one user needs complete is complete for all,
   as completing it twice never sends less; and
3. waiting may pay: an op on the way adds it to another one that may wait, so that one collective serves for both, or
   makes it smaller. Elsewhere the op that makes it completes it (``ways``), and nothing is lost. Or an op adds it to
   what a loop carries and nothing else reads (``accumulations``): then it is completed once, behind the loop.

Multiplications are not in the table: where a summand is 0 on one device and the factor infinite, the sum over devices
would not be what one device has. Conversions are, to a float that holds every number of the one before; integers that
wrap are not, as a wrapped summand is another number in more bits.

Example, the gradient of what two products share: ``add(dot(dg, wg), dot(du, wu))``, both split over their contraction.
Both dots may wait, as the addition is linear in both and adds them; its result may not, where a tanh takes it.

Complexity: O(operands), twice, and once for each loop around them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import ml_dtypes

from shardpass.element_types import ElementType
from shardpass.ops.linear import ADDING_REDUCE, LINEAR
from shardpass.ops.splits.factors import Kind
from shardpass.program.program import Block, Op, OpKind, Program

ADDING = frozenset({"stablehlo.add", "stablehlo.subtract"})


def together(op: Op, program: Program) -> tuple[int, ...]:
    """Return the indices of the operands in which ``op`` is linear together; empty for an op that is not linear."""
    row = ADDING_REDUCE if op.name == "stablehlo.reduce" else LINEAR.get(op.name)
    if row is None or not row.planned:
        return ()
    if op.kind is not OpKind.SPLIT or op.model is None or len(op.results) != 1 or op.mesh.manual:
        return ()
    made = program.array(op.results[0]).element
    if not _is_number(made):
        return ()
    if op.name == "stablehlo.reduce" and (op.model.rule.combiner != "add" or len(op.operands) != 2):
        return ()
    if op.name == "stablehlo.convert" and not _holds(made, program.array(op.operands[0]).element):
        return ()
    return row.of(len(op.operands))


@dataclass(frozen=True)
class Waiting:
    """The values that may stay partial sums. ``places``: for each op (by number), the operands that it may read as
    partial sums.
    """

    values: frozenset[int]
    places: Mapping[int, tuple[int, ...]]

    def beside_whole(self, program: Program) -> set[int]:
        """Return the values in ``values`` that an op adds to a value that must be complete."""
        out: set[int] = set()
        for op in program.body.every_op():
            summands = {op.operands[place] for place in self.places.get(op.number, ())}
            if not summands <= self.values:
                out |= summands & self.values
        return out


class Accumulation(NamedTuple):
    """An op that adds to the carried value at ``place`` of a loop, if no other op reads that value."""

    loop: Op
    place: int
    operand: int


def accumulations(program: Program) -> Mapping[int, Accumulation]:
    """Return, by number, the ops that add to a carried value of a loop with a known trip count, if no other op reads
    that value.

    Example, gradients of microbatches: ``total = total + gradient`` in a scan. Each device may add up its own summands,
    and all are summed once, behind the loop.
    """
    out: dict[int, Accumulation] = {}
    for loop in program.body.every_op():
        if not loop.is_loop or not loop.blocks or loop.mesh.manual or (loop.trips or 0) < 2:
            continue  # a loop of per-device code has no blocks
        condition, body = loop.blocks
        uses = Counter(value for block in loop.blocks for value in _read(block))
        makers = {value: op for op in body.ops for value in op.results}
        for place, value in enumerate(body.returned):
            op, carried = makers.get(value), body.arguments[place]
            if op is None or op.name not in ADDING or value in program.pinned:
                continue
            if uses[value] > 1 or uses[carried] > 1 or uses[condition.arguments[place]]:
                continue
            for operand in together(op, program):
                if op.operands[operand] == carried:
                    out[op.number] = Accumulation(loop, place, operand)
    return out


def _read(block: Block) -> Iterator[int]:
    """Yield the values that ops of ``block`` and of its inner blocks take, and that it returns, once for each use."""
    for op in block.ops:
        yield from (*op.operands, *op.captured)
        for inner in op.blocks:
            yield from _read(inner)
    yield from block.returned


def waiting(program: Program, fixed: Iterable[int]) -> Waiting:
    """Return the values of ``program`` that may stay partial sums. ``fixed``: values with a sharding by the user,
    which may not.
    """
    ops = list(_with_blocks(program.body))
    if not any(makes_sums(op, program) for op, _ in ops):
        return Waiting(frozenset(), {})
    places = {op.number: linear for op, _ in ops if (linear := together(op, program))}
    kept = _summands(ops, places, program) - _needed_whole(ops, places, program) - {*fixed}
    adding, paying = accumulations(program), set[int]()
    for _ in range(2):  # in a folded program an op may use what a later one makes
        for op, _ in reversed(ops):
            summands = {op.operands[place] for place in places.get(op.number, ())} & kept
            pays = len(summands) > 1 or op.number in adding or (summands and op.results[0] in paying)
            if summands and (pays or _shrinks(op, summands, program)):
                paying |= summands
    takers = {op.number: places[op.number] for op, _ in ops if _takes(op, places, paying)}
    return Waiting(frozenset(paying), takers)


def makes_sums(op: Op, program: Program) -> bool:
    """Return whether ``op`` leaves partial sums under some split."""
    if op.kind is not OpKind.SPLIT or op.model is None or len(op.results) != 1 or op.mesh.manual:
        return False
    rule = op.model.rule
    summed = rule.combiner == "add" and not rule.self_completing and not rule.independent
    reductions = any(factor.kind is Kind.REDUCTION and factor.size > 1 for factor in rule.factors)
    return summed and reductions and _is_number(program.array(op.results[0]).element)


Placed = Sequence[tuple[Op, int]]  # ops with the number of their block
Places = Mapping[int, tuple[int, ...]]


def _with_blocks(body: Block) -> Iterator[tuple[Op, int]]:
    """Yield each op with the number of its block; an op comes before those of its blocks."""
    blocks = [body]
    for number, block in enumerate(blocks):
        for op in block.ops:
            yield op, number
            blocks += op.blocks


def _summands(ops: Placed, places: Places, program: Program) -> set[int]:
    """Return the values that an op may leave as partial sums (case 1)."""
    reached: set[int] = set()
    for _ in range(2):
        for op, _ in ops:
            if makes_sums(op, program) or any(op.operands[place] in reached for place in places.get(op.number, ())):
                reached.update(op.results)
    return reached


def _needed_whole(ops: Placed, places: Places, program: Program) -> set[int]:
    """Return the values with a use that is not linear, or that is in another block (case 2)."""
    made = {value: block for op, block in ops for value in op.results}
    reached = {*program.body.returned}
    for op, block in ops:
        linear = places.get(op.number, ())
        reached.update(v for place, v in enumerate(op.operands) if place not in linear or made.get(v) != block)
        reached.update(op.captured, *[inner.returned for inner in op.blocks])
    return reached


def _shrinks(op: Op, summands: set[int], program: Program) -> bool:
    return program.array(op.results[0]).bytes < max(program.array(value).bytes for value in summands)


def _takes(op: Op, places: Places, values: set[int]) -> bool:
    return any(op.operands[place] in values for place in places.get(op.number, ()))


def _is_number(element: ElementType) -> bool:
    """Return whether elements can be added: for truth values "add" is a disjunction."""
    return element.mlir != "i1"


def _holds(wide: ElementType, narrow: ElementType) -> bool:
    """Return whether the float type ``wide`` represents every number of type ``narrow``."""
    if wide.dtype is None or narrow.dtype is None:
        return False
    try:
        ends = [ml_dtypes.finfo(element.dtype) for element in (wide, narrow)]
    except ValueError:
        return False
    (more, less) = ends
    return bool(more.nmant >= less.nmant and more.maxexp >= less.maxexp and more.minexp <= less.minexp)
