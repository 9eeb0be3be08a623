"""A copy of an annotated array that several ops start from: decided by the tables, planned, and said in text."""

from __future__ import annotations

import numpy as np

import shardpass
from shardpass.cost.machine import find_machine
from shardpass.diagnostics import collect
from shardpass.ir.annotations import COPY
from shardpass.ir.collectives import collectives
from shardpass.planning.decide.candidates import Search
from shardpass.program.table import table_of

KIND = "tensor<64x64xf32>"
ROWS = "{devices=[4,1]<=[4]}"
REST = "builtin.module(shardpass-partition,shardpass-redistribute,canonicalize,cse)"
ENDS = ("{devices=[1,4]<=[4]}", "{devices=[1,4]<=[2,2]T(1,0)}", "{devices=[2,2]<=[4]}")


def program() -> str:
    """Three functions of ``a``: in columns, in columns of another order, in blocks; ``a`` in rows over 2x2 devices."""
    results = ", ".join(f'{KIND} {{mhlo.sharding = "{end}"}}' for end in ENDS)
    ops = "\n".join(
        f'%{place} = stablehlo.{op} %a {{mhlo.sharding = "{end}"}} : {KIND}'
        for place, (op, end) in enumerate(zip(("exponential", "tanh", "cosine"), ENDS, strict=True))
    )
    return f"""
    module attributes {{mhlo.num_partitions = 4 : i32, shardpass.mesh = "mesh['x'=2,'y'=2]"}} {{
      func.func @main(%a: {KIND} {{mhlo.sharding = "{ROWS}"}}) -> ({results}) {{
        {ops}
        return %0, %1, %2 : {KIND}, {KIND}, {KIND}
      }}
    }}"""


def test_the_tables_take_one_gather_for_three_exchanges() -> None:
    """On h100 a start outweighs 12 KiB: the copy is whole, and each op cuts its tile from it."""
    with collect():
        module = shardpass.run_pipeline(program(), "shardpass-import")
        with module.context:
            read = table_of(module, "propagate").program
            search = Search(read, {}, find_machine("h100"))
            search.run()
    (argument,) = read.body.arguments
    assert [dict(point.copies) for point in search.candidates] == [{argument: read.mesh.replicated(2)}]
    assert search.unfolded(search.candidates[0]).copies == {argument: read.mesh.replicated(2)}


def test_text_says_the_copy_and_is_enough() -> None:
    said = str(shardpass.run_pipeline(program(), "shardpass-import,shardpass-propagate{effort=0}"))
    assert COPY not in said
    apart = shardpass.run_pipeline(said, REST)
    assert len(collectives(apart)) >= len(ENDS)
    shared = said.replace(f'sharding = "{ROWS}"', f'sharding = "{ROWS}", {COPY} = "{{replicated}}"', 1)
    built = shardpass.run_pipeline(shared, REST)
    assert COPY not in str(built)
    (use,) = collectives(built)
    assert use.bytes_received == 64 * 64 * 4 * 3 // 4
    a = np.linspace(-1, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
    found = shardpass.compile(built)(a)
    for one, expected in zip(found, (np.exp(a), np.tanh(a), np.cos(a)), strict=True):
        np.testing.assert_allclose(np.asarray(one), expected, rtol=1e-5)
