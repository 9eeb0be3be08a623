"""Count how often the ops of a folded program run and its values are made; costs are multiplied by these counts.

Of an op: the trips of the loops around it, times the ops that it stands for (``fold``). Of a value likewise; an op that
takes it needs a copy for each of the values that this op's likes take.

Example: a scan of 12 trips over one layer has a product that runs 12 times; 12 layers one after the other have one that
stands for 12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.planning.price.borders import borders
from shardpass.planning.price.clock import Clock
from shardpass.planning.price.fold import Folded
from shardpass.program.program import Block, Op


class Counts:
    """The ops and values of a folded program, with what their prices by ``clock`` depend on."""

    def __init__(self, folded: Folded, clock: Clock) -> None:
        self.program, self.folded, self.clock = folded.program, folded, clock
        self.ops: dict[int, tuple[Op, float]] = {}  # by number: the op and how often it runs, all that it stands for
        self.free: set[int] = set()  # values that any device makes again at no price
        self.times: dict[int, float] = {}  # of a value: how often it is made
        self.meshes: dict[int, PrimeMesh] = {}  # of a value, as ops of its region see it
        self.borders = borders(self.program)
        self._stands = Counter(folded.of)  # for how many values a value stands
        self._read(self.program.body, 1.0, self.program.mesh)

    def _read(self, block: Block, runs: float, mesh: PrimeMesh) -> None:
        for value in block.arguments:
            self.times[value] = runs * self._stands[value]
            self.meshes[value] = mesh
        for op in block.ops:
            often = runs * self.folded.times.get(op.number, 1)
            self.ops[op.number] = (op, often)
            for value in op.results:
                self.times[value] = self.times.get(value, 0.0) + often
                self.meshes[value] = op.mesh
            if op.cheap and all(operand in self.free for operand in op.operands):
                self.free.update(op.results)
            inside = often * (op.trips or 1) if op.is_loop else often
            for inner in op.blocks:
                self._read(inner, inside, op.mesh)

    def often(self, value: int, ops: Sequence[int]) -> float:
        """Return how often ``value`` is copied for ``ops`` (by number), counting all values that it stands for."""
        often, stands = self.times.get(value, 1.0), self._stands[value]
        if stands == 1:
            return often
        several = [self.folded.operand_values.get((number, value)) for number in ops]
        values: set[int] = set()
        for one in several:
            if one is None:  # an op with blocks, or what main returns
                return often
            values.update(one)
        return often * len(values) / stands
