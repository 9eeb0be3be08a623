"""Training loops of flax nnx and of equinox, as their users write them, for tools/bench/hook.py.

A loop is made anew for each measurement: ``LOOPS[name]()`` returns a function that takes one step and returns the loss.
The mesh is 4x2: the batch is split over ``data``, the weights over ``model``; nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Step = Callable[[], float]
BATCH, WIDTH, HIDDEN = 512, 256, 1024


def _batch() -> tuple[Any, Any, Any]:
    """The mesh, inputs and targets."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    devices = jax.devices()[:8]
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=devices)
    rng = np.random.default_rng(0)
    rows = NamedSharding(mesh, PartitionSpec("data"))
    x, y = (jax.device_put(rng.normal(0, 0.1, (BATCH, WIDTH)).astype(np.float32), rows) for _ in range(2))
    return mesh, x, y


def nnx_loop() -> Step:
    """Two linear layers with dropout under AdamW, in ``nnx.jit``."""
    import jax
    import jax.numpy as jnp
    import optax
    from flax import nnx
    from jax.sharding import NamedSharding, PartitionSpec

    mesh, x, y = _batch()

    class Network(nnx.Module):
        """An MLP."""

        def __init__(self, rngs: Any) -> None:
            self.up = nnx.Linear(WIDTH, HIDDEN, rngs=rngs)
            self.dropout = nnx.Dropout(0.1, rngs=rngs)
            self.down = nnx.Linear(HIDDEN, WIDTH, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.down(self.dropout(nnx.relu(self.up(x))))

    model = Network(nnx.Rngs(0))
    for layer, spec in ((model.up, (None, "model")), (model.down, ("model", None))):
        layer.kernel[...] = jax.device_put(layer.kernel[...], NamedSharding(mesh, PartitionSpec(*spec)))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradients = nnx.value_and_grad(lambda m: jnp.mean((m(x) - y) ** 2))(model)
        optimizer.update(model, gradients)
        return value

    return lambda: float(step(model, optimizer, x, y))


def equinox_loop() -> Step:
    """An MLP of three layers under Adam, in ``eqx.filter_jit``, with a check that the loss is a number."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax
    from jax.sharding import NamedSharding, PartitionSpec

    mesh, x, y = _batch()
    network = eqx.nn.MLP(WIDTH, WIDTH, HIDDEN, depth=2, key=jax.random.key(0))
    rule = optax.adam(1e-3)
    arrays, static = eqx.partition((network, rule.init(eqx.filter(network, eqx.is_array))), eqx.is_array)

    def placed(array: Any) -> Any:
        even = array.ndim == 2 and array.shape[0] % 2 == 0
        return jax.device_put(array, NamedSharding(mesh, PartitionSpec("model") if even else PartitionSpec()))

    state = [eqx.combine(jax.tree.map(placed, arrays), static)]

    def step(network: Any, optimizer: Any, x: Any, y: Any) -> Any:
        def loss(network: Any) -> Any:
            value = jnp.mean((jax.vmap(network)(x) - y) ** 2)
            return eqx.error_if(value, jnp.isnan(value), "the loss is not a number")

        differentiated: Any = eqx.filter_value_and_grad(loss)
        value, gradients = differentiated(network)
        updates, optimizer = rule.update(gradients, optimizer, network)
        return (eqx.apply_updates(network, updates), optimizer), value

    jitted: Any = eqx.filter_jit(step)

    def once() -> float:
        state[0], value = jitted(*state[0], x, y)
        return float(value)

    return once


LOOPS: Mapping[str, Callable[[], Step]] = {"nnx_loop": nnx_loop, "equinox_loop": equinox_loop}
NEEDS = {"nnx_loop": "flax", "equinox_loop": "equinox"}
