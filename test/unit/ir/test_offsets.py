"""Tables of a number for each device as arithmetic on the device's id."""

import itertools

import numpy as np
import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func
from support.elements import Elements

from shardpass.ir.context import make_context
from shardpass.ir.integers import OutOfRange, numbers
from shardpass.ir.offsets import affine_terms, device_value

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


def built(table, kind=None):
    """A module whose @main returns ``device_value(table)``, and the type of that."""
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):

        @func.FuncOp.from_py_func(name="main")
        def main():
            return device_value(np.array(table), None if kind is None else numbers(kind))

    return module


TABLES = {
    "in 32 bits": ([k * (2**31 - 1) // 7 for k in range(8)], 32),
    "tiles": ([k * 2**29 for k in range(8)], 64),
    "down": ([5 - k * 2**28 for k in range(8)], 32),
    "far down": ([-(2**31) - k for k in range(8)], 64),
    "looked up": ([3, 1, 4, 1, 5, 9, 2, 6], 32),
    "looked up in 64 bits": ([3, 1, 4, 1, 5, 2**40, 2, -6], 64),
    "one number": ([2**31] * 8, 64),
    "two digits": ([(d // 2) * 2**33 + d % 2 for d in range(8)], 64),
}


@pytest.mark.parametrize(("table", "width"), TABLES.values(), ids=TABLES)
def test_the_number_of_each_device(table, width):
    """As wide as the numbers are, and no wider; in a wider type where that is asked for."""
    with make_context(), ir.Location.unknown():
        for module, wanted in ((built(table), width), (built(table, 2**40), 64)):
            found = Elements(module, [])
            assert str(found.end.operands[0].type) == f"tensor<i{wanted}>"
            assert [found.result(d, ()) for d in range(8)] == table


def test_a_number_that_the_type_does_not_hold_is_refused():
    for table in ([k * 2**29 for k in range(8)], [0, 3, 1, 2**31], [2**31] * 4):
        with make_context(), ir.Location.unknown(), pytest.raises(OutOfRange):
            built(table, 1)
