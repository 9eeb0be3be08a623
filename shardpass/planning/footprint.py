"""How many bytes live together on a device under any shardings, without a plan: for searches that keep to a limit.

Problem: a plan knows the bytes alive at each op (``alive``), but planning a program anew for each of hundreds of
changes takes too long, and the plan of a folded program (``fold``) has no order in which its arrays live and die. Which
values live together, however, depends on the order of the program alone, not on shardings. So this is counted once:

    rows[moment, representative] = how many of the values that it stands for are alive at that moment

and the bytes alive under some shardings are ``rows @ tile bytes``, the peak their greatest.

Cases: an argument of main lives throughout; a result of an op from the op to its last use; inside of a loop or branch,
what the region makes, beside what lives around it. Copies that reshards make are not counted, as they are not values:
the plan's own account is asked at the end, and the difference taken off the limit (``limited``).

Example: ``y = x @ w; z = tanh(y); return z`` has the moments {x, w, y} and {x, w, y, z}.

Invariant: where nothing is resharded and no constraint aliases an array, the peak is that of ``alive``. Complexity:
O(values) once, then O(moments x representatives) for a peak, as one product of a matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np
from numpy.typing import NDArray

from shardpass.planning.fold import Folded
from shardpass.program.program import Array, Block, Op, Program
from shardpass.sharding import Sharding

Floats = NDArray[np.float64]
KEPT = 64  # moments that are looked at for a change: those of the most bytes before it


class Footprint:
    """The moments of ``program`` over the representatives of ``folded``."""

    def __init__(self, program: Program, folded: Folded) -> None:
        representatives = sorted({rep for rep in folded.of if program.arrays[rep] is not None})
        self.column = {rep: column for column, rep in enumerate(representatives)}
        self.arrays = [program.array(rep) for rep in representatives]
        self._tiles: dict[tuple[Array, Sharding], int] = {}
        self._of = folded.of
        rows: list[NDArray[np.int32]] = []
        start = np.zeros(len(representatives), np.int32)
        for value in program.body.arguments:
            self._count(start, value, 1)
        self._walk(program.body, start, rows)
        self.rows: Floats = np.array(rows or [start], np.float64)

    def _count(self, now: NDArray[np.int32], value: int, by: int) -> None:
        column = self.column.get(self._of[value])
        if column is not None:
            now[column] += by

    def _walk(self, block: Block, outer: NDArray[np.int32], rows: list[NDArray[np.int32]]) -> None:
        last: dict[int, int] = dict.fromkeys(block.returned, len(block.ops))
        for place in range(len(block.ops) - 1, -1, -1):
            for value in (*_used(block.ops[place]), *block.ops[place].results):
                last.setdefault(value, place)
        ends: dict[int, list[int]] = {}
        for op in block.ops:
            for value in op.results:
                ends.setdefault(last[value], []).append(value)
        now = outer.copy()
        for place, op in enumerate(block.ops):
            for value in op.results:
                self._count(now, value, 1)
            for inner in op.blocks:
                self._walk(inner, now, rows)
            ending = ends.get(place, ())
            if ending or place == len(block.ops) - 1:
                rows.append(now.copy())
            for value in ending:
                self._count(now, value, -1)

    # ---------------------------------------------------------------- bytes

    def tile(self, array: Array, sharding: Sharding | None) -> int:
        """Bytes of one device's tile; of the whole array where nothing is said."""
        if sharding is None or not sharding.is_tiled:
            return array.bytes
        found = self._tiles.get((array, sharding))
        if found is None:
            found = self._tiles[array, sharding] = array.element.bytes(prod(sharding.tile_shape(array.shape)))
        return found

    def sizes(self, shardings: Mapping[int, Sharding]) -> Floats:
        """The bytes of each representative's tile."""
        pairs = zip(self.column, self.arrays, strict=True)
        return np.array([self.tile(array, shardings.get(rep)) for rep, array in pairs], np.float64)

    def peak(self, shardings: Mapping[int, Sharding]) -> float:
        """The most bytes alive at once."""
        return float((self.rows @ self.sizes(shardings)).max())


class NearPeak:
    """The bytes alive at the heaviest moments of a base, under changes of a few values."""

    def __init__(self, footprint: Footprint, shardings: Mapping[int, Sharding]) -> None:
        self.footprint = footprint
        self.sizes = footprint.sizes(shardings)
        alive = footprint.rows @ self.sizes
        heaviest = np.argsort(-alive, kind="stable")[:KEPT]
        self.rows, self.alive = footprint.rows[heaviest], alive[heaviest]
        self.peak = float(self.alive.max())

    def change(self, fresh: Mapping[int, Sharding]) -> float:
        """The peak where the values ``fresh`` have other shardings."""
        footprint = self.footprint
        columns = [footprint.column[value] for value in fresh if value in footprint.column]
        if not columns:
            return self.peak
        new = [
            footprint.tile(footprint.arrays[c], fresh[v]) for v in fresh if (c := footprint.column.get(v)) is not None
        ]
        delta = np.array(new, np.float64) - self.sizes[columns]
        return float((self.alive + self.rows[:, columns] @ delta).max())


def _used(op: Op) -> set[int]:
    """The values that ``op`` uses, in its regions too."""
    found = {*op.operands, *op.captured}
    for block in op.blocks:
        found.update(block.returned)
        for inner in block.ops:
            found |= _used(inner)
    return found
