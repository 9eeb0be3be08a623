"""Boxes at offsets beyond 32 bits: the programs, without their arrays."""

import re

import jax
import numpy as np
import pytest

from shardpass.jax import offsets

FAR = 2**31 + 5


class Program:
    """Stands for a jitted program; keeps the text that JAX lowers it to in the context of the call, and its offsets."""

    def __init__(self, program):
        self.program = program

    def __call__(self, *arrays):
        self.text = self.program.lower(*arrays).as_text()
        self.at = arrays[-1].tolist()


@pytest.fixture
def programs(monkeypatch):
    made = {}
    for name in ("_cutter", "_flat_cutter", "_writer"):
        real = getattr(offsets, name)
        monkeypatch.setattr(offsets, name, lambda *a, real=real, name=name: made.setdefault(name, Program(real(*a))))
    return made


def array(*shape):
    return jax.ShapeDtypeStruct(shape, np.int8)


@pytest.mark.parametrize(("size", "bits"), [(2**31 - 1, 32), (2**31, 64), (2**31 + 16, 64)])
def test_indices_have_as_many_bits_as_the_array_needs(programs, size, bits):
    offsets.cut(array(size, 4), (size - 8, 0), (8, 4))
    offsets.cut_flat(array(size), size - 8, (2, 4))
    offsets.write(array(size, 4), array(8, 4), (size - 8, 0))
    starts = [programs[name].at[0] for name in ("_cutter", "_flat_cutter", "_writer")]
    assert starts == [size - 8] * 3
    for program in programs.values():
        op = next(line for line in program.text.splitlines() if "dynamic_" in line)
        assert re.findall(r"tensor<i(\d+)>", op) == [str(bits)] * len(re.findall(r"tensor<i\d+>", op)) != []


def test_many_elements_in_small_dimensions_need_no_long_indices(programs):
    offsets.cut(array(2**16, 2**16, 4), (2**16 - 8, 0, 0), (8, 4, 4))
    assert "tensor<i64>" not in programs["_cutter"].text


@pytest.mark.parametrize("bits", [np.int32, np.int64])
def test_both_sorts_of_indices_cut_and_write_the_same(monkeypatch, bits):
    monkeypatch.setattr(offsets, "MOST", 2**31 - 1 if bits is np.int32 else 3)
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    assert offsets.offsets((2, 1), values.shape).dtype == bits
    piece = offsets.cut(jax.numpy.array(values), (2, 1), (3, 2))
    np.testing.assert_array_equal(piece, values[2:5, 1:3])
    flat = offsets.cut_flat(jax.numpy.arange(24), 5, (2, 3))
    np.testing.assert_array_equal(flat, np.arange(5, 11).reshape(2, 3))
    wanted = values.copy()
    wanted[3:6, 0:2] = values[2:5, 1:3]
    written = offsets.write(jax.numpy.array(values), piece, (3, 0))
    np.testing.assert_array_equal(written, wanted)
    assert written.dtype == np.float32
    assert not jax.config.jax_enable_x64


def test_a_long_offset_stays_the_same():
    assert offsets.offsets((FAR, 3), (FAR + 8, 4)).tolist() == [FAR, 3]
