"""Cuts within the shards: which are proposed, and that the edited program cuts what is stored in turn."""

from __future__ import annotations

import numpy as np
import pytest

from shardpass.advise.find.propose.cuts import chunks, cuts
from shardpass.advise.find.propose.program import Context
from shardpass.advise.place.sites import Sites, read
from shardpass.advise.place.write import with_changes
from shardpass.diagnostics import Place
from shardpass.ir.context import parse_module
from shardpass.report.naming import Sources
from shardpass.runtime.interpreter import evaluate

STEP = """
module @step attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["model"=4]>
  func.func @main(%x: tensor<2x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>})
      -> (tensor<2xFIRSTxf32>, tensor<2xSECONDxf32>) {
    %0 = stablehlo.slice %x [0:2, 0:FIRST] : (tensor<2x24xf32>) -> tensor<2xFIRSTxf32> loc("train.py":7:4)
    %1 = stablehlo.slice %x [0:2, FIRST:24] : (tensor<2x24xf32>) -> tensor<2xSECONDxf32> loc("train.py":7:4)
    return %0, %1 : tensor<2xFIRSTxf32>, tensor<2xSECONDxf32>
  }
}
"""


def step(first: int) -> str:
    return STEP.replace("FIRST", str(first)).replace("SECOND", str(24 - first))


@pytest.mark.parametrize(("first", "proposed"), [(16, True), (12, False), (6, False), (10, False)])
def test_cuts_are_proposed_that_miss_borders_and_divide(first: int, proposed: bool) -> None:
    """Shards of 6 columns: 12 and 6 are borders, and 10 and 14 columns are no multiples of 4."""
    reading = read(step(first), "step.mlir", Sources(()))
    with reading.module.context:
        edits = list(cuts(Context(Sites(reading), [Place("train.py", 7)])))
    assert len(edits) == proposed


def test_the_edited_program_cuts_what_is_stored_in_turn() -> None:
    """Columns of the pieces [0:16] and [16:24], 4 and 2 for each of 4 devices."""
    text = step(16)
    reading = read(text, "step.mlir", Sources(()))
    module = parse_module(text)
    with reading.module.context:
        (edit,) = cuts(Context(Sites(reading), [Place("train.py", 7)]))
    with module.context:
        edited = with_changes(module, reading.program.mesh.mesh, edit)
    x = np.arange(48, dtype=np.float32).reshape(2, 24)
    turns = np.concatenate(
        [np.r_[4 * device : 4 * device + 4, 16 + 2 * device : 18 + 2 * device] for device in range(4)]
    )
    found = evaluate(edited, [np.ascontiguousarray(x[:, turns])])
    np.testing.assert_array_equal(found[0], x[:, :16])
    np.testing.assert_array_equal(found[1], x[:, 16:])


LOOP = """
import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = AbstractMesh((4,), ("data",), axis_types=(AxisType.Auto,))


def loss(w, scale, x, y):
    xs, ys = (x * scale).reshape(SHAPE, 4), y.reshape(SHAPE, 4)
    return jax.lax.scan(lambda total, one: (total + jnp.sum((one[0] @ w - one[1]) ** 2), None), 0.0, (xs, ys))[0]


batch = NamedSharding(mesh, P("data"))
jitted = jax.jit(jax.value_and_grad(loss, (0, 1)), in_shardings=(None, None, batch, batch))
x = jax.ShapeDtypeStruct((16, 8, 4), "float32")
w, scale = jax.ShapeDtypeStruct((4, 4), "float32"), jax.ShapeDtypeStruct((4,), "float32")
traced = jitted.trace(w, scale, x, x)
text = traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True)
"""


@pytest.mark.parametrize(("shape", "along"), [("2, 8, 8", 0), ("2, 64", 1)])
def test_chunks_take_rows_of_every_device_and_sums_over_all_of_them_stay(shape: str, along: int) -> None:
    """Two chunks of 16 rows of 8: of every second row, or of half of each row; gradients are in the batch's order."""
    made: dict[str, str] = {}
    exec(compile(LOOP.replace("SHAPE", shape), "train.py", "exec"), made)
    reading = read(made["text"], "step.mlir", Sources(()))
    with reading.module.context:
        (edit,) = chunks(Context(Sites(reading)))
    assert edit[0].site.cut == along
    assert len(edit[0].site.origins) == 3  # x, y, and the gradient of x * scale
    module = parse_module(made["text"])
    with module.context:
        edited = with_changes(module, reading.program.mesh.mesh, edit)
    given = [
        np.random.default_rng(seed).random(size, np.float32)
        for seed, size in enumerate([(4, 4), (4,), *2 * [(16, 8, 4)]])
    ]
    for before, after in zip(evaluate(made["text"], given), evaluate(edited, given), strict=True):
        np.testing.assert_allclose(after, before, rtol=1e-4)
