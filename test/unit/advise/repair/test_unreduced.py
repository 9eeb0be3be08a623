"""Sums that could wait: the edits, their figures under XLA, and what JAX refuses."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import shardpass
from shardpass.advise.repair.unreduced import partial_text
from shardpass.diagnostics import collect

ROWS, WIDTH = 64, 64
TILE = ROWS // 2 * WIDTH * 4  # bytes of a result whose rows are over 'data'
ALL_REDUCE = 2 * TILE * 3 // 4  # received from the 3 others of 'model', once for the sum and once for its copies


@pytest.fixture(autouse=True)
def mesh():
    made = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2, devices=jax.devices()[:8])
    with jax.set_mesh(made):
        yield made


def array(spec, *shape):
    return jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(jax.sharding.get_mesh(), spec))


def branches(x, a, b):
    left = jnp.matmul(x, a, out_sharding=P("data", None))
    return left + jnp.einsum("bf,fd->bd", x, b, out_sharding=P("data", None))


def residual(x, y, a, b):
    return x + jnp.matmul(y, a, out_sharding=P("data", None)) + jnp.matmul(y, b, out_sharding=P("data", None))


def different(x, y, a, b):
    return jnp.matmul(x, a, out_sharding=P(None, None)) + jnp.matmul(y, b, out_sharding=P(None, None))


def microbatches(w, batches):
    def loss(w, x):
        return jnp.sum(jax.nn.relu(x @ w) ** 2)

    def step(total, x):
        return total + jax.grad(loss)(w, x), None

    total, _ = jax.lax.scan(step, jax.reshard(jnp.zeros(w.shape), P(None, "model")), batches)
    return w - 0.1 * total


def weights():
    return array(P("model", None), 128, WIDTH), array(P("model", None), 128, WIDTH)


def found(function, *arguments):
    return shardpass.explain(function, *arguments, machine="ideal", partitioner="xla").findings


def test_two_products_are_completed_once() -> None:
    (one,) = found(branches, array(P("data", "model"), ROWS, 128), *weights())
    assert one.annotations[0].spec == "P('data', unreduced={'model'})"
    assert (one.before.bytes, one.after.bytes) == (2 * ALL_REDUCE, ALL_REDUCE)
    assert one.diff.count('unreduced={"model"}') == 2
    assert "+    return jax.reshard(left + jnp.einsum(" in one.diff


def test_gradients_wait_for_the_last_microbatch() -> None:
    gradient = 64 * 128 // 4 * 4  # bytes of a tile; two devices of 'data' exchange one
    (one,) = found(microbatches, array(P(None, "model"), 64, 128), array(P(None, "data"), 4, 32, 64))
    assert (one.before.bytes, one.after.bytes) == (4 * gradient, gradient)
    for text in ('w, P(None, "model", reduced={"data"})', 'P(None, "model", unreduced={"data"}))', "(total, P(None"):
        assert text in one.diff


def test_what_jax_refuses_is_a_remark_with_its_reason() -> None:
    x, y = array(P("data", None), ROWS, WIDTH), array(P("data", "model"), ROWS, 128)
    with collect() as remarks:
        findings = found(residual, x, y, *weights())
    assert not findings
    (remark,) = (one for one in remarks if one.code == "SP842")
    assert "unreduced" in remark.message.partition("P('data', unreduced={'model'})")[2]
    assert remark.place.line == residual.__code__.co_firstlineno + 1


def test_sums_over_other_axes_do_not_wait_together() -> None:
    x, y = array(P(None, "model"), ROWS, 64), array(P(None, "data"), ROWS, 64)
    with collect() as remarks:
        findings = found(different, x, y, array(P("model", None), 64, 64), array(P("data", None), 64, 64))
    assert not [one for one in findings or () if "could wait" in one.sentence]
    assert not [one for one in remarks if one.code == "SP842"]


def test_the_text_of_a_spec() -> None:
    assert partial_text((("data",), ()), "unreduced", ("model",)) == "P('data', unreduced={'model'})"
    assert partial_text(((), ()), "reduced", ("a", "b")) == "P(reduced={'a', 'b'})"
