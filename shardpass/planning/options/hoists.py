"""Move reshards of loop-invariant values out of loops.

Problem. A weight that a loop captures is gathered for a product inside: once a trip, where once would do. The tables
count it once (``tables``: as often as the value is made); so does the plan, by placing it so.

State: ``frames``, the loops and branches around what is being planned. An array is brought before the outermost loop in
which nothing makes it, where the copies that it is made of are there; never out of a branch, which may not run.

What an ``optimization_barrier`` in the loop takes and passes is made in the loop, and so is the constraint whose result
it takes: what ``jax.checkpoint`` keeps from being alive stays so. A copy that is larger than what it is made of lives
as long as the loop does: a program may have so many bytes of them as a sixteenth of the machine's memory, or of the
limit for which the program is decided. The first that is beyond ends it, and the rest is brought in the loops.

Example on x=4: a ``while`` of 128 trips over ``h @ w``, w in rows over x and captured: one all_gather of w before it.

Complexity: O(values made in loops) for each loop around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.machine import Machine
from shardpass.planning.options.copies import Copies
from shardpass.planning.price.listed import sources_of
from shardpass.planning.price.steps import Copy, Hoisted, OperandPlan, Reshard, Step
from shardpass.program.program import Block, Op, OpKind, Program

BARRIER = "stablehlo.optimization_barrier"
PART = 16  # of the memory of a device, that copies may take through loops: what little is left beside a step's arrays


@dataclass
class Frame:
    """A loop or branch around the op that is being planned.

    ``made``: the values that its blocks make. ``before``: the steps that are moved before the loop. ``mark``: its
    beginning in the journal of copies.
    """

    is_loop: bool
    mark: int
    made: frozenset[int] = frozenset()
    before: list[Hoisted] = field(default_factory=list)

    @classmethod
    def of(cls, op: Op, mark: int) -> Frame:
        """Return the frame of ``op``. A loop of 0 trips counts as a branch: steps before it would be wasted."""
        if not op.is_loop or op.trips == 0:
            return cls(False, mark)
        return cls(True, mark, frozenset(value for block in op.blocks for value in _made(block)))


class Hoists:
    """Decides which steps move before the loops around the op that is being planned."""

    def __init__(self, copies: Copies, program: Program) -> None:
        self.copies, self.program = copies, program
        self.room = room_in(program, copies.clock.machine)
        self.frames: list[Frame] = []

    @cached_property
    def barred(self) -> frozenset[int]:
        """The operands of optimization barriers: copies for these never move out of a loop."""
        ops = self.program.body.every_op()
        return frozenset(value for op in ops if op.name == BARRIER for value in op.operands)

    def enter(self, op: Op) -> None:
        """Open the frame of ``op``, before its blocks are planned."""
        self.frames.append(Frame.of(op, self.copies.entered()))

    def leave(self) -> tuple[Hoisted, ...]:
        """Close the innermost frame and return the steps to run before it."""
        return tuple(self.frames.pop().before)

    def left(self) -> None:
        """Record the copies made before the loops again, after a block has ended and dropped its copies."""
        for frame in self.frames:
            for hoisted in frame.before:
                for step in hoisted.steps:
                    self.copies.add(step.made.array, step.made.sharding)

    def place(self, operand: OperandPlan, op: Op, index: int) -> OperandPlan:
        """Move the steps of ``operand`` before the outermost loop that allows it; return the operand without them."""
        frame = self._frame(operand) if operand.steps and self.frames else None
        at_barrier = op.name == BARRIER or (op.kind is OpKind.CONSTRAINT and op.results[0] in self.barred)
        if frame is None or at_barrier:
            return operand
        self.room -= sum(map(_grown, operand.steps))
        if self.room < 0:
            return operand
        frame.before.append(Hoisted(op.number, index, operand.steps))
        return OperandPlan(operand.copy, (), operand.masks)

    def _frame(self, operand: OperandPlan) -> Frame | None:
        """Return the outermost loop before which the steps of ``operand`` may run, or None."""
        made = {step.made for step in operand.steps}
        sources = {source for step in operand.steps for source in sources_of(step)} - made
        outermost = None
        for frame in reversed(self.frames):
            if not frame.is_loop or self.room < 0 or not all(self._is_before(frame, source) for source in sources):
                break
            outermost = frame
        return outermost

    def _is_before(self, frame: Frame, copy: Copy) -> bool:
        """Return whether ``copy`` exists before ``frame`` begins."""
        if copy.array in frame.made:
            return False
        hoisted = any(step.made == copy for one in frame.before for step in one.steps)
        return hoisted or copy.sharding in self.copies.since(frame.mark, copy.array)


class Trips:
    """Count the runs of copies that are made inside loops because there is no memory for them outside.

    ``runs``: how often each op runs in one run of main; ``made``: how often each value is made.
    """

    def __init__(self, program: Program, machine: Machine) -> None:
        self.room = room_in(program, machine)
        self.runs: dict[int, float] = {}
        self.made: dict[int, float] = {}
        if math.isfinite(self.room):
            self._read(program.body, 1.0)

    def _read(self, block: Block, runs: float) -> None:
        self.made.update(dict.fromkeys(block.arguments, runs))
        for op in block.ops:
            self.runs[op.number] = runs
            self.made.update(dict.fromkeys(op.results, runs))
            for inner in op.blocks:
                self._read(inner, runs * (op.trips or 1) if op.is_loop else runs)

    def of(self, value: int, op: int, before: Sequence[int], after: Sequence[int]) -> NDArray[np.float64]:
        """Return [before, after]: how often ``op`` copies ``value``, where a copy before the loops counts 1.

        ``before``, ``after``: the bytes of a tile under each source and each target split.
        """
        often = self.runs.get(op, 1.0) / self.made.get(value, 1.0)
        larger = np.array(after)[None, :] > np.maximum(np.array(before), self.room)[:, None]
        return np.where(larger, max(1.0, often), 1.0)


def room_in(program: Program, machine: Machine) -> float:
    """Return the bytes of copies that may stay alive through the loops of ``program``."""
    return min(machine.memory, math.inf if program.memory is None else program.memory) / PART


def _made(block: Block) -> list[int]:
    inner = [value for op in block.ops for one in op.blocks for value in _made(one)]
    return [*block.arguments, *[value for op in block.ops for value in op.results], *inner]


def _grown(step: Step) -> int:
    """Return the bytes of the copy made by ``step``; 0 if its source is at least as large."""
    if not isinstance(step, Reshard):
        return 0
    before, after = (
        step.type.element.bytes(prod(sharding.tile_shape(step.type.shape)))
        for sharding in (step.source.sharding, step.target)
    )
    return after if after > before else 0
