"""Text in pieces, with the elements of large constants put in, is the text that MLIR prints at once."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from jaxlib.mlir import ir

from shardpass.ir import streamed
from shardpass.ir.dialects import make_context

COUNT = 1 << 15
BITS = {"f32": 32, "f64": 64, "f16": 16, "bf16": 16, "i1": 8, "i8": 8, "ui16": 16, "i32": 32, "i64": 64}


def module(element: str, bits: int) -> Any:
    raw = np.random.default_rng(0).integers(0, 2 if element == "i1" else 100, COUNT * bits // 8, dtype=np.uint8)
    kind = f"tensor<{COUNT}x{element}>"
    text = f"""func.func @main(%p: tensor<i1>) -> ({kind}, {kind}, {kind}) {{
  %a = stablehlo.constant dense<"0x{raw.tobytes().hex()}"> : {kind}
  %b = "stablehlo.if"(%p) ({{
    %d = stablehlo.constant dense<"0x{raw[::-1].tobytes().hex()}"> : {kind}
    stablehlo.return %d : {kind}
  }}, {{
    stablehlo.return %a : {kind}
  }}) : (tensor<i1>) -> {kind}
  %s = stablehlo.constant dense<"0x{raw[: bits // 8].tobytes().hex()}"> : {kind}
  return %a, %b, %s : {kind}, {kind}, {kind}
}}"""
    return ir.Module.parse(text)


@pytest.mark.parametrize("element", [*BITS, "complex<f32>"])
@pytest.mark.parametrize("form", [{}, {"enable_debug_info": True}, {"print_generic_op_form": True}])
def test_the_same_text(element: str, form: dict[str, bool]) -> None:
    with make_context():
        given = module(element, BITS.get(element, 64))
        expected = given.operation.get_asm(**form)
        for _ in range(2):  # what stood for the elements is gone after the first time
            found = io.BytesIO()
            streamed.print_to(found, given, **form)
            assert found.getvalue().decode() == expected
        assert given.operation.get_asm(**form) == expected


def test_elements_that_are_left_out() -> None:
    with make_context():
        given, found = module("f32", 32), io.BytesIO()
        streamed.print_to(found, given, large_elements_limit=10)
        assert found.getvalue().decode() == given.operation.get_asm(large_elements_limit=10)
        assert len(found.getvalue()) < 2000


@pytest.mark.parametrize("size", [1, 7, 100])
def test_pieces_end_anywhere(size: int) -> None:
    found = io.BytesIO()
    raw = memoryview(bytes(range(256)) * 300)
    filled = streamed._Filled(found, {b"shardpass.elements_3": raw})
    text = b"x" * 70000 + b"dense_resource<shardpass.elements_3> : t" + b"y" * 70000
    for at in range(0, len(text), size):
        filled.write(text[at : at + size])
    filled.finish()
    digits = raw.hex().upper().encode()
    assert found.getvalue() == b"x" * 70000 + b'dense<"0x' + digits + b'"> : t' + b"y" * 70000
