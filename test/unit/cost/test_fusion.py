"""The table of fusions: each op has one row, and every op that shardpass knows has one, or is named here."""

from __future__ import annotations

from collections import Counter

import pytest

import shardpass
from shardpass.cost.fusion import OTHER, ROWS, Operands, Result, fusion_of
from shardpass.ops.owners import FAMILY_OF_OP
from shardpass.runtime.reference import compile_single
from tools.bench.hlo_values import Size, values_in

# Ops that XLA cannot look into, that importing writes in others, or that no program of arrays has.
WITHOUT_A_ROW = frozenset(
    [
        "return",
        "composite",
        "tuple",
        "get_tuple_element",
        "after_all",
        "create_token",
        "async_start",
        "async_done",
        "infeed",
        "outfeed",
        "send",
        "recv",
        "collective_reduce",
        "dynamic_broadcast_in_dim",
        "dynamic_conv",
        "dynamic_gather",
        "dynamic_iota",
        "dynamic_pad",
        "dynamic_reshape",
        "set_dimension_size",
        "cross-replica-sum",
        "unary_einsum",
        "custom_call",
        "batch_norm_inference",
        "batch_norm_training",
        "batch_norm_grad",
    ]
)


def test_every_op_has_one_row() -> None:
    names = Counter(name for row in ROWS for name in row.ops)
    assert [name for name, count in names.items() if count > 1] == []


def test_every_known_op_has_a_row() -> None:
    missing = {name for name in FAMILY_OF_OP if fusion_of(name) is OTHER}
    chlo = {name for name in missing if name.startswith("chlo.")}
    assert {name.removeprefix("stablehlo.") for name in missing - chlo} == WITHOUT_A_ROW
    # importing writes them in others; a scan is a loop
    assert all(name.startswith("chlo.broadcast_") or name == "chlo.scan" for name in chlo)


def test_the_table_names_known_ops_alone() -> None:
    names = {name if "." in name else f"stablehlo.{name}" for row in ROWS for name in row.ops}
    assert names - set(FAMILY_OF_OP) == set()


def test_what_reads_from_memory_is_written() -> None:
    """A call of a library gives no fusion a place for what follows."""
    assert all(row.result is Result.WRITTEN for row in ROWS if row.operands is Operands.READ)


M, N = "tensor<64x64xf32>", "tensor<64x64xi32>"
DOT = f"stablehlo.dot_general {{}}, {{}}, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}"
UNARY = ["sine", "tan", "tanh", "rsqrt", "exponential", "sqrt", "log", "cbrt", "logistic", "ceil"]
TEXTS = {
    **{f"stablehlo.{name}": f"stablehlo.{name} %p : {M}" for name in UNARY},
    **{f"chlo.{name}": f"chlo.{name} %p : {M} -> {M}" for name in ("square", "tan", "erf")},
    "chlo.next_after": f"chlo.next_after %p, %x : {M}, {M} -> {M}",
    "mhlo.erf": f'"mhlo.erf"(%p) : ({M}) -> {M}',
    "mhlo.copy": f'"mhlo.copy"(%p) : ({M}) -> {M}',
}


def written_by_xla(body: str, size: Size) -> int:
    """How many values of ``size`` XLA:CPU writes of ``body``."""
    text = f"""module attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func public @main(%x: {M}, %w: {M}) -> {M} {{
        {body}
      }}
    }}"""
    compiled = compile_single(shardpass.run_pipeline(text, "shardpass-import"))
    return sum(value.size == size for value in values_in(compiled.hlo_text(), frozenset()))


@pytest.mark.turns(2)
@pytest.mark.parametrize("name", TEXTS)
def test_xla_computes_again_what_the_table_repeats(name: str) -> None:
    """Four products, and a negate and a floor that both read the value: what is computed once is a seventh array."""
    body = f"""%p = {DOT.format("%x", "%w")}
        %a = {TEXTS[name]}
        %n = stablehlo.negate %a : {M}
        %f = stablehlo.floor %a : {M}
        %q = {DOT.format("%n", "%w")}
        %r = {DOT.format("%f", "%q")}
        %s = {DOT.format("%f", "%r")}
        return %s : {M}"""
    assert written_by_xla(body, Size("f32", 64 * 64)) == 6 + (fusion_of(name).result is Result.ONCE)


def test_xla_writes_bits_under_another_type() -> None:
    """A bitcast_convert is a loop, and no view: the products of integers read two arrays that it writes."""
    body = f"""%a = stablehlo.bitcast_convert %x : ({M}) -> {N}
        %b = stablehlo.bitcast_convert %w : ({M}) -> {N}
        %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({N}, {N}) -> {N}
        %d = stablehlo.bitcast_convert %c : ({N}) -> {M}
        return %d : {M}"""
    assert fusion_of("stablehlo.bitcast_convert").result is not Result.VIEW
    assert written_by_xla(body, Size("s32", 64 * 64)) == 3


@pytest.mark.parametrize("name", ["partition_id", "replica_id"])
def test_xla_writes_the_number_of_a_device(name: str) -> None:
    body = f"""%n = stablehlo.{name} : tensor<ui32>
        %c = stablehlo.convert %n : (tensor<ui32>) -> tensor<f32>
        %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> {M}
        %e = stablehlo.add %b, %w : {M}
        return %e : {M}"""
    assert fusion_of(f"stablehlo.{name}").result is Result.WRITTEN
    assert written_by_xla(body, Size("u32", 1)) == 1
