"""Programs in plain JAX, each with a wasteful type at the marked line, and with types that it needs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from integration.explicit_reshards.cases import Array, columns, inner, program, rows, whole
from jax.sharding import PartitionSpec as P
from jax.sharding import auto_axes, reshard


@program(rows(16, 64), columns(64, 256), inner(256, 64))
def mlp_gathers_its_batch(x: Any, up: Any, down: Any) -> Any:
    x = reshard(x, P(None, None))  # wasteful
    h = reshard(jax.nn.relu(x @ up), P("data", "model"))
    return jnp.matmul(h, down, out_sharding=P("data", None))


@program(rows(16, 64), columns(64, 256), inner(256, 64))
def mlp_gathers_its_hidden_layer(x: Any, up: Any, down: Any) -> Any:
    h = reshard(jax.nn.relu(x @ up), P("data", None))  # wasteful
    h = reshard(h, P("data", "model"))
    return jnp.matmul(h, down, out_sharding=P("data", None))


@program(rows(16, 64), columns(64, 256), inner(256, 64))
def mlp_repeats_a_type(x: Any, up: Any, down: Any) -> Any:
    h = jax.nn.relu(x @ up)
    h = reshard(h, P("data", "model"))  # wasteful
    return jnp.matmul(h, down, out_sharding=P("data", None))


@program(rows(1024, 64), Array((64, 256), P("data", None)), Array((256, 64), P("data", None)))
def fsdp_gathers_an_activation(x: Any, up: Any, down: Any) -> Any:
    h = x @ reshard(up, P(None, None))
    h = jnp.tanh(reshard(h, P(None, None)))  # wasteful
    h = reshard(h, P("data", None))
    return h @ reshard(down, P(None, None))


@program(
    rows(8, 32, 64), *(Array((64, 4, 16), P(None, "model", None)),) * 3, Array((4, 16, 64), P("model", None, None))
)
def attention_gathers_its_keys(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (jnp.einsum("bsd,dhe->bshe", x, w) for w in (wq, wk, wv))
    k = reshard(k, P("data", None, None, None))  # wasteful
    k = reshard(k, P("data", None, "model", None))
    scores = jax.nn.softmax(jnp.einsum("bshe,bthe->bhst", q, k) / 4)
    mixed = jnp.einsum("bhst,bthe->bshe", scores, v)
    return jnp.einsum("bshe,hed->bsd", mixed, wo, out_sharding=P("data", None, None))


@program(
    rows(8, 32, 64), *(Array((64, 4, 16), P(None, "model", None)),) * 3, Array((4, 16, 64), P("model", None, None))
)
def attention_replicates_its_output(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
    q, k, v = (jnp.einsum("bsd,dhe->bshe", x, w) for w in (wq, wk, wv))
    scores = jax.nn.softmax(jnp.einsum("bshe,bthe->bhst", q, k) / 4)
    mixed = jnp.einsum("bhst,bthe->bshe", scores, v)
    y = jnp.einsum("bshe,hed->bsd", mixed, wo, out_sharding=P(None, None, None))  # wasteful
    return x + reshard(y, P("data", None, None))


@program(
    rows(16, 64), whole(64, 8), Array((8, 64, 32), P("model", None, None)), Array((8, 32, 64), P("model", None, None))
)
def experts_gather_their_weights(x: Any, gate: Any, up: Any, down: Any) -> Any:
    weights = jax.nn.softmax(x @ gate)
    up = reshard(up, P(None, None, None))  # wasteful
    up = reshard(up, P("model", None, None))
    h = jax.nn.relu(jnp.einsum("bd,edf->ebf", x, up))
    y = jnp.einsum("ebf,efd->ebd", h, down)
    weights = reshard(weights, P("data", "model"))
    return jnp.einsum("ebd,be->bd", y, weights, out_sharding=P("data", None))


@program(rows(8, 16, 16, 8), whole(3, 3, 8, 16))
def convolution_gathers_its_images(x: Any, kernel: Any) -> Any:
    x = reshard(x, P(None, None, None, None))  # wasteful
    y = jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return reshard(jax.nn.relu(y), P("data", None, None, None))


@program(whole(128, 64), rows(16, 32, dtype=np.int32), columns(64, 128))
def embedding_looks_up_everywhere(table: Any, tokens: Any, head: Any) -> Any:
    x = table.at[tokens].get(out_sharding=P(None, None, None))  # wasteful
    x = reshard(x, P("data", None, None))
    return x @ head


@program(rows(16, 128))
def sorting_in_a_region_of_its_own(x: Any) -> Any:
    y = auto_axes(lambda a: jnp.sort(a, axis=1), out_sharding=P(None, None))(x)  # wasteful
    return reshard(2 * y, P("data", None))


@auto_axes(out_sharding=P(None, None))  # type: ignore[untyped-decorator]
def _ranked(x: Any) -> Any:
    return jnp.cumsum(x, axis=1)


@program(rows(16, 128))
def region_of_a_module(x: Any) -> Any:
    y = _ranked(x)  # wasteful
    return reshard(y + 1, P("data", None))


@program(rows(16, 64), Array((6, 64, 64), P(None, None, "model")))
def scan_gathers_in_each_step(x: Any, layers: Any) -> Any:
    def step(x: Any, w: Any) -> tuple[Any, None]:
        h = reshard(x, P(None, None))  # wasteful
        h = reshard(jnp.tanh(h @ w), P("data", "model"))
        return reshard(h, P("data", None)), None

    return jax.lax.scan(step, x, layers)[0]


def _loss(weights: Any, x: Any, y: Any) -> Any:
    h = jax.nn.relu(x @ weights[0])
    z = jnp.matmul(h, weights[1], out_sharding=P("data", None))
    z = reshard(z, P(None, None))  # wasteful
    return jnp.mean((reshard(z, P("data", None)) - y) ** 2)


@program(columns(64, 256), inner(256, 64), rows(16, 64), rows(16, 64), of=_loss)
def gradient_of_a_gathered_loss(up: Any, down: Any, x: Any, y: Any) -> Any:
    return jax.grad(_loss)((up, down), x, y)


def _to(x: Any, *names: Any) -> Any:
    """A helper as many programs have one."""
    return reshard(x, P(*names))


@program(rows(16, 64), columns(64, 256), inner(256, 64))
def helper_is_called_once_too_often(x: Any, up: Any, down: Any) -> Any:
    h = _to(jax.nn.gelu(x @ up), None, None)  # wasteful
    h = _to(h, "data", "model")
    return jnp.matmul(h, down, out_sharding=P("data", None))


@program(rows(16, 64), rows(16, 64), columns(64, 64))
def both_operands_of_a_sum(x: Any, y: Any, w: Any) -> Any:
    z = reshard(x, P("model", None)) + reshard(y, P("model", None))  # wasteful
    return reshard(z, P("data", None)) @ w
