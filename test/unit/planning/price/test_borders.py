"""Borders of fusions, worked out by hand."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict

import pytest
from support.programs import read

from shardpass.cost.fusion import Flops
from shardpass.planning.price.borders import MOST, Borders, borders
from shardpass.planning.price.fold import fold
from shardpass.program.program import OpKind
from tools.bench.real_programs import real_programs

HEAD = "module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {\n  func.func public @main"
MATRIX = "tensor<64x64xf32>"


def by_name(signature: str, body: str) -> dict[str, list[Borders]]:
    """The borders of each op of ``main``, by name without the dialect, in order."""
    program = read(f"{HEAD}{signature} {{\n{body}\n  }}\n}}")
    found, out = borders(program), defaultdict(list)
    for op in program.body.every_op():
        out[op.name.partition(".")[2]].append(found[op.number])
    return out


def test_a_chain_reads_what_goes_in_and_writes_its_end() -> None:
    ops = by_name(
        f"(%x: {MATRIX}, %y: {MATRIX}) -> {MATRIX}",
        f"""    %0 = stablehlo.multiply %x, %x : {MATRIX}
    %1 = stablehlo.add %0, %y : {MATRIX}
    %2 = stablehlo.tanh %1 : {MATRIX}
    return %2 : {MATRIX}""",
    )
    assert ops["multiply"] == [Borders((1, 0), (False,), Flops.RESULTS)]
    assert ops["add"] == [Borders((0, 1), (False,), Flops.RESULTS)]
    assert ops["tanh"] == [Borders((0,), (True,), Flops.RESULTS)]


def test_a_value_of_several_products_is_written_once() -> None:
    ops = by_name(
        f"(%x: {MATRIX}, %w: {MATRIX}) -> ({MATRIX}, {MATRIX})",
        f"""    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %2 = stablehlo.dot_general %w, %0, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}
    return %1, %2 : {MATRIX}, {MATRIX}""",
    )
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)]
    assert ops["dot_general"] == [Borders((1, 1), (True,), Flops.NEST)] * 2


CAUSAL = """    %i = stablehlo.iota dim = 0 : tensor<64x64xi32>
    %j = stablehlo.iota dim = 1 : tensor<64x64xi32>
    %m = stablehlo.compare GE, %i, %j : (tensor<64x64xi32>, tensor<64x64xi32>) -> tensor<64x64xi1>
    %c = stablehlo.constant dense<-1.0e+09> : tensor<f32>
    %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<64x64xf32>
"""


def test_a_mask_of_counters_is_free() -> None:
    ops = by_name(
        f"(%x: {MATRIX}) -> {MATRIX}",
        f"""{CAUSAL}    %s = stablehlo.select %m, %x, %b : tensor<64x64xi1>, {MATRIX}
    return %s : {MATRIX}""",
    )
    for name in ("iota", "compare", "constant", "broadcast_in_dim"):
        for found in ops[name]:
            assert (sum(found.reads), any(found.writes), found.flops) == (0, False, Flops.NONE)
    assert ops["select"] == [Borders((0, 1, 0), (True,), Flops.RESULTS)]


def test_a_mask_that_is_returned_is_written() -> None:
    ops = by_name("() -> tensor<64x64xi1>", f"{CAUSAL}    return %m : tensor<64x64xi1>")
    assert ops["compare"] == [Borders((0, 0), (True,), Flops.NONE)]


def test_a_constant_of_several_numbers_is_read() -> None:
    ops = by_name(
        "(%x: tensor<2xf32>) -> tensor<2xf32>",
        """    %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %0 = stablehlo.add %x, %c : tensor<2xf32>
    return %0 : tensor<2xf32>""",
    )
    assert ops["constant"] == [Borders((), (False,), Flops.NONE)]
    assert ops["add"] == [Borders((1, 1), (True,), Flops.RESULTS)]


SOFTMAX = f"""    %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.add %x, %y : {MATRIX}
    %top = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %t = stablehlo.broadcast_in_dim %top, dims = [0] : (tensor<64xf32>) -> {MATRIX}
    %d = stablehlo.subtract %s, %t : {MATRIX}
    %e = stablehlo.exponential %d : {MATRIX}
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %u = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<64xf32>) -> {MATRIX}
    %p = stablehlo.divide %e, %u : {MATRIX}
    return %p : {MATRIX}"""


def test_a_softmax_passes_over_memory_thrice() -> None:
    """x + y is written beside the greatest, the exponentials are beside their sums, and both are read again."""
    ops = by_name(f"(%x: {MATRIX}, %y: {MATRIX}) -> {MATRIX}", SOFTMAX)
    assert ops["add"] == [Borders((1, 1), (True,), Flops.RESULTS)]  # needed by two, one after the other
    assert ops["reduce"] == [Borders((1, 0), (True,), Flops.TILES)] * 2  # a row's sum is spread over the row
    assert ops["subtract"] == [Borders((1, 0), (False,), Flops.RESULTS)]
    assert ops["exponential"] == [Borders((0,), (True,), Flops.RESULTS)]  # expensive, and needed twice
    assert ops["divide"] == [Borders((1, 0), (True,), Flops.RESULTS)]
    assert [found.reads for found in ops["broadcast_in_dim"]] == [(1,), (1,)]


def test_a_value_of_fusions_that_need_one_another_is_written() -> None:
    """Between the two users of the negation lie a product and a sum of rows."""
    ops = by_name(
        f"(%x: {MATRIX}, %w: {MATRIX}) -> {MATRIX}",
        f"""    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.abs %0 : {MATRIX}
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<64xf32>) -> {MATRIX}
    %5 = stablehlo.add %0, %4 : {MATRIX}
    return %5 : {MATRIX}""",
    )
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)]
    assert ops["abs"] == [Borders((1,), (True,), Flops.RESULTS)]
    assert ops["add"] == [Borders((1, 0), (True,), Flops.RESULTS)]


def test_a_cheap_value_of_two_fusions_is_computed_in_each() -> None:
    ops = by_name(
        f"(%x: {MATRIX}) -> ({MATRIX}, {MATRIX})",
        f"""    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.tanh %0 : {MATRIX}
    %2 = stablehlo.exponential %0 : {MATRIX}
    return %1, %2 : {MATRIX}, {MATRIX}""",
    )
    assert ops["negate"] == [Borders((2,), (False,), Flops.RESULTS)]
    assert ops["tanh"] == ops["exponential"] == [Borders((0,), (True,), Flops.RESULTS)]


def test_a_value_of_many_fusions_is_written() -> None:
    count = MOST + 1
    results = ", ".join([MATRIX] * count)
    lines = [f"    %{place} = stablehlo.tanh %a : {MATRIX}" for place in range(count)]
    returned = ", ".join(f"%{place}" for place in range(count))
    text = "\n".join(lines)
    ops = by_name(
        f"(%x: {MATRIX}, %y: {MATRIX}) -> ({results})",
        f"    %a = stablehlo.add %x, %y : {MATRIX}\n{text}\n    return {returned} : {results}",
    )
    assert ops["add"] == [Borders((1, 1), (True,), Flops.RESULTS)]
    assert ops["tanh"] == [Borders((1,), (True,), Flops.RESULTS)] * count


def test_a_widening_conversion_is_made_again_beside_its_copy_in_memory() -> None:
    """A product needs the f32 array; the sum reads the bf16 array, which has half the bytes."""
    ops = by_name(
        f"(%x: tensor<64x64xbf16>) -> ({MATRIX}, {MATRIX})",
        f"""    %0 = stablehlo.convert %x : (tensor<64x64xbf16>) -> {MATRIX}
    %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %2 = stablehlo.add %0, %0 : {MATRIX}
    return %1, %2 : {MATRIX}, {MATRIX}""",
    )
    assert ops["convert"] == [Borders((2,), (True,), Flops.RESULTS)]
    assert ops["dot_general"] == [Borders((1, 0), (True,), Flops.NEST)]
    assert ops["add"] == [Borders((0, 0), (True,), Flops.RESULTS)]


def test_a_reshape_is_the_array_itself() -> None:
    ops = by_name(
        f"(%x: {MATRIX}) -> tensor<4096xf32>",
        f"""    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.reshape %0 : ({MATRIX}) -> tensor<4096xf32>
    return %1 : tensor<4096xf32>""",
    )
    assert ops["reshape"] == [Borders((0,), (False,), Flops.NONE)]
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)]


def test_products_read_the_matrix_behind_a_transpose() -> None:
    ops = by_name(
        f"(%x: {MATRIX}, %w: {MATRIX}) -> ({MATRIX}, {MATRIX})",
        f"""    %0 = stablehlo.negate %w : {MATRIX}
    %1 = stablehlo.transpose %0, dims = [1, 0] : ({MATRIX}) -> {MATRIX}
    %2 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %3 = stablehlo.transpose %x, dims = [1, 0] : ({MATRIX}) -> {MATRIX}
    return %2, %3 : {MATRIX}, {MATRIX}""",
    )
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)]
    assert ops["transpose"] == [Borders((0,), (False,), Flops.NONE), Borders((1,), (True,), Flops.NONE)]
    assert ops["dot_general"] == [Borders((1, 1), (True,), Flops.NEST)]


def test_heads_that_are_transposed_are_written() -> None:
    """A product of batches reads no array whose batches lie inside of its rows."""
    before, after = "tensor<4x16x8x32xf32>", "tensor<4x8x16x32xf32>"
    ops = by_name(
        f"(%x: {before}) -> tensor<4x8x16x16xf32>",
        f"""    %0 = stablehlo.transpose %x, dims = [0, 2, 1, 3] : ({before}) -> {after}
    %1 = stablehlo.dot_general %0, %0, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3]
      : ({after}, {after}) -> tensor<4x8x16x16xf32>
    return %1 : tensor<4x8x16x16xf32>""",
    )
    assert ops["transpose"] == [Borders((1,), (True,), Flops.NONE)]


def test_halves_of_an_array_are_read_each() -> None:
    half = "tensor<32x64xf32>"
    ops = by_name(
        f"(%x: {MATRIX}) -> {half}",
        f"""    %0 = stablehlo.slice %x [0:32, 0:64] : ({MATRIX}) -> {half}
    %1 = stablehlo.slice %x [32:64, 0:64] : ({MATRIX}) -> {half}
    %2 = stablehlo.add %0, %1 : {half}
    return %2 : {half}""",
    )
    assert ops["slice"] == [Borders((1,), (False,), Flops.NONE)] * 2


def test_an_update_in_place_reads_the_update_alone() -> None:
    row = "tensor<1x64xf32>"
    ops = by_name(
        f"(%x: {MATRIX}, %u: {row}, %i: tensor<i32>) -> {MATRIX}",
        f"""    %0 = stablehlo.negate %u : {row}
    %1 = stablehlo.dynamic_update_slice %x, %0, %i, %i : ({MATRIX}, {row}, tensor<i32>, tensor<i32>) -> {MATRIX}
    return %1 : {MATRIX}""",
    )
    assert ops["negate"] == [Borders((1,), (False,), Flops.RESULTS)]
    assert ops["dynamic_update_slice"] == [Borders((0, 0, 1, 0), (True,), Flops.PART, in_place=True)]


def test_zeros_that_a_scatter_adds_to_are_written() -> None:
    """The gradient of an embedding: the counters of a mask would be free, but an update in place needs the array."""
    ops = by_name(
        f"(%i: tensor<8x1xi32>, %u: tensor<8x64xf32>) -> {MATRIX}",
        f"""    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> {MATRIX}
    %1 = "stablehlo.scatter"(%0, %i, %u) <{{indices_are_sorted = false,
      scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }}) : ({MATRIX}, tensor<8x1xi32>, tensor<8x64xf32>) -> {MATRIX}
    return %1 : {MATRIX}""",
    )
    assert ops["broadcast_in_dim"] == [Borders((0,), (True,), Flops.NONE)]
    assert ops["scatter"] == [Borders((0, 1, 1), (True,), Flops.PART, in_place=True)]


def test_loops_carry_values_in_memory() -> None:
    ops = by_name(
        f"(%x: {MATRIX}) -> {MATRIX}",
        f"""    %z = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<4> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %a = stablehlo.negate %x : {MATRIX}
    %r:2 = stablehlo.while(%i = %z, %v = %a) : tensor<i32>, {MATRIX}
     cond {{
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %k = stablehlo.add %i, %one : tensor<i32>
      %w = stablehlo.abs %v : {MATRIX}
      %t = stablehlo.tanh %w : {MATRIX}
      stablehlo.return %k, %t : tensor<i32>, {MATRIX}
    }}
    %s = stablehlo.negate %r#1 : {MATRIX}
    return %s : {MATRIX}""",
    )
    assert ops["while"] == [Borders((0, 0), (False, False), Flops.NONE)]
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)] * 2
    assert ops["abs"] == [Borders((1,), (False,), Flops.RESULTS)]
    assert ops["tanh"] == [Borders((0,), (True,), Flops.RESULTS)]


def test_a_barrier_parts_fusions() -> None:
    ops = by_name(
        f"(%x: {MATRIX}) -> {MATRIX}",
        f"""    %0 = stablehlo.negate %x : {MATRIX}
    %1 = stablehlo.optimization_barrier %0 : {MATRIX}
    %2 = stablehlo.abs %1 : {MATRIX}
    return %2 : {MATRIX}""",
    )
    assert ops["negate"] == [Borders((1,), (True,), Flops.RESULTS)]
    assert ops["optimization_barrier"] == [Borders((0,), (False,), Flops.NONE)]
    assert ops["abs"] == [Borders((1,), (True,), Flops.RESULTS)]


LAYER = f"""    %d{{now}} = stablehlo.dot_general {{before}}, %w, contracting_dims = [1] x [0]
      : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %n{{now}} = stablehlo.negate %d{{now}} : {MATRIX}
    %m{{now}} = stablehlo.multiply %n{{now}}, {{before}} : {MATRIX}
    %a{{now}} = stablehlo.abs %n{{now}} : {MATRIX}
    %p{{now}} = stablehlo.dot_general %m{{now}}, %a{{now}}, contracting_dims = [1] x [0]
      : ({MATRIX}, {MATRIX}) -> {MATRIX}
    %y{{now}}, %z{{now}} = stablehlo.optimization_barrier %p{{now}}, %a{{now}} : {MATRIX}, {MATRIX}
"""


@pytest.mark.parametrize("count", [2, 16])
def test_a_folded_program_has_the_borders_of_the_ops_it_stands_for(count: int) -> None:
    """Where a layer's output is its own input; a barrier's parts touch nothing."""
    text = "".join(LAYER.format(now=now, before=f"%y{now - 1}" if now else "%x") for now in range(count))
    main = f"(%x: {MATRIX}, %w: {MATRIX}) -> {MATRIX} {{\n{text}    return %y{count - 1} : {MATRIX}\n  }}\n}}"
    program = read(HEAD + main)
    folded = fold(program, {})
    assert (len(folded.program.body.ops) < 6 * count) == (count > 2)
    whole = borders(program)
    few = borders(folded.program)
    for number, rep in folded.ops.items():
        if number in folded.parts:
            assert few[rep] == Borders((0,), (False,), Flops.NONE)
        else:
            assert few[rep] == whole[number]
    assert [whole[op.number].writes for op in program.body.ops[1:3]] == [(False,), (True,)]


def test_a_folded_program_keeps_its_borders_while_others_are_asked_about_and_no_longer() -> None:
    """A search asks again after it planned many others; one value of this folded program has several makers."""
    text = "".join(LAYER.format(now=now, before=f"%y{now - 1}" if now else "%x") for now in range(16))
    main = f"(%x: {MATRIX}, %w: {MATRIX}) -> {MATRIX} {{\n{text}    return %y15 : {MATRIX}\n  }}\n}}"
    folded = fold(read(HEAD + main), {})
    assert folded.repeats
    before = borders(folded.program)
    others = [read(f"{HEAD}(%x: {MATRIX}) -> {MATRIX} {{\n    return %x : {MATRIX}\n  }}\n}}") for _ in range(50)]
    assert [borders(other) for other in others] == [{}] * 50
    assert borders(folded.program) == before
    body = weakref.ref(folded.program.body)
    del folded
    gc.collect()
    assert body() is None


@pytest.mark.parametrize("name", ["lstm_train", "norms", "transformer_scanned"])
def test_what_is_read_is_in_memory_and_what_is_written_is_wanted(name: str) -> None:
    program = read(real_programs()[name].lower().text)
    found = borders(program)
    makers = {value: op for op in program.body.every_op() for value in op.results}

    def is_written(value: int) -> bool:
        """A value that no op makes, or the result of an op that writes, of a loop or of a constant."""
        op = makers.get(value)
        if op is None:
            return True
        if op.name in ("stablehlo.reshape", "stablehlo.custom_call") and found[op.number].flops is Flops.NONE:
            return is_written(op.operands[0])
        written = found[op.number].writes[op.results.index(value)]
        return written or op.kind is OpKind.CONTROL_FLOW or op.name == "stablehlo.constant"

    ops = list(program.body.every_op())
    returned = [*program.body.returned, *(value for op in ops for block in op.blocks for value in block.returned)]
    wanted = {*returned, *(value for op in ops for value in op.operands)}
    assert all(map(is_written, returned))
    for op in ops:
        for value, times in zip(op.operands, found[op.number].reads, strict=True):
            assert times == 0 or is_written(value), op
        for value, written in zip(op.results, found[op.number].writes, strict=True):
            assert not written or value in wanted, op
