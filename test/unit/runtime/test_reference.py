"""The unpartitioned program on one device, and XLA's own partitioner, on JAX's programs against JAX itself."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from shardpass.diagnostics import ShardpassError
from shardpass.ir.context import parse_module
from shardpass.runtime import compile_by_xla, compile_single
from shardpass.runtime.reference import strip

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def loss_by_hand(params, images, labels):
    """The MLP of examples/programs/mlp.py, written again in NumPy."""
    h = np.maximum(images @ params["w1"] + params["b1"], 0)
    h = np.maximum(h @ params["w2"] + params["b2"], 0)
    logits = h @ params["w3"] + params["b3"]
    shifted = logits - logits.max(1, keepdims=True)
    return np.mean(np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels])


@pytest.mark.parametrize("compiler", [compile_single, compile_by_xla])
@pytest.mark.parametrize("file", ["mlp_train_step.mlir", "mlp_train_step.sdy.mlir"])
def test_mlp_loss(compiler, file):
    rng = np.random.default_rng(1)
    shapes = {"b1": (128,), "b2": (128,), "b3": (16,), "w1": (64, 128), "w2": (128, 128), "w3": (128, 16)}
    params = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()}
    images, labels = rng.uniform(-1, 1, (32, 64)).astype(np.float32), rng.integers(0, 16, 32, dtype=np.int32)
    exe = compiler((EXAMPLES / file).read_text())
    loss, *new = exe(*params.values(), images, labels)
    assert len(exe.devices) == (1 if compiler is compile_single else 8)
    np.testing.assert_allclose(np.asarray(loss), loss_by_hand(params, images, labels), rtol=1e-5)

    def by_jax(p):
        h = jax.nn.relu(images @ p["w1"] + p["b1"])
        logits = jax.nn.relu(h @ p["w2"] + p["b2"]) @ p["w3"] + p["b3"]
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(32), labels])

    grads = jax.jit(jax.grad(by_jax))({name: jnp.array(value) for name, value in params.items()})
    for name, value in zip(params, new, strict=True):
        np.testing.assert_allclose(np.asarray(value), params[name] - 0.1 * grads[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("file", ["shard_map_matmul.mlir", "shard_map_matmul_reduce_scatter.sdy.mlir"])
def test_manual_regions(file):
    text = (EXAMPLES / file).read_text()
    with pytest.raises(ShardpassError, match="SP530"):
        compile_single(text)
    a = np.arange(8 * 16, dtype=np.float32).reshape(8, 16)
    b = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    (c,) = compile_by_xla(text)(a, b)
    np.testing.assert_array_equal(np.asarray(c), a @ b)


ANNOTATED = """module {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    sdy.sharding_group %0 group_id = 0 : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}"""


def test_nothing_of_shardys_is_left_for_one_device():
    module = parse_module(ANNOTATED)
    with module.context:
        strip(module)
    assert "sdy" not in str(module)
    (found,) = compile_single(ANNOTATED)(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(np.asarray(found), [0, -1, -2, -3])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("format_*.mlir")), ids=lambda p: p.name)
def test_format_document(path):
    exe = compile_by_xla(path.read_text())
    shape = exe.signature.arguments[0].shape
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    for found in (exe(x, 2 * x), compile_single(path.read_text())(x, 2 * x)):
        np.testing.assert_array_equal(np.asarray(found[0]), 3 * x)


def test_a_bad_sharding_is_said_before_xla_drops_it():
    text = (EXAMPLES / "format_rows.mlir").read_text().replace("{devices=[2,1]0,1}", "{bogus}", 1)
    with pytest.raises(ShardpassError, match="bogus"):
        compile_by_xla(text)
