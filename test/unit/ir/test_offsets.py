"""Tables of a number for each device as arithmetic on the device's id."""

import itertools

import numpy as np
import pytest

from shardpass.ir.offsets import affine_terms

SHAPES = [(8,), (4, 2), (2, 2, 3), (64, 64), (3, 5)]


def counted(base, terms, devices):
    """The table that the terms mean, device by device."""
    return [base + sum(t.factor * (d // t.stride % t.size) for t in terms) for d in range(devices)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_coordinate_of_a_mesh_is_a_sum_of_terms(shape):
    grid = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape))
    for chosen in itertools.product((0, 1), repeat=len(shape)):
        weights = np.array(chosen) * np.arange(3, 3 + len(shape))
        table = 5 + weights @ grid
        base, terms = affine_terms(table)
        assert counted(base, terms, table.size) == table.tolist()
        assert len(terms) <= sum(chosen)


def test_one_axis_is_one_term():
    ((term,), table) = affine_terms(np.arange(8) // 2 * 7)[1], np.arange(8) // 2 * 7
    assert (term.factor, term.stride, term.size) == (7, 2, 4)
    assert counted(0, [term], 8) == table.tolist()


@pytest.mark.parametrize("table", [[0, 2, 1, 3, 7, 4, 5, 6], [0, 0, 1], [0, 1, 2, 3, 4, 5, 7]])
def test_other_tables_are_none(table):
    assert affine_terms(np.array(table)) is None


def test_a_constant_has_no_terms():
    assert affine_terms(np.full(6, 9)) == (9, ())
