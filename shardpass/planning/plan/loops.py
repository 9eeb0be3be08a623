"""Choose the products of a plan that are overlapped with a collective ("collective matmul").

Problem. A gathered array that only products take need not be made: its tiles can go round the ring of devices while
each device multiplies the tile that it holds. Likewise a product whose sums are scattered. The plan lists the pairs
that become loops; ``passes.collective_matmul`` builds them once the collectives are there. Sources: "windowed einsum"
of GSPMD (section 4.3 of its paper), "collective matmul" (Wang et al., ASPLOS 2023).

State. ``uses``: of each copy of a block, what takes it.

Cases, in one block:

1. Gather. A reshard whose last step is an all_gather along one dimension, of whose copy every use is an operand of a
   dot_general, also behind converts, transposes and reshapes that keep the tiles one after the other. Example on x=4:
   ``w`` f32[1024, 4096] split by rows over x is needed whole by ``x @ w``: the rows are contracted, so each tile
   f32[256, 4096] gives a term of a sum.
2. Scatter. A dot_general whose partial sums are completed by a reduce_scatter first.

A product is in one loop. Of several that could have it, the one of the larger array takes it, if any does
(``LoopTerms``).

Collectives that the user wrote, in manual regions, are no part of a plan: the pass decides on them.

Cost: two walks over the plan, and one redistribution for each reshard, which its price has planned before.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.price.listed import blocks_of, operand_copies, redistribution, sources_of, steps_of
from shardpass.planning.price.loops import OFF, Blocks, LoopTerms, Pair, Part, Product, Shape, reshaped
from shardpass.planning.price.steps import (
    BlockPlan,
    ControlFlowPlan,
    Copy,
    MatmulLoop,
    OpPlan,
    Reshard,
    ResultPlan,
    SplitPlan,
)
from shardpass.program.program import Program
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.redistribute.program.steps import StepKind

DOT = "stablehlo.dot_general"
BETWEEN = ("stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose")

Use = tuple[SplitPlan, int]  # an op and which operand of it
Taking = tuple[SplitPlan, int, int, tuple[int, ...]]  # a product, which operand, along which dimension, behind what
Uses = dict[Copy, list[Use | None]]  # None: a use that is no operand of an op that is split


def with_loops(plan: ProgramPlan, terms: LoopTerms) -> ProgramPlan:
    """Return ``plan`` with the loops that ``terms`` choose."""
    if terms.which == OFF:
        return plan
    machine = terms.machine(plan.machine)
    loops: list[MatmulLoop] = []
    for block in blocks_of(plan.body):
        products: set[int] = set()
        candidates = _Candidates(block, plan, terms).loops()
        for loop in sorted(candidates, key=lambda one: -one.pair.bytes):
            numbers = {number for number, _ in loop.products}
            if not numbers & products and terms.take(loop.pair, loop.price(machine)):
                products |= numbers
                loops.append(loop)
    return plan.with_loops(tuple(loops))


class _Candidates:
    """The pairs of one block that may become overlapped loops."""

    def __init__(self, block: BlockPlan, plan: ProgramPlan, terms: LoopTerms) -> None:
        self.block = block
        self.program, self.machine = plan.program, plan.machine
        self.terms = terms
        self.uses: Uses = {}
        for copy, use in _uses(block, False):
            self.uses.setdefault(copy, []).append(use)

    def loops(self) -> Iterator[MatmulLoop]:
        """Yield the loops of the block: gathers in program order, then scatters in program order."""
        for plan in self.block.ops:
            for step in _reshards(plan):
                yield from self._gather(step, plan.op.number)
        for plan in self.block.ops:
            if isinstance(plan, SplitPlan) and plan.op.name == DOT and plan.results[0] is not None:
                yield from self._scatter(plan, plan.results[0])

    # ---------------------------------------------------------------- case 1

    def _gather(self, step: Reshard, at: int) -> Iterator[MatmulLoop]:
        steps = redistribution(step, self.machine).steps if step.bytes else ()
        if not steps or steps[-1].kind != StepKind.ALL_GATHER:
            return
        last, shape = steps[-1], step.target.tile_shape(step.type.shape)
        rows = zip(last.tile_before, last.tile_after, strict=True)
        grown = [dim for dim, (before, after) in enumerate(rows) if before != after]
        count = last.groups.shape[1]
        stacked = len(last.tile_after) - len(shape)  # in a region that is manual over some axes
        if len(grown) != 1 or last.tile_after[grown[0]] != count * last.tile_before[grown[0]]:
            return
        readers = self._followed(step.made, shape, grown[0] - stacked, count)
        if not readers:
            return
        plans = [plan for plan, *_ in readers]
        if len({plan.op.number for plan in plans}) != len(plans):
            return
        parts = tuple(_part(plan, _product(plan).along(side, dim), self.program) for plan, side, dim, _ in readers)
        pair = Pair(True, last.groups, step.type.element.bytes(prod(shape)), parts)
        between = tuple({number: None for *_, numbers in readers for number in numbers})
        products = tuple((plan.op.number, side) for plan, side, *_ in readers)
        yield self._loop("all_gather", at, step, products, between, ",".join(last.axes), pair)

    def _followed(self, copy: Copy, shape: Shape, dim: int, count: int) -> list[Taking]:
        """Return the products that read ``copy``, each with its operand, the dimension, and the ops in between.

        ``copy`` is a tile of ``shape``, which consists of ``count`` tiles along ``dim``. Returns [] if anything else
        reads it.
        """
        readers: list[Taking] = []
        for use in self.uses.get(copy, ()):
            if use is None:
                return []
            plan, index = use
            if plan.op.name == DOT:
                readers.append((plan, index, dim, ()))
                continue
            result = plan.results[0]
            after = _along(plan, shape, dim, count) if plan.op.name in BETWEEN else None
            if after is None or result is None:
                return []
            made = Copy(result.value, result.computed)
            inner = self._followed(made, plan.local.split.result_tile(0), after, count)
            if not inner:
                return []
            readers += [(product, side, to, (plan.op.number, *behind)) for product, side, to, behind in inner]
        return readers

    # ---------------------------------------------------------------- case 2

    def _scatter(self, plan: SplitPlan, result: ResultPlan) -> Iterator[MatmulLoop]:
        first = result.completions[0] if result.completions else None
        if first is None or first.dim is None or first.combiner != "add":
            return
        groups = plan.op.mesh.groups(first.axes)
        if plan.local.split.result_tile(0)[first.dim] % groups.shape[1]:
            return
        part = _part(plan, _product(plan).along_result(first.dim), self.program)
        pair = Pair(False, groups, part.bytes[2], (part,))
        axes, number = plan.op.mesh.names(first.axes), plan.op.number
        yield self._loop("reduce_scatter", number, None, ((number, None),), (), axes, pair)

    def _loop(
        self,
        kind: str,
        at: int,
        step: Reshard | None,
        products: tuple[tuple[int, int | None], ...],
        between: tuple[int, ...],
        axes: str,
        pair: Pair,
    ) -> MatmulLoop:
        sub_axes = sub_axes_of(self.program.mesh.mesh)
        both_ways = self.terms.both_ways(pair)
        return MatmulLoop(
            kind, at, step, products, between, axes, pair, both_ways, sub_axes, self.terms.machine(self.machine)
        )


# ---------------------------------------------------------------- what takes each copy


def _uses(block: BlockPlan, nested: bool) -> Iterator[tuple[Copy, Use | None]]:
    """Yield (copy, use) for ``block`` and nested blocks; the use is None where it cannot be part of a pair."""
    for plan in block.ops:
        for step in steps_of(plan):
            for copy in sources_of(step):
                yield copy, None
        match plan:
            case SplitPlan():
                for index, operand in enumerate(plan.operands):
                    if index not in plan.local.ignored:
                        yield operand.copy, None if nested or operand.masks else (plan, index)
            case _:
                for copy in operand_copies(plan):
                    yield copy, None
        if isinstance(plan, ControlFlowPlan):
            for inner in plan.blocks:
                yield from _uses(inner, True)
    for returned in block.returned:
        if returned is not None:
            yield returned.copy, None
            for step in returned.steps:
                for copy in sources_of(step):
                    yield copy, None


def _reshards(plan: OpPlan) -> Iterator[Reshard]:
    return (step for step in steps_of(plan) if isinstance(step, Reshard))


# ---------------------------------------------------------------- products


def _along(plan: SplitPlan, shape: Shape, dim: int, count: int) -> int | None:
    """Return the dimension of the result along which the tiles lie; None if they lie along none."""
    if plan.op.name == "stablehlo.reshape":
        return reshaped(shape, plan.local.split.result_tile(0), dim, count)
    assert plan.op.model is not None
    rule = plan.op.model.rule
    return rule.results[0].index(rule.operands[0][dim])


def _product(plan: SplitPlan) -> Product:
    """Return the dot_general on the tiles of one device."""
    assert plan.op.model is not None
    rule, split = plan.op.model.rule, plan.local.split
    (left, right), result = rule.operands, rule.results[0]
    both = [factors for factors in left if factors in right]
    batch = [factors for factors in result if factors in both]
    contract = [factors for factors in both if factors not in batch]

    def dims(factors: list[tuple[int, ...]]) -> tuple[Shape, Shape]:
        return tuple(map(left.index, factors)), tuple(map(right.index, factors))

    shapes = split.operand_tile(0), split.operand_tile(1)
    return Product(shapes, split.result_tile(0), dims(batch), dims(contract))


def _part(plan: SplitPlan, blocks: Blocks, program: Program) -> Part:
    split, op = plan.local.split, plan.op
    tiles = (split.operand_tile(0), split.operand_tile(1), split.result_tile(0))
    sizes = [program.array(v).element.bytes(prod(t)) for v, t in zip((*op.operands, *op.results), tiles, strict=True)]
    element = program.array(op.operands[0]).element.mlir
    return Part(_product(plan), blocks, (sizes[0], sizes[1], sizes[2]), element)
