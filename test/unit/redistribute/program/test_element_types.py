"""Element types: both spellings, the width XLA stores, and the NumPy type, against NumPy and jaxlib themselves."""

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.element_types import ELEMENT_TYPES, element_type
from shardpass.ir.context import make_context


@pytest.mark.parametrize(
    ("mlir", "hlo"),
    [
        ("i32", "s32"),
        ("ui8", "u8"),
        ("i1", "pred"),
        ("complex<f32>", "c64"),
        ("f8E4M3FN", "f8e4m3fn"),
        ("bf16", "bf16"),
    ],
)
def test_both_spellings_name_one_type(mlir, hlo):
    assert element_type(mlir) is element_type(hlo)


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=str)
def test_mlir_reads_its_spelling(row):
    with make_context():
        assert str(ir.Type.parse(row.mlir)) == row.mlir


@pytest.mark.parametrize("row", [r for r in ELEMENT_TYPES if r.dtype is not None], ids=str)
def test_widths_are_those_of_the_numpy_types(row):
    kind = row.dtype
    if row.bits >= 8:
        assert kind.itemsize * 8 == row.bits
    else:
        info = ml_dtypes.iinfo(kind) if row.mlir[0] in "ui" else ml_dtypes.finfo(kind)
        assert info.bits == row.bits


def test_narrow_types_are_packed():
    assert element_type("i4").bytes(5) == 3
    assert element_type("i1").bytes(5) == np.zeros(5, bool).nbytes


def test_no_such_type():
    with pytest.raises(KeyError):
        element_type("f31")
