"""Embeddings, experts, sorting and scans over split dimensions."""

import jax
import jax.numpy as jnp
from integration.explicit_errors.programs.feedforward import D, M, array
from jax.sharding import PartitionSpec as P


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


def experts(x, gate, up, down):
    """A layer of experts: tokens are sent to theirs, and what comes back is summed."""
    weights = jax.nn.softmax(x @ gate, axis=-1)
    hidden = jnp.einsum("td,edf->tef", x, up)
    return jnp.einsum("tef,efd,te->td", jax.nn.relu(hidden), down, weights, out_sharding=P("data", None))


def experts_arguments():
    return array((64, D), 32), array(32, (8, M)), array((8, M), 32, 64), array((8, M), 64, 32)


def combine(outputs, weights):
    """Tokens come back from the devices of their experts."""
    return jnp.einsum("ecd,tec->td", outputs, weights, out_sharding=P("data", None))


def combine_arguments():
    return array((8, M), 16, 32), array((64, D), (8, M), 16)


def order(scores, rows):
    """Rows are put in the order of their scores."""
    places = jnp.argsort(scores)
    return rows.at[places].get(out_sharding=P("data", None))


def order_arguments():
    return array(64), array((64, D), 32)


def counts(table, ids, values):
    """Values are added to rows of a table that is split."""
    return table.at[ids].add(values, out_sharding=P("model", None))


def counts_arguments():
    return array((256, M), 32), array((64, D), dtype="int32"), array((64, D), 32)
