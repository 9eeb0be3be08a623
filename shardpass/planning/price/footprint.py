"""Estimate the live bytes on a device under any shardings, without a plan, for decisions under a memory limit.

Problem: a plan knows the bytes alive at each op (``alive``), but a decision has no plan yet, and the plan of a folded
program (``fold``) has no order in which its arrays live and die. Which values live together, however, depends on the
program alone, not on shardings. So its account is made once (``cost.lifetimes``), and of its moments is kept

    rows[moment, representative] = how many of the temporaries that it stands for are alive at that moment
    fixed[representative]        = how many of main's arguments and results

and the bytes alive under some shardings are ``fixed @ tile bytes + rows @ tile bytes``, the peak their greatest.

Copies that reshards make and partial results are not counted, as they are not values: the plan's own account is asked
at the end, and the limit lowered by the difference (``limited``).

Example: ``y = x @ w; z = tanh(y) @ v; return z`` has the moment {y}, whose buffer tanh takes, beside x, w, v and z.

Invariant: where nothing is resharded and no constraint aliases an array, the peak is that of ``alive``. Complexity:
O(values) once, then O(moments x representatives) for a peak, as one product of a matrix.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.fusion import PASSES_ON
from shardpass.cost.lifetimes import ALIGNED, OTHERS, Life, Lifetimes, Step
from shardpass.cost.lifetimes import Block as Steps
from shardpass.cost.memory import temporaries
from shardpass.planning.price.fold import Folded
from shardpass.program.program import Array, Block, Op, OpKind, Program
from shardpass.sharding import Sharding

Floats = NDArray[np.float64]
_PASSED = frozenset({OpKind.CONSTRAINT, OpKind.ENTER_REGION, OpKind.LEAVE_REGION, OpKind.ENTER_MANUAL})


class Footprint:
    """The number of values of ``program`` alive at each moment, by their representatives in ``folded``."""

    def __init__(self, program: Program, folded: Folded) -> None:
        representatives = sorted({rep for rep in folded.of if program.arrays[rep] is not None})
        self.column = {rep: column for column, rep in enumerate(representatives)}
        self.arrays = [program.array(rep) for rep in representatives]
        self._tiles: dict[tuple[Array, Sharding], int] = {}
        self._of = folded.of
        sizes = [0 if array is None else array.bytes for array in program.arrays]
        lent = {program.body.arguments[place]: index for place, index in program.donated}
        lifetimes = Lifetimes(_steps(program.body), sizes, OTHERS, lent)
        self.fixed = self._count([*lifetimes.arguments, *lifetimes.results]) - self._count(lifetimes.lent)
        self.rows = self._moments(temporaries(lifetimes), len(lifetimes.ops))

    def _count(self, lives: Iterable[Life]) -> Floats:
        count = np.zeros(len(self.arrays))
        for life in lives:
            column = self.column.get(self._of[life.buffer])
            if column is not None:
                count[column] += 1
        return count

    def _moments(self, lives: Sequence[Life], moments: int) -> Floats:
        """Count the live bytes at each moment after which a value dies; the peak is at one of these moments."""
        begin: dict[int, list[Life]] = {}
        end: dict[int, list[Life]] = {}
        for life in lives:
            begin.setdefault(life.first, []).append(life)
            end.setdefault(life.last, []).append(life)
        now, rows = np.zeros(len(self.arrays)), []
        for moment in range(moments):
            if moment in begin:
                now += self._count(begin[moment])
            if moment in end:
                rows.append(now.copy())
                now -= self._count(end[moment])
        return np.array(rows or [now])

    # ---------------------------------------------------------------- bytes

    def tile(self, array: Array, sharding: Sharding | None) -> int:
        """Return the bytes of one device's tile; of the whole array if it has no sharding."""
        if sharding is None or not sharding.is_tiled:
            return array.bytes
        size = self._tiles.get((array, sharding))
        if size is None:
            size = self._tiles[array, sharding] = array.element.bytes(prod(sharding.tile_shape(array.shape)))
        return size

    def sizes(self, shardings: Mapping[int, Sharding]) -> Floats:
        """Return the bytes of the tile of each representative."""
        pairs = zip(self.column, self.arrays, strict=True)
        return np.array([self.tile(array, shardings.get(rep)) for rep, array in pairs], np.float64)

    def peak(self, shardings: Mapping[int, Sharding]) -> float:
        """Return the greatest number of bytes alive at once on a device."""
        sizes = self.sizes(shardings)
        return float((self.rows @ aligned(sizes)).max() + self.fixed @ sizes)


def aligned(sizes: Floats) -> Floats:
    """Round ``sizes`` up to the bytes that buffers of these sizes occupy."""
    return np.ceil(sizes / ALIGNED) * ALIGNED


def _steps(block: Block) -> Steps:
    """Convert the ops of a block into steps over values."""
    return Steps(block.arguments, tuple(map(_step, block.ops)), block.returned)


def _step(op: Op) -> Step:
    name = PASSES_ON if op.kind in _PASSED and len(op.operands) == len(op.results) else op.name
    blocks = tuple(map(_steps, (*op.blocks, *op.inside)))
    return Step(op.number, name, op.results, (*op.operands, *op.captured), 0, blocks)
