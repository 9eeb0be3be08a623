"""Embeddings, experts, sorting and scans over split dimensions."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tools.bench.explicit_errors.programs.feedforward import D, M, array


def embedding(table, ids, w):
    h = table.at[ids].get(out_sharding=P("data", None, None))
    return jnp.mean(h @ w)


def embedding_arguments():
    return array((1024, M), 64), array((16, D), 32, dtype="int32"), array(64, 64)


def embedding_train(table, ids):
    def loss(table):
        return jnp.mean(table.at[ids].get(out_sharding=P("data", None, None)) ** 2)

    return table - 0.1 * jax.grad(loss)(table)


def embedding_train_arguments():
    return array((1024, M), 64), array((16, D), 32, dtype="int32")


def experts(x, router, up, down):
    """Every expert sees all tokens, weighted: experts are split over 'model'."""
    weights = jax.nn.softmax(x @ router, axis=-1)
    h = jax.nn.relu(jnp.einsum("td,edf->etf", x, up))
    y = jnp.einsum("etf,efd->etd", h, down)
    return jnp.einsum("etd,te->td", y, weights, out_sharding=P("data", None))


def experts_arguments():
    return array((64, D), 32), array(32, 8), array((8, M), 32, 64), array((8, M), 64, 32)


def dispatch(x, assignment, up):
    """Tokens go to the devices of their experts."""
    routed = jnp.einsum("td,tec->ecd", x, assignment, out_sharding=P("model", None, None))
    return jax.nn.relu(jnp.einsum("ecd,edf->ecf", routed, up))


def dispatch_arguments():
    return array((64, D), 32), array((64, D), 8, 16), array((8, M), 32, 64)


def gating(logits):
    values, chosen = jax.lax.top_k(jax.reshard(logits, P("data", None)), 2)
    return jax.nn.softmax(values, axis=-1), chosen


def gating_arguments():
    return (array((64, D), (32, M)),)


def ranking(scores):
    ordered = jnp.sort(jax.reshard(scores, P(("data", "model"), None)), axis=-1)
    return ordered[:, -4:]


def ranking_arguments():
    return (array((64, D), (128, M)),)


def sampling(probabilities, thresholds):
    """Sums along the vocabulary, which is split."""
    sums = jnp.cumsum(jax.reshard(probabilities, P("data", None)), axis=-1)
    return jnp.argmax(sums > thresholds[:, None], axis=-1)


def sampling_arguments():
    return array((32, D), (256, M)), array((32, D))


def cross_entropy(x, head, labels):
    logits = x @ head
    normalizer = jax.nn.logsumexp(logits, axis=-1)
    hot = jax.reshard(jax.nn.one_hot(labels, 512), P("data", "model"))
    return jnp.mean(normalizer - jnp.sum(logits * hot, axis=-1))


def cross_entropy_arguments():
    return array((32, D), 64), array(64, (512, M)), array((32, D), dtype="int32")


def images(x, first, second):
    dims = ("NHWC", "HWIO", "NHWC")
    h = jax.lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=dims)
    h = jax.nn.relu(h)
    return jax.lax.conv_general_dilated(
        h, second, (1, 1), "SAME", dimension_numbers=dims, out_sharding=P("data", None, None, None)
    )


def images_arguments():
    return array((8, D), 16, 16, 8), array(3, 3, 8, (16, M)), array(3, 3, (16, M), 8)
