"""Locate tiles in a whole value by the terms that both consist of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.proving.relations.pieces import Content, Ints, Piece
from shardpass.proving.relations.sides import Side


def where_in(whole: Content, have: Content, devices: int) -> Side | None:
    """Return where the tiles ``have`` are in ``whole``, according to one of their pieces; None if no piece
    determines it.
    """
    offsets = np.zeros((devices, whole.rank), np.int64)
    for dim in range(whole.rank):
        if whole.shape[dim] == have.shape[dim]:
            continue
        cut = [d for d in range(whole.rank) if d != dim and whole.shape[d] != have.shape[d]]
        pairs = [(w, p) for w in whole.pieces for p in have.pieces]
        result = next((o for w, p in pairs if (o := _offset(w, p, dim, cut)) is not None), None)
        if result is None:
            return None
        offsets[:, dim] = result
    return Side(whole.shape, whole.element, have.shape, offsets, np.ones(devices, bool))


def _offset(whole: Piece, piece: Piece, dim: int, cut: Sequence[int]) -> Ints | None:
    """Return each device's offset along ``dim``, by an index that runs along no other dimension that is ``cut``."""
    if whole.term != piece.term:
        return None
    for row in range(len(whole.a)):
        step = int(whole.a[row, dim])
        if step and not whole.a[row, list(cut)].any():
            apart = piece.at_lo[:, row] - whole.b[0, row] - piece.lo @ whole.a[row]
            if (apart[piece.on] % step).any():
                return None
            return _for_all(apart // step, piece)
    return None


def _for_all(result: Ints, piece: Piece) -> Ints | None:
    return result if piece.on.all() else None
