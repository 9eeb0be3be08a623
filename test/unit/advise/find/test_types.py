"""Explicit axes: edits are looked for without the constraints that JAX makes of types, and found as text."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from shardpass.advise.find.types import without_types
from shardpass.ir.context import parse_module
from tools.processes import environment, module_command

MODULE = """
sdy.mesh @mesh = <["data"=8]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
    -> (tensor<8x4xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.multiply %x, %x : tensor<8x4xf32> loc("jit(step)/mul"("train.py":1:1))
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {}]> : tensor<8x4xf32> loc("jit(step)/mul"("train.py":1:1))
  %2 = sdy.sharding_constraint %1 <@mesh, [{}, {}]> : tensor<8x4xf32> loc("jit(step)/NAME"("train.py":1:1))
  return %2 : tensor<8x4xf32>
}
"""
SCRIPT = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
put = lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec))
weights = {"up": put(jnp.ones((256, 512)), P(None, "model")), "down": put(jnp.ones((512, 256)), P(None, "model"))}

@jax.jit
def step(weights, batch):
    loss = lambda weights: (jax.nn.relu(batch @ weights["up"]) @ weights["down"]).sum(dtype="float32")
    return jax.tree.map(lambda w, g: w - g, weights, jax.grad(loss)(weights))

batch = put(jnp.ones((4096, 256)), P())
step(weights, batch)
"""


@pytest.mark.parametrize(("name", "left"), [("sharding_constraint", 1), ("any_name", 1), ("mul", 0)])
def test_what_users_write_has_a_location_of_its_own(name: str, left: int) -> None:
    module = parse_module(MODULE.replace("NAME", name), "m.mlir")
    free = without_types(module)
    assert free is not None
    text = str(parse_module(free))
    assert text.count("sharding_constraint") == left
    assert text.count("#sdy.sharding<") == 1, "the argument's"
    assert "jax.result_info" in text


def test_the_type_of_a_call_has_the_name_of_its_primitive() -> None:
    text = """
sdy.mesh @mesh = <["data"=8]>
func.func private @relu(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @relu(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("jit(step)/jit(relu)"("train.py":1:1))
  %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}]> : tensor<8xf32> loc("jit(step)/jit"("train.py":1:1))
  %2 = sdy.sharding_constraint %1 <@mesh, [{}]> : tensor<8xf32> loc("jit(step)/sharding_constraint"("train.py":1:2))
  return %2 : tensor<8xf32>
}
"""
    free = without_types(parse_module(text, "m.mlir"))
    assert free is not None
    assert str(parse_module(free, trusted=True)).count("sdy.sharding_constraint") == 1


def test_a_program_without_types_is_none() -> None:
    text = MODULE.replace("NAME", "reshard").replace('loc("jit(step)/mul"("train.py":1:1))', "")
    assert without_types(parse_module(text, "m.mlir")) is None


@pytest.mark.long
def test_a_batch_that_is_whole_is_placed_where_the_script_does(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    asked = "explain", "train.py:step", "--partitioner", "xla", "--machine", "h100", "--patch", "edit.diff"
    where = {**environment(), "JAX_NUM_CPU_DEVICES": "8", "XLA_FLAGS": ""}
    command = module_command("shardpass", *asked, "--seconds", "20")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=where, check=False)
    assert done.returncode == 0, done.stderr
    changed = [line for line in (tmp_path / "edit.diff").read_text().splitlines() if line.startswith(("-b", "+b"))]
    assert changed[:2] == ["-batch = put(jnp.ones((4096, 256)), P())", '+batch = put(jnp.ones((4096, 256)), P("data"))']
    assert "train.py:13: `batch` is not split over data" in " ".join(done.stdout.split())
