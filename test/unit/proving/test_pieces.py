"""Pieces against arrays: a piece of a term that is an array says which element each position holds."""

import numpy as np
import pytest

from shardpass.proving.relations.pieces import Piece, full, joined, minus
from shardpass.proving.relations.reshaping import merged, parted
from shardpass.proving.relations.terms import Term, Terms


def tiles(array, pieces, shape, devices):
    """What the pieces of one argument say of each device's tile; -1 where nothing."""
    found = np.full((devices, *shape), -1)
    for piece in pieces:
        for device in np.flatnonzero(piece.on):
            for index in np.ndindex(*shape):
                i = np.array(index)
                if (piece.lo[device] <= i).all() and (i < piece.hi[device]).all():
                    assert found[device][index] == -1  # disjoint
                    found[device][index] = array[tuple(piece.a @ i + piece.b[device])]
    return found


def argument(terms, rank):
    return terms.make(Term(("argument", 0), (), rank))


def test_boxes_without_a_piece_are_the_rest():
    rng = np.random.default_rng(1)
    for _ in range(50):
        lo, hi = np.sort(rng.integers(0, 6, (2, 3, 2)), axis=0)
        hole_lo, hole_hi = np.sort(rng.integers(0, 6, (2, 3, 2)), axis=0)
        on, hole_on = rng.random(3) < 0.8, rng.random(3) < 0.8
        hole = Piece(0, np.eye(2, dtype=np.int64), np.zeros((3, 2), np.int64), hole_lo, hole_hi, hole_on)
        count = np.zeros((3, 6, 6), int)
        for part_lo, part_hi, part_on in minus(lo, hi, on, hole):
            for d in np.flatnonzero(part_on):
                count[d][tuple(slice(a, b) for a, b in zip(part_lo[d], part_hi[d], strict=True))] += 1
        want = np.zeros((3, 6, 6), int)
        for d in np.flatnonzero(on):
            want[d][tuple(slice(a, b) for a, b in zip(lo[d], hi[d], strict=True))] = 1
            if hole_on[d]:
                want[d][tuple(slice(a, b) for a, b in zip(hole_lo[d], hole_hi[d], strict=True))] = 0
        assert (count == want).all()


@pytest.mark.parametrize("start", [0, 3, 4, 9])
def test_a_parted_dimension_holds_the_same(start):
    terms, array = Terms(), np.arange(40)
    piece = full(argument(terms, 1), np.eye(1, dtype=np.int64), np.array([[start], [start + 2]]), (12,))
    cut = piece.boxed(np.array([1]), np.array([11]))
    found = tiles(array, parted(terms, cut, 0, 4), (3, 4), 2)
    assert (found.reshape(2, 12) == tiles(array, [cut], (12,), 2)).all()


def test_merged_rows_hold_the_same_where_they_run_on():
    terms, array = Terms(), np.arange(24)
    matrix = full(argument(terms, 1), np.array([[4, 1]]), np.array([[0], [8]]), (3, 4))
    (found,) = merged(terms, matrix, 0, 3, 4)
    assert (tiles(array, [found], (12,), 2)[1] == np.arange(8, 20)).all()


def test_pieces_of_two_functions_are_not_joined():
    terms = Terms()
    x = argument(terms, 1)
    low = full(x, np.eye(1, dtype=np.int64), np.array([[0], [4]]), (2,))
    high = full(x, np.eye(1, dtype=np.int64), np.array([[2], [6]]), (2,))
    both = joined(low, high.moved([2]))
    assert both is not None
    assert (tiles(np.arange(10), [both], (4,), 2) == [[0, 1, 2, 3], [4, 5, 6, 7]]).all()
    assert joined(low, low.moved([2])) is None
