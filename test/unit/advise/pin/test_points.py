"""Which values are pinned: those that XLA would otherwise shard by what one of their users wants."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from shardpass.advise.pin.pin import within
from shardpass.advise.pin.points import OPERAND, decided, pinned_module
from shardpass.ir.context import parse_module
from shardpass.ir.written import bytecode
from shardpass.targets.compiler import Compiler
from shardpass.targets.target import cpu

ROWS, COLUMNS = 64, 512


@pytest.fixture
def module():
    """A sum by columns wants an elementwise result in another sharding than a product by rows does.

    x is small and split, w and b are whole, and results are too, so shardpass gathers x: 7/8 of 64 x 16 floats.
    """
    mesh = Mesh(np.array(jax.devices()[:8]), ("d",), axis_types=(AxisType.Auto,))

    def step(x, w, v):
        h = jax.nn.relu(x @ w)
        return jnp.sum(h, axis=0), h.T @ x, h @ v

    shapes = ((ROWS, 16), P("d")), ((16, COLUMNS), P()), ((COLUMNS, 16), P())
    given = [jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, spec)) for shape, spec in shapes]
    whole = NamedSharding(mesh, P())
    return parse_module(jax.jit(step, out_shardings=(whole,) * 3).lower(*given).as_text(debug_info=True))


def test_an_elementwise_result_that_is_taken_in_two_shardings_is_pinned(module):
    with module.context:
        decision = decided(module)
        operands = {point.spot.op for point in decision.points if point.spot.side == OPERAND}
        assert operands, "shardpass brings no operand elsewhere"
        with Compiler(cpu(8)) as compiler:
            program = compiler.compile(bytecode(pinned_module(module, decision.mesh, decision.points)))
    assert program.bytes_scattered == decision.plan.bytes_received


def test_a_decision_within_less_memory(module):
    """Split by rows, h takes an eighth of the 128 KiB that it takes where x is gathered."""
    with module.context:
        free = decided(module).plan.alive.peak
        tight = decided(module, within("propagate", free - 1)).plan
    assert free > ROWS * COLUMNS * 4
    assert tight.alive.peak < free
