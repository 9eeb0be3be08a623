"""Products in turn with collectives give what NumPy gives: every role of the dimension, rings of 2 to 8 devices."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import shardpass
from shardpass.diagnostics import collect

# left [batch, rows, inner], right [batch, inner, columns]; every ring divides 24
LEFT, RIGHT, RESULT = (24, 24, 48), (24, 48, 24), (24, 24, 24)
DOT = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>"


def cut(shape, dim, count):
    return tuple(size // count if k == dim else size for k, size in enumerate(shape))


def rings(count):
    return 1 if count == 8 else 2


def sharding(rank, dim, count):
    """Tile k on devices 2k and 2k + 1, as every ring is there twice; among 8 devices on device k."""
    if dim is None:
        return "{replicated}"
    tiles = ["1"] * rank
    tiles[dim] = str(count)
    if rings(count) == 1:
        return "{devices=[" + ",".join(tiles) + f"]<=[{count}]}}"
    return "{devices=[" + ",".join([*tiles, "2"]) + f"]<=[{2 * count}] last_tile_dim_replicate}}"


def boundary(shape, dim, count, element):
    whole, rule = tensor(shape, element), sharding(len(shape), dim, count)
    return (
        tensor(cut(shape, dim, count), element)
        + f' {{mhlo.sharding = "{{manual}}", shardpass.global_type = {whole}, shardpass.sharding = "{rule}"}}'
    )


def collective(count, number):
    groups = np.arange(rings(count) * count).reshape(count, -1).T.tolist()
    return (
        f"replica_groups = dense<{groups}> : tensor<{rings(count)}x{count}xi64>, use_global_device_ids, "
        f"channel_handle = #stablehlo.channel_handle<handle = {number}, type = 1>"
    )


@dataclass(frozen=True)
class Case:
    """A product whose operand ``side`` is gathered along ``dim``; with side 2 the result is scattered along ``dim``."""

    side: int
    dim: int

    def arguments(self, count, element):
        """Shapes cut along a dimension each."""
        dims = {0: (self.dim, None), 1: (None, self.dim), 2: (2, 1)}[self.side]
        return [boundary(shape, dim, count, element) for shape, dim in zip((LEFT, RIGHT), dims, strict=True)]

    def result(self, count, element):
        return boundary(RESULT, self.dim if self.side == 2 else None, count, element)

    def body(self, k, count, element):
        names = [f"%l{k}", f"%r{k}"]
        if self.side == 2:
            shapes = cut(LEFT, 2, count), cut(RIGHT, 1, count)
            kinds = [tensor(shape, element) for shape in (*shapes, RESULT, cut(RESULT, self.dim, count))]
            return f"""    %p{k} = stablehlo.dot_general %l{k}, %r{k}, {DOT} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}
    %out{k} = "stablehlo.reduce_scatter"(%p{k}) ({{
    ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
      %s = stablehlo.add %a, %b : tensor<{element}>
      stablehlo.return %s : tensor<{element}>
    }}) {{scatter_dimension = {self.dim} : i64, {collective(count, k + 1)}}} : ({kinds[2]}) -> {kinds[3]}"""
        whole = (LEFT, RIGHT)[self.side]
        small, large = tensor(cut(whole, self.dim, count), element), tensor(whole, element)
        names[self.side] = f"%g{k}"
        kinds = [tensor(shape, element) for shape in (LEFT, RIGHT, RESULT)]
        return f"""    %g{k} = "stablehlo.all_gather"({"%l" if self.side == 0 else "%r"}{k}) {{
      all_gather_dim = {self.dim} : i64, {collective(count, k + 1)}}} : ({small}) -> {large}
    %out{k} = stablehlo.dot_general {", ".join(names)}, {DOT} : ({kinds[0]}, {kinds[1]}) -> {kinds[2]}"""


CASES = [Case(side, dim) for side in (0, 1, 2) for dim in range(3)]


def program(count, element="f32"):
    arguments, results, lines = [], [], []
    for k, case in enumerate(CASES):
        left, right = case.arguments(count, element)
        arguments += [f"%l{k}: {left}", f"%r{k}: {right}"]
        results.append(case.result(count, element))
        lines.append(case.body(k, count, element))
    outs = ", ".join(f"%out{k}" for k in range(len(CASES)))
    kinds = ", ".join(result.partition(" {")[0] for result in results)
    return (
        f"module attributes {{mhlo.num_partitions = {rings(count) * count} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
        f"  func.func @main({', '.join(arguments)}) -> ({', '.join(results)}) {{\n"
        + "\n".join(lines)
        + f"\n    return {outs} : {kinds}\n  }}\n}}\n"
    )


def looped(count, options="", element="f32"):
    with collect():
        return shardpass.run_pipeline(
            program(count, element), f"builtin.module(shardpass-collective-matmul{{matmul-loops=all {options}}})"
        )


def arrays(dtype):
    rng = np.random.default_rng(0)
    made = []
    for _ in CASES:
        made += [rng.standard_normal(shape).astype(dtype) for shape in (LEFT, RIGHT)]
    return made


FORMS = ["", "matmul-one-way", "matmul-unroll=8", "matmul-one-way matmul-unroll=8"]


@pytest.mark.parametrize("options", FORMS)
@pytest.mark.parametrize("count", [2, 3, 4, 6, 8])
def test_equal_to_numpy(count, options):
    module = looped(count, options)
    text = str(module)
    assert "all_gather" not in text
    assert "reduce_scatter" not in text
    both_ways = count > 4 and "one-way" not in options
    # between the first round and the last; a single one is written out
    between = (count - 1) // (2 if both_ways else 1) - 1
    assert ("stablehlo.while" in text) == ("unroll" not in options and between > 1)
    given = arrays(np.float32)
    found = shardpass.compile(module)(*given)
    for k, (case, array) in enumerate(zip(CASES, found, strict=True)):
        exact = given[2 * k] @ given[2 * k + 1]
        apart = np.abs(np.asarray(array) - exact).max()
        assert apart <= 1e-5 * np.abs(exact).max(), case


def test_sums_of_narrow_floats_are_as_near_as_those_of_one_product():
    """bf16 has 8 bits: the terms of a sum that is gathered are added in f32, and rounded once."""
    module, given = looped(6, element="bf16"), arrays(ml_dtypes.bfloat16)
    apart = []
    for built in (module, program(6, "bf16")):
        found = shardpass.compile(built)(*given)
        exact = [given[2 * k].astype(np.float64) @ given[2 * k + 1].astype(np.float64) for k in range(len(CASES))]
        apart.append([np.abs(np.asarray(f).astype(np.float64) - e).max() for f, e in zip(found, exact, strict=True)])
    for case, in_turn, plain in zip(CASES, *apart, strict=True):
        if case.side < 2:
            assert in_turn <= 1.01 * plain, case
