"""The account of built modules, beside XLA's own statistics of the same modules on its CPU client."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import shardpass
from shardpass.cost.lifetimes import CPU, OTHERS
from shardpass.ir.context import parse_module
from shardpass.ir.memory import memory_of

HEAD = "module attributes {mhlo.num_partitions = 1 : i32} {\n"


def module(arguments: str, results: str, body: str) -> str:
    return f"{HEAD}func.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n}}"


M, N, V, CUBE = "tensor<64x64xf32>", "tensor<64x64xi32>", "tensor<64xf32>", "tensor<4x64x64xf32>"
DOT = f"stablehlo.dot_general {{}}, {{}}, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}"
HEADS = "tensor<4x16x4x16xf32>"
OVER_HEADS = f"""stablehlo.dot_general {{}}, {{}}, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        : ({HEADS}, {HEADS}) -> tensor<4x4x16x16xf32>"""


def a_loop(carried: str, body: str, returned: str) -> str:
    """Nine rounds of ``body``, which carries matrices from ``carried`` to ``returned``; the first is the result."""
    names, types = [name.split(" = ")[0] for name in carried.split(", ")], ", ".join([M] * (carried.count(",") + 1))
    return f"""
      %n = stablehlo.constant dense<0> : tensor<i32>
      %0:{len(names) + 1} = stablehlo.while(%i = %n, {carried}) : tensor<i32>, {types}
       cond {{
        %m = stablehlo.constant dense<9> : tensor<i32>
        %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        {body}
        stablehlo.return %j, {returned} : tensor<i32>, {types}
      }}
      %1 = {DOT.format("%0#1", "%w")}
      return %1 : {M}"""


CASES = {
    "a loop whose product reads what it replaces": a_loop("%h = %x", f"%p = {DOT.format('%h', '%w')}", "%p"),
    "a loop that transposes what it carries": a_loop(
        "%h = %x",
        f"%t = stablehlo.transpose %h, dims = [1, 0] : ({M}) -> {M} %p = stablehlo.tanh %t : {M}",
        "%p",
    ),
    "a loop that adds to what it carries": a_loop("%h = %x", f"%p = stablehlo.add %h, %w : {M}", "%p"),
    "a loop that rotates what it carries": a_loop("%h = %x, %k = %w, %l = %x", "", "%k, %l, %h"),
    "a loop that shifts what it carries": a_loop(
        "%h = %x, %k = %w, %l = %x", f"%p = stablehlo.tanh %l : {M}", "%k, %l, %p"
    ),
    "a chain between two products": f"""
      %0 = {DOT.format("%x", "%w")}
      %1 = stablehlo.tanh %0 : {M}
      %2 = stablehlo.add %1, %1 : {M}
      %3 = {DOT.format("%2", "%w")}
      return %3 : {M}""",
    "values that live together": f"""
      %0 = {DOT.format("%x", "%w")}
      %1 = {DOT.format("%0", "%w")}
      %2 = {DOT.format("%0", "%1")}
      %3 = {DOT.format("%2", "%1")}
      return %3 : {M}""",
    "a transposed operand": f"""
      %t = stablehlo.transpose %w, dims = [1, 0] : ({M}) -> {M}
      %0 = {DOT.format("%x", "%t")}
      return %0 : {M}""",
    "a loop": f"""
      %n = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = stablehlo.while(%i = %n, %h = %x) : tensor<i32>, {M}
       cond {{
        %m = stablehlo.constant dense<9> : tensor<i32>
        %c = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        %p = {DOT.format("%h", "%w")}
        %q = stablehlo.tanh %p : {M}
        stablehlo.return %j, %q : tensor<i32>, {M}
      }}
      %1 = {DOT.format("%0#1", "%w")}
      return %1 : {M}""",
    "a long reduction": f"""
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = {DOT.format("%x", "%w")}
      %1 = stablehlo.exponential %0 : {M}
      %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [1] : ({M}, tensor<f32>) -> {V}
      %3 = stablehlo.broadcast_in_dim %2, dims = [0] : ({V}) -> {M}
      %4 = stablehlo.divide %1, %3 : {M}
      %5 = {DOT.format("%4", "%w")}
      return %5 : {M}""",
    "heads that are turned around": f"""
      %q = stablehlo.reshape %x : ({M}) -> {HEADS}
      %k = stablehlo.reshape %w : ({M}) -> {HEADS}
      %0 = {OVER_HEADS.format("%q", "%k")}
      %1 = stablehlo.reshape %0 : (tensor<4x4x16x16xf32>) -> {M}
      return %1 : {M}""",
    "one copy for two products": f"""
      %q = stablehlo.reshape %x : ({M}) -> {HEADS}
      %k = stablehlo.reshape %w : ({M}) -> {HEADS}
      %j = stablehlo.tanh %k : {HEADS}
      %0 = {OVER_HEADS.format("%q", "%k")}
      %1 = {OVER_HEADS.format("%q", "%j")}
      %2 = stablehlo.dot_general %0, %1, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]
        : (tensor<4x4x16x16xf32>, tensor<4x4x16x16xf32>) -> tensor<4x4x16x16xf32>
      %3 = stablehlo.reshape %2 : (tensor<4x4x16x16xf32>) -> {M}
      return %3 : {M}""",
    "a product that is updated": f"""
      %i = stablehlo.constant dense<3> : tensor<i32>
      %o = stablehlo.constant dense<0> : tensor<i32>
      %0 = {DOT.format("%x", "%w")}
      %1 = stablehlo.slice %x [0:1, 0:64] : ({M}) -> tensor<1x64xf32>
      %2 = stablehlo.dynamic_update_slice %0, %1, %i, %o : ({M}, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> {M}
      %3 = {DOT.format("%2", "%w")}
      return %3 : {M}""",
    "an update that is computed": f"""
      %c = stablehlo.slice %w [0:1, 0:1] : ({M}) -> tensor<1x1xf32>
      %r = stablehlo.reshape %c : (tensor<1x1xf32>) -> tensor<f32>
      %i = stablehlo.convert %r : (tensor<f32>) -> tensor<i32>
      %o = stablehlo.constant dense<0> : tensor<i32>
      %0 = {DOT.format("%x", "%w")}
      %s = stablehlo.slice %x [0:32, 0:64] : ({M}) -> tensor<32x64xf32>
      %1 = stablehlo.tanh %s : tensor<32x64xf32>
      %2 = stablehlo.dynamic_update_slice %0, %1, %i, %o : ({M}, tensor<32x64xf32>, tensor<i32>, tensor<i32>) -> {M}
      return %2 : {M}""",
    "bits under another type": f"""
      %0 = stablehlo.bitcast_convert %x : ({M}) -> {N}
      %1 = stablehlo.bitcast_convert %w : ({M}) -> {N}
      %2 = stablehlo.dot_general %0, %1, contracting_dims = [1] x [0] : ({N}, {N}) -> {N}
      %3 = stablehlo.bitcast_convert %2 : ({N}) -> {M}
      return %3 : {M}""",
    "a copy that the program asks for": f"""
      %0 = {DOT.format("%x", "%w")}
      %1 = "mhlo.copy"(%0) : ({M}) -> {M}
      %2 = {DOT.format("%1", "%0")}
      return %2 : {M}""",
    "a broadcast in its old form": f"""
      %0 = stablehlo.slice %x [0:1, 0:64] : ({M}) -> tensor<1x64xf32>
      %1 = stablehlo.reshape %0 : (tensor<1x64xf32>) -> {V}
      %2 = stablehlo.broadcast %1, sizes = [64] : ({V}) -> {M}
      %3 = stablehlo.reverse %2, dims = [1] : {M}
      return %3 : {M}""",
    "a map": f"""
      %0 = "stablehlo.map"(%x) <{{dimensions = array<i64: 0, 1>}}> ({{
        ^bb0(%e: tensor<f32>):
          %f = stablehlo.sine %e : tensor<f32>
          stablehlo.return %f : tensor<f32>
      }}) : ({M}) -> {M}
      %1 = stablehlo.reverse %0, dims = [1] : {M}
      return %1 : {M}""",
    "bits of a product": f"""
      %0 = {DOT.format("%x", "%w")}
      %1 = stablehlo.bitcast_convert %0 : ({M}) -> {N}
      %2 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : ({N}, {N}) -> {N}
      %3 = stablehlo.bitcast_convert %2 : ({N}) -> {M}
      %4 = {DOT.format("%3", "%w")}
      return %4 : {M}""",
    "an expensive value that is broadcast": f"""
      %i = stablehlo.iota dim = 0 : {CUBE}
      %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({M}) -> {CUBE}
      %1 = stablehlo.multiply %0, %i : {CUBE}
      %2 = stablehlo.exponential %1 : {CUBE}
      %3 = stablehlo.broadcast_in_dim %2, dims = [1, 2, 3] : ({CUBE}) -> tensor<2x4x64x64xf32>
      %4 = stablehlo.iota dim = 0 : tensor<2x4x64x64xf32>
      %5 = stablehlo.subtract %3, %4 : tensor<2x4x64x64xf32>
      %6 = stablehlo.reshape %5 : (tensor<2x4x64x64xf32>) -> tensor<64x512xf32>
      %7 = stablehlo.dot_general %6, %6, contracting_dims = [1] x [1]
        : (tensor<64x512xf32>, tensor<64x512xf32>) -> {M}
      return %7 : {M}""",
    "small reductions that go on": f"""
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.slice %x [0:63, 0:64] : ({M}) -> tensor<63x64xf32>
      %0 = stablehlo.reshape %s : (tensor<63x64xf32>) -> tensor<252x16xf32>
      %1 = stablehlo.reduce(%0 init: %z) applies stablehlo.maximum across dimensions = [1]
        : (tensor<252x16xf32>, tensor<f32>) -> tensor<252xf32>
      %2 = stablehlo.reduce(%0 init: %z) applies stablehlo.minimum across dimensions = [1]
        : (tensor<252x16xf32>, tensor<f32>) -> tensor<252xf32>
      %3 = stablehlo.power %1, %2 : tensor<252xf32>
      %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<252xf32>) -> tensor<252x16xf32>
      %5 = stablehlo.reshape %4 : (tensor<252x16xf32>) -> tensor<63x64xf32>
      %6 = stablehlo.pad %5, %z, low = [1, 0], high = [0, 0], interior = [0, 0]
        : (tensor<63x64xf32>, tensor<f32>) -> {M}
      %7 = stablehlo.add %6, %x : {M}
      return %7 : {M}""",
}


@pytest.mark.parametrize("name", CASES)
def test_small_modules_as_xla_counts_them(name: str) -> None:
    """To 256 bytes: XLA keeps a few counters of its own."""
    whole = '{mhlo.sharding = "{replicated}"}'
    text = module(f"%x: {M} {whole}, %w: {M} {whole}", f"{M} {whole}", CASES[name])
    built = shardpass.run_pipeline(text, "partition")
    found = memory_of(built, CPU).account
    stats = shardpass.compile(built).memory_stats()
    assert (found.arguments, found.results) == (stats.argument_size_in_bytes, stats.output_size_in_bytes)
    assert found.temporaries == pytest.approx(stats.temp_size_in_bytes, abs=256)


def test_kernels_of_gpus_read_heads_where_they_lie() -> None:
    """XLA:CPU copies both operands into the order that its product wants."""
    text = module(
        f"%x: {HEADS}",
        "tensor<4x4x16x16xf32>",
        f"%0 = {OVER_HEADS.format('%x', '%x')}\nreturn %0 : tensor<4x4x16x16xf32>",
    )
    built = parse_module(text)
    assert memory_of(built, OTHERS).account.temporaries == 0
    assert memory_of(built, CPU).account.temporaries > 0


def test_no_fusion_crosses_a_barrier() -> None:
    """XLA:GPU, and XLA:CPU of jaxlib 0.12, take barriers out after they have fused: what passes one is written."""
    body = f"""%0 = stablehlo.negate %x : {M}
      %1 = stablehlo.optimization_barrier %0 : {M}
      %2 = stablehlo.reverse %1, dims = [1] : {M}
      return %2 : {M}"""
    built = shardpass.run_pipeline(module(f"%x: {M}", M, body), "partition")
    assert memory_of(built, CPU).account.temporaries == 64 * 64 * 4


def test_results_as_xla_counts_them() -> None:
    """An argument, a constant, and one value twice: each has a buffer, and XLA a table of 8 bytes for each."""
    whole = '{mhlo.sharding = "{replicated}"}'
    body = f"""%0 = {DOT.format("%x", "%w")} %c = stablehlo.constant dense<1.0> : {M}
      return %x, %c, %0, %0 : {M}, {M}, {M}, {M}"""
    text = module(f"%x: {M} {whole}, %w: {M} {whole}", ", ".join([f"{M} {whole}"] * 4), body)
    built = shardpass.run_pipeline(text, "partition")
    found, stats = memory_of(built, CPU).account, shardpass.compile(built).memory_stats()
    assert found.results == stats.output_size_in_bytes - 4 * 8 == 4 * 64 * 64 * 4
    assert (found.arguments, found.temporaries) == (stats.argument_size_in_bytes, stats.temp_size_in_bytes)


def test_a_call_that_writes_into_its_operand_as_xla_counts_it() -> None:
    """LAPACK's cholesky wants columns, and writes into the copy that it is given."""
    given = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    text = jax.jit(lambda x: jnp.linalg.cholesky(x @ x.T, symmetrize_input=False) @ x).lower(given).as_text()
    built = shardpass.run_pipeline(text, "partition")
    found = memory_of(built, CPU).account
    assert found.temporaries == pytest.approx(shardpass.compile(built).memory_stats().temp_size_in_bytes, abs=512)


def test_donated_arguments() -> None:
    """One by what it says, one by its size: XLA takes the first result that is as large."""
    body = f"""%0 = {DOT.format("%x", "%w")} %1 = {DOT.format("%0", "%w")} return %1, %0 : {M}, {M}"""
    given = f"%x: {M} {{tf.aliasing_output = 1 : i32}}, %w: {M} {{jax.buffer_donor = true}}"
    found = memory_of(parse_module(module(given, f"{M}, {M}", body), "x.mlir")).account
    size = 64 * 64 * 4
    assert (found.arguments, found.results, found.donated) == (2 * size, 2 * size, 2 * size)


def test_values_and_ops_are_those_of_the_module() -> None:
    text = module(f"%x: {M}, %w: {M}", M, CASES["values that live together"])
    found = memory_of(parse_module(text, "x.mlir"))
    assert found.account.peak_op is not None
    assert found.ops[found.account.peak_op].name == "stablehlo.dot_general"
    assert {found.values[buffer].owner.name for buffer, _ in found.account.alive} == {"stablehlo.dot_general"}
