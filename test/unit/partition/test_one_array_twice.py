"""An op that takes one array twice: a copy that serves for both operands is made once.

The mesh is d=2, m=2. Expected bytes are arithmetic; the whole program on one device is the witness of results.
"""

from __future__ import annotations

import pytest
from support.differential import check_text

from shardpass.pipeline.plan import plan_module

ROWS = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}"  # over d
BYTES = 64 * 8 * 4


def gram(shape: str, contracting: int, result: str) -> str:
    """``x @ x.T`` or ``x.T @ x`` of ``shape``, with x in rows over d, split as ``result``."""
    x, whole = f"tensor<{shape}xf32>", "tensor<64x64xf32>"
    return f"""
    module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['d'=2,'m'=2]"}} {{
      func.func @main(%x: {x} {{mhlo.sharding = "{ROWS}"}}) -> ({whole} {{mhlo.sharding = "{result}"}}) {{
        %0 = stablehlo.dot_general %x, %x, contracting_dims = [{contracting}] x [{contracting}] : ({x}, {x}) -> {whole}
        return %0 : {whole}
      }}
    }}
    """


@pytest.mark.parametrize(
    ("shape", "contracting", "result"),
    [
        ("64x8", 1, "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"),  # the left operand is cut from the right
        ("8x64", 0, "{devices=[2,2]<=[2,2]T(1,0)}"),  # both are cut from a whole copy
    ],
)
def test_gathered_once(shape: str, contracting: int, result: str) -> None:
    """Half of x is received, in one collective."""
    text = gram(shape, contracting, result)
    assert [(sent.kind, sent.bytes) for sent in plan_module(text, machine="ideal").collectives] == [
        ("all_gather", BYTES // 2)
    ]
    assert check_text(text).kinds == ["all_gather"]


def test_what_is_near_is_not_gathered() -> None:
    """Rows over d and columns over m: the left operand lies so, and the right one is half of x."""
    text = gram("64x8", 1, "{devices=[2,2]<=[4]}")
    assert plan_module(text, machine="ideal").bytes_received == BYTES // 2
    check_text(text)
