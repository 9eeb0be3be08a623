"""The account of built modules, beside XLA's own statistics of the same modules on its CPU client."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import shardpass
from shardpass.cost.lifetimes import CPU
from shardpass.ir.context import parse_module
from shardpass.ir.memory import memory_of

HEAD = "module attributes {mhlo.num_partitions = 1 : i32} {\n"


def module(arguments: str, results: str, body: str) -> str:
    return f"{HEAD}func.func @main({arguments}) -> ({results}) {{\n{body}\n}}\n}}"


M, V = "tensor<64x64xf32>", "tensor<64xf32>"
DOT = f"stablehlo.dot_general {{}}, {{}}, contracting_dims = [1] x [0] : ({M}, {M}) -> {M}"
HEADS = "tensor<4x16x4x16xf32>"
OVER_HEADS = f"""stablehlo.dot_general {{}}, {{}}, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3]
        : ({HEADS}, {HEADS}) -> tensor<4x4x16x16xf32>"""
CASES = {
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
