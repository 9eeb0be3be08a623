"""Prove programs with small arrays element by element.

Each element of the whole program's results, and each of each device's tiles, is a scalar term; the tiles are those of
the results where the numbers are equal. What lies in an argument's padding is a term that nothing else has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Loss, is_token
from shardpass.proving.relations.laws import Laws
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.relations.sides import Side
from shardpass.proving.rules import decomposed
from shardpass.proving.scalars import (
    collectives,
    control,
    draws,
    elementwise,
    lookups,
    moves,
    ranks,
    sums,
    whole_rows,
)
from shardpass.proving.scalars.relaxed import Relaxed
from shardpass.proving.scalars.table import MOST, Scalars, TooLarge
from shardpass.proving.scalars.walk import ScalarRule, ScalarWalk, Value, corner

_FAMILIES = (
    *(whole_rows, ranks, moves, elementwise, sums, lookups),
    *(collectives, control, draws, decomposed),
)
RULES: dict[str, ScalarRule] = {name: rule for family in _FAMILIES for name, rule in family.RULES.items()}


class ElementProof:
    """Both programs, walked. A value that has no terms costs the proof of the results that follow from it."""

    def __init__(self, whole: tuple[Any, Mapping[str, Any], int], local: tuple[Any, Mapping[str, Any]],
                 arguments: Sequence[Side], results: Sequence[Side], devices: int,
                 laws: Laws | None = None) -> None:  # fmt: skip
        self._laws = laws or Laws()
        self.table, self.results = Scalars(self._laws), results
        self._relaxed = Relaxed(self.table, self._laws)
        self._losses: list[Loss] = []
        self.stuck: list[Any] | None = None  # ops that may wait forever; None where the walk ended before
        self.draws = 0  # ops of ``stablehlo.rng`` in the whole program
        body, functions, count = whole
        self.wanted: Sequence[Value | None] = []
        self.tiles: Sequence[Value | None] = []
        try:
            inputs = [self._whole(k, side) for k, side in enumerate(arguments)]
            known = ScalarWalk(self.table, count, functions, RULES)
            values = (
                None if ids is None else Value(np.broadcast_to(ids, (count, *ids.shape)), s.element)
                for ids, s in zip(inputs, arguments, strict=True)
            )
            wanted = known.block(body, [None if is_token(a.type) else next(values) for a in body.arguments])
            *_, end = body.operations
            returned = operation(end).operands
            self.wanted = [v for v, value in zip(wanted, returned, strict=True) if not is_token(value.type)]
            self.draws = known.draws
            if all(value is None for value in self.wanted):
                return
            tiles = [
                None if ids is None else Value(self._tiles(k, ids, side), side.element)
                for k, (ids, side) in enumerate(zip(inputs, arguments, strict=True))
            ]
            walk = ScalarWalk(self.table, devices, local[1], RULES, len(self.table.terms))
            self._losses = walk.losses
            self.tiles = walk.block(local[0], tiles)
            self.stuck = walk.stuck
        except TooLarge:
            self.wanted = self.tiles = []

    def _whole(self, index: int, side: Side) -> Ints | None:
        """Return new terms for an argument's elements, in its whole shape; None if it or its tiles exceed ``MOST``."""
        if len(side.offsets) * prod(side.tile) > MOST or prod(side.shape) > MOST:
            return None
        return self.table.fresh(("argument", index), side.shape)

    def losses(self, index: int) -> Sequence[Loss]:
        """Return where the walk over the program of one device lost a value, if the whole one has result ``index``."""
        return self._losses if index < len(self.wanted) and self.wanted[index] is not None else ()

    def _tiles(self, index: int, ids: Ints, side: Side) -> Ints:
        result = np.empty((len(side.offsets), *side.tile), np.int64)
        valid = np.empty(result.shape, bool)
        for device, offset in enumerate(side.offsets):
            part = ids[tuple(slice(o, o + n) for o, n in zip(offset, side.tile, strict=True))]
            at = corner(device, part.shape)
            valid[device] = False
            valid[at], result[at] = True, part
        if not valid.all():
            result[~valid] = self.table.fresh(("padding", index), (int((~valid).sum()),))
        return result

    def proved(self, index: int) -> bool:
        """Return whether result ``index`` equals that of the whole program."""
        if index >= len(self.tiles):
            return False
        want, have, side = self.wanted[index], self.tiles[index], self.results[index]
        if want is None or have is None or (want.ids != want.ids[:1]).any():
            return False
        pairs: dict[tuple[int, int], None] = {}
        for device, offset in enumerate(side.offsets):
            part = want.ids[0][tuple(slice(o, o + n) for o, n in zip(offset, side.tile, strict=True))]
            own = have.ids[corner(device, part.shape)]
            if side.counts[device]:
                apart = part != own
                pairs |= dict.fromkeys(zip(part[apart].tolist(), own[apart].tolist(), strict=True))
        try:
            return self._relaxed.same(list(pairs))
        except TooLarge:
            return False
