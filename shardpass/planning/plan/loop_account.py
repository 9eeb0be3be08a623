"""Adjust the account of a plan for overlapped loops: its collectives, and the memory that is alive.

Example, 4 devices: a weight of 4 MiB gathered for one product becomes 3 collective_permutes of 1 MiB. The product takes
the tile of 1 MiB, and the loop holds two tiles beside it, in place of the 4 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from shardpass.planning.price.listed import Results, Sent, operand_steps, operands_of, results_of, with_parts
from shardpass.planning.price.steps import (
    BlockPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    MatmulLoop,
    OperandPlan,
    OpPlan,
    Reshard,
    Step,
)

Key = tuple[int, Reshard | None]


def sent_in_turn(sent: Iterable[Sent], loops: Sequence[MatmulLoop]) -> Iterator[Sent]:
    """Yield ``sent`` with each collective of ``loops`` replaced by the permutes of its loop."""
    of = {(loop.at, loop.step): loop for loop in loops}
    for one in sent:
        loop = None if one.op is None else of.get((one.op.number, one.reshard))
        if loop is None or (loop.step is None and one.kind != loop.kind) or (loop.step is not None and not one.last):
            yield one
        else:
            pair = loop.pair
            hops = (pair.count - 1) * len(pair.parts)
            size, cause = pair.bytes // pair.count, f"{one.cause}, in turn with the product"
            times = one.times * hops
            yield replace(one, kind="collective_permute", bytes=size, times=times, cause=cause, loop=loop)


def held_in_turn(loops: Sequence[MatmulLoop]) -> dict[int, int]:
    """Return for each product (by op number) the bytes that its loop needs beside operands and result."""
    return {number: loop.resident_bytes for loop in loops for number, _ in loop.products}


def in_turn(body: BlockPlan, loops: Sequence[MatmulLoop]) -> BlockPlan:
    """Return ``body`` for the account of memory: products take tiles, and arrays that the loops do not make
    are left out.
    """
    return _InTurn(loops).block(body) if loops else body


class _InTurn:
    def __init__(self, loops: Sequence[MatmulLoop]) -> None:
        self.left_out: set[Key] = {(loop.at, loop.step) for loop in loops if loop.step is not None}
        self.sources = {(n, side): loop.step.source for loop in loops if loop.step for n, side in loop.products}
        self.between = {number for loop in loops for number in loop.between}
        self.scattered = {loop.at for loop in loops if loop.step is None}

    def block(self, block: BlockPlan) -> BlockPlan:
        return replace(block, ops=tuple(map(self._op, block.ops)))

    def _op(self, plan: OpPlan) -> OpPlan:
        number = plan.op.number
        if number in self.between or isinstance(plan, LeftOutPlan):
            return LeftOutPlan(plan.op, self._steps(operand_steps(plan), number))
        operands = tuple(self._operand(one, number, index) for index, one in enumerate(operands_of(plan)))
        made = with_parts(plan, operands, self._results(results_of(plan), number))
        return replace(made, blocks=tuple(map(self.block, made.blocks))) if isinstance(made, ControlFlowPlan) else made

    def _operand(self, operand: OperandPlan, number: int, index: int) -> OperandPlan:
        copy: Copy = self.sources.get((number, index), operand.copy)
        return replace(operand, copy=copy, steps=self._steps(operand.steps, number))

    def _steps(self, steps: tuple[Step, ...], number: int) -> tuple[Step, ...]:
        return tuple(one for one in steps if not isinstance(one, Reshard) or (number, one) not in self.left_out)

    def _results(self, results: Results, number: int) -> Results:
        """Remove the partial sum of a scattered product, and keep a result unchanged that loops gather for
        products.
        """
        changed = []
        for result in results:
            if result is not None and number in self.scattered:
                result = replace(result, completions=result.completions[1:])
            if result is not None and result.reshard is not None and (number, result.reshard) in self.left_out:
                result = replace(result, reshard=None)
            changed.append(result)
        return tuple(changed)
