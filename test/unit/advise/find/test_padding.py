"""Sizes that axes do not divide, and tables with looked-up rows: what a finding says of them, and padding.

Witness of padding: the program as its user writes it with the padded array, lowered by JAX and compiled by XLA.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import shardpass
from shardpass.advise.find.kinds import Kinds
from shardpass.advise.place.padding import Uneven, padded_shape, uneven
from shardpass.advise.place.sites import Sites, read
from shardpass.advise.place.write import Change, with_changes
from shardpass.element_types import element_type
from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.walk import every_op
from shardpass.program.program import Array
from shardpass.report.findings import ANNOTATION, LOOKUP, UNEVEN
from shardpass.report.naming import Sources
from shardpass.sharding import Mesh

AXES = {"data": 4, "model": 2}


@pytest.mark.parametrize(
    ("spec", "shape", "expected", "padded"),
    [
        ((("data",), ()), (50257, 64), [Uneven(0, 50257, ("data",), 4)], (50260, 64)),
        ((("data",), ()), (50260, 64), [], (50260, 64)),
        (((), ("data", "model")), (50257, 10), [Uneven(1, 10, ("data", "model"), 8)], (50257, 16)),
        ((("model",), ("data",)), (5, 6), [Uneven(0, 5, ("model",), 2), Uneven(1, 6, ("data",), 4)], (6, 8)),
    ],
)
def test_uneven_dimensions(spec: Any, shape: Any, expected: list[Uneven], padded: Any) -> None:
    assert list(uneven(spec, shape, AXES)) == expected
    assert padded_shape(spec, shape, AXES) == padded


def test_padding_counts_the_bytes_of_all_tiles() -> None:
    """10 heads in 4 tiles of 3: 2 heads of padding, each 8 x 32 f32."""
    (one,) = uneven(((), ("data",), ()), (8, 10, 32), AXES)
    assert one.wasted(Array((8, 10, 32), element_type("f32"), 8 * 10 * 32 * 4)) == 2 * 8 * 32 * 4


TABLE = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]>
  func.func @main(%table: tensor<101x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("table"),
      %other: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc("other"),
      %ids: tensor<8xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>} loc("ids"))
      -> (tensor<8x16xbf16>, tensor<64x16xf32>) {
    %0 = stablehlo.convert %table : (tensor<101x16xf32>) -> tensor<101x16xbf16>
    %1 = "stablehlo.gather"(%0, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}>
        : (tensor<101x16xbf16>, tensor<8xi32>) -> tensor<8x16xbf16>
    return %1, %other : tensor<8x16xbf16>, tensor<64x16xf32>
  }
}
"""


def test_kinds_are_read_off_the_program() -> None:
    reading = read(TABLE, "step.mlir", Sources(()))
    with reading.module.context:
        sites = Sites(reading)
        kinds = Kinds(sites)
        table, other, _ = sites.arguments
        rows, columns = (("data",), ()), ((), ("model",))
        assert kinds.of((Change(table, rows, (104, 16)),))[0] == UNEVEN
        assert "dimension 0 is 101, no multiple of 4 (padding it takes 192 B)" in kinds.of((Change(table, rows),))[1]
        assert kinds.of((Change(table, None),)) == (LOOKUP, "in which rows are looked up")
        assert kinds.of((Change(other, columns),)) == (ANNOTATION, "")


@pytest.mark.parametrize("element", ["f32", "bf16", "i1", "ui8"])
def test_an_argument_and_its_result_are_padded_to_one_type(element: str) -> None:
    """5 rows over 2 devices: the type of 6, for every element type, a slice at the start and a pad at the end."""
    split, whole = 'sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>', "#sdy.sharding<@mesh, [{}, {}]>"
    text = f"""
    module @step attributes {{mhlo.num_partitions = 2 : i32}} {{
      sdy.mesh @mesh = <["model"=2]>
      func.func @main(%x: tensor<5x4x{element}> {{sdy.sharding = {whole}}} loc("x"))
          -> (tensor<5x4x{element}> {{sdy.sharding = {whole}, jax.result_info = "result"}}) {{
        return %x : tensor<5x4x{element}>
      }}
    }}"""
    reading = read(text, "step.mlir", Sources(()))
    module = parse_module(text)
    with reading.module.context:
        sites = Sites(reading)
        changes = [Change(site, (("model",), ()), (6, 4)) for site in (*sites.arguments, *sites.results)]
        made = parse_module(with_changes(module, Mesh([("model", 2)]), changes), trusted=True)
    with made.context:
        assert made.operation.verify()
        main = main_of(made)
        kind = main.attributes["function_type"].value
        assert [str(one) for one in (*kind.inputs, *kind.results)] == [f"tensor<6x4x{element}>"] * 2
        assert str(main).count(split.partition(" = ")[2].replace("#sdy.sharding", "")) >= 4
        names = [op.name for op in every_op(main)]
        assert names[1:] == [
            "stablehlo.slice",
            "sdy.sharding_constraint",
            "stablehlo.constant",
            "sdy.sharding_constraint",
            "stablehlo.pad",
            "func.return",
        ]


SOURCE = """import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((8,), ("model",), axis_types=(AxisType.Auto,))


def s(*spec):
    return NamedSharding(mesh, P(*spec))


def loss(params, x):
    head = params["head"]
    #SLICE
    return jnp.mean(jax.nn.logsumexp(x @ head, axis=-1))


jitted = jax.jit(jax.value_and_grad(loss), in_shardings=({"head": #SPEC}, s()), out_shardings=(None, {"head": #SPEC}))
f32 = jax.ShapeDtypeStruct
arguments = ({"head": f32((128, #SIZE), "float32")}, f32((12, 128), "float32"))
"""
SLICE = 'head = jax.lax.with_sharding_constraint(head[:, :2049], s(None, "model"))'


def explained(folder: Path, slice_: str, spec: str, size: int) -> Any:
    file = folder / f"train{size}.py"
    file.write_text(SOURCE.replace("#SLICE", slice_).replace("#SPEC", spec).replace("#SIZE", str(size)))
    module = runpy.run_path(str(file))
    return shardpass.explain(module["jitted"], *module["arguments"], partitioner="xla", machine="ideal")


def test_a_padded_vocabulary_saves_what_the_finding_says(tmp_path: Path) -> None:
    """2049 columns over 8 devices: whole on each; padded to 2056, 257 of them, and so of the products."""
    report = explained(tmp_path, "pass", "s()", 2049)
    first = report.findings[0]
    assert first.kind == UNEVEN
    assert first.code == (
        "in_shardings: params['head'] = P(None, 'model'), padded to (128, 2056)",
        "out_shardings: result[1]['head'] = P(None, 'model'), padded to (128, 2056)",
    )
    assert first.diff == ""
    assert "dimension 1 is 2049, no multiple of 8 (padding it takes 3.5 KiB)" in first.sentence
    padded = explained(tmp_path, SLICE, 's(None, "model")', 2056)
    assert first.after.bytes == pytest.approx(padded.total_bytes_received, rel=0.02)
    assert first.after.memory == pytest.approx(padded.memory.total, rel=0.02)
    assert first.after.flops == padded.flops
    assert first.before.flops * 257 == first.after.flops * 2049
