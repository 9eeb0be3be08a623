"""A proof element by element, of programs whose arrays are small.

Each element of the whole program's results, and each of each device's tiles, is a scalar term; the tiles are those of
the results where the numbers are equal. What lies in an argument's padding is a term that nothing else has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from shardpass.proving.relations.evaluate import Loss, Unknown
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.relations.sides import Side
from shardpass.proving.scalars import batch_norm, collectives, control, elementwise, lookups, moves, sums, whole_rows
from shardpass.proving.scalars.table import Scalars, TooLarge
from shardpass.proving.scalars.walk import ScalarRule, ScalarWalk, Value, corner

RULES: dict[str, ScalarRule] = {
    name: rule
    for family in (whole_rows, moves, elementwise, sums, lookups, batch_norm, collectives, control)
    for name, rule in family.RULES.items()
}


class ElementProof:
    """Both programs, walked; ``losses``: where the walk over that of one device ended, if the whole one has values."""

    def __init__(self, whole: tuple[Any, Mapping[str, Any], int], local: tuple[Any, Mapping[str, Any]],
                 arguments: Sequence[Side], results: Sequence[Side], devices: int) -> None:  # fmt: skip
        self.table, self.results = Scalars(), results
        self.losses: list[Loss] = []
        body, functions, count = whole
        self.wanted: Sequence[Value | None] = []
        self.found: Sequence[Value | None] = []
        try:
            inputs = [self.table.fresh(("argument", k), side.shape) for k, side in enumerate(arguments)]
            known = ScalarWalk(self.table, count, functions, RULES)
            self.wanted = known.block(
                body,
                [
                    Value(np.broadcast_to(ids, (count, *ids.shape)), s.element)
                    for ids, s in zip(inputs, arguments, strict=True)
                ],
            )
            if known.losses:
                return
            tiles = [
                Value(self._tiles(k, ids, side), side.element)
                for k, (ids, side) in enumerate(zip(inputs, arguments, strict=True))
            ]
            walk = ScalarWalk(self.table, devices, local[1], RULES, len(self.table.terms))
            self.losses = walk.losses
            self.found = walk.block(local[0], tiles)
        except (TooLarge, Unknown):
            self.wanted = self.found = []

    def _tiles(self, index: int, ids: Ints, side: Side) -> Ints:
        found = np.empty((len(side.offsets), *side.tile), np.int64)
        valid = np.empty(found.shape, bool)
        for device, offset in enumerate(side.offsets):
            part = ids[tuple(slice(o, o + n) for o, n in zip(offset, side.tile, strict=True))]
            at = corner(device, part.shape)
            valid[device] = False
            valid[at], found[at] = True, part
        if not valid.all():
            found[~valid] = self.table.fresh(("padding", index), (int((~valid).sum()),))
        return found

    def proved(self, index: int) -> bool:
        """Whether result ``index`` is that of the whole program."""
        if index >= len(self.found):
            return False
        want, have, side = self.wanted[index], self.found[index], self.results[index]
        if want is None or have is None or (want.ids != want.ids[:1]).any():
            return False
        for device, offset in enumerate(side.offsets):
            part = want.ids[0][tuple(slice(o, o + n) for o, n in zip(offset, side.tile, strict=True))]
            own = have.ids[corner(device, part.shape)]
            if side.counts[device] and (part != own).any():
                return False
        return True
