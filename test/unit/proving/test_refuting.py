"""Counterexamples: any device's copy counts, and inputs at the edges show what random ones miss."""

import pytest

from shardpass.ir.context import parse_module
from shardpass.proving import refuting
from shardpass.proving.refuting import counterexample
from test.unit.proving.pairs import local_text, side, whole_text

ROWS = side("tensor<8xf32>", "tensor<4xf32>", "{devices=[2]<=[2]}")
COPIES = side("tensor<8xf32>", "tensor<8xf32>", "{replicated}")
FLAG = side("tensor<i1>", "tensor<i1>", "{replicated}")
INDEX = side("tensor<i32>", "tensor<i32>", "{replicated}")


def found(whole, local, arguments, result):
    texts = whole_text(whole, arguments, [result]), local_text(local, arguments, [result])
    return counterexample(*map(parse_module, texts), isolated=False)


def test_a_copy_on_another_device_that_differs_refutes():
    """Device 1 doubles what device 0 keeps."""
    same = "    %r = stablehlo.abs %x0 : tensor<8xf32>\n    return %r : tensor<8xf32>"
    doubled = """    %id = stablehlo.partition_id : tensor<ui32>
    %i = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %times = stablehlo.add %i, %one : tensor<f32>
    %all = stablehlo.broadcast_in_dim %times, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %a = stablehlo.abs %x0 : tensor<8xf32>
    %r = stablehlo.multiply %a, %all : tensor<8xf32>
    return %r : tensor<8xf32>"""
    difference = found(same, doubled, [COPIES], COPIES)
    assert difference.device == 1
    assert difference.local == 2 * difference.wanted
    assert "on device 1" in str(difference)


EDGES = {  # (whole, local, arguments): alike on all numbers of [-1, 1] that differ, and indices of [0, 8)
    "equal numbers": (
        """    %c = stablehlo.compare LT, %x0, %x1 : (TILE, TILE) -> BOOLEANS
    %r = stablehlo.select %c, %x0, %x0 : BOOLEANS, TILE""",
        """    %c = stablehlo.compare LE, %x0, %x1 : (TILE, TILE) -> BOOLEANS
    %n = stablehlo.negate %x0 : TILE
    %e = stablehlo.compare EQ, %x0, %x1 : (TILE, TILE) -> BOOLEANS
    %r = stablehlo.select %e, %n, %x0 : BOOLEANS, TILE""",
        [ROWS, ROWS],
    ),
    "a negative index": (
        "    %r = stablehlo.abs %x0 : TILE",
        """    %n = stablehlo.constant dense<0> : tensor<i32>
    %low = stablehlo.compare LT, %x1, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %a = stablehlo.abs %x0 : TILE
    %d = stablehlo.add %a, %a : TILE
    %r = stablehlo.select %low, %d, %a : tensor<i1>, TILE""",
        [ROWS, INDEX],
    ),
}


@pytest.mark.parametrize("case", EDGES)
def test_inputs_at_the_edges_refute(case):
    whole, local, arguments = EDGES[case]

    def body(text, size):
        tile = f"tensor<{size}xf32>"
        text = text.replace("TILE", tile).replace("BOOLEANS", f"tensor<{size}xi1>")
        return f"{text}\n    return %r : {tile}"

    difference = found(body(whole, 8), body(local, 4), arguments, ROWS)
    assert difference is not None
    assert difference.seed >= refuting.RUNS


def test_a_program_that_may_never_end_is_left_when_the_time_is_over(monkeypatch):
    monkeypatch.setattr(refuting, "SECONDS", 3.0)
    loop = """    %r = stablehlo.while(%i = %x0) : FLAG
    cond {
      stablehlo.return %i : tensor<i1>
    } do {
      stablehlo.return %i : tensor<i1>
    }
    return %r : FLAG""".replace("FLAG", "tensor<i1>")
    texts = whole_text(loop, [FLAG], [FLAG]), local_text(loop, [FLAG], [FLAG])
    assert isinstance(counterexample(*map(parse_module, texts)), str)
