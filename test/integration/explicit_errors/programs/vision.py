"""Convolutions and what is around them, images over 'data' and channels over 'model'."""

import jax
import jax.numpy as jnp
from integration.explicit_errors.programs.feedforward import D, M, array
from jax.sharding import PartitionSpec as P

LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolution(images, first, second):
    """The second convolution sums over channels that are split."""
    rows = P("data", None, None, None)
    h = jax.lax.conv_general_dilated(
        images, first, (1, 1), "SAME", dimension_numbers=LAYOUT, out_sharding=P("data", None, None, "model")
    )
    h = jax.nn.relu(h)
    return jax.lax.conv_general_dilated(h, second, (1, 1), "SAME", dimension_numbers=LAYOUT, out_sharding=rows)


def convolution_arguments():
    return array((16, D), 16, 16, 8), array(3, 3, 8, (32, M)), array(3, 3, (32, M), 8)


def patches(images, kernel):
    """Patches of images whose rows are split."""
    b, h, w, c = images.shape
    cut = jnp.reshape(images, (b, h // 8, 8, w // 8, 8, c), out_sharding=P("data", "model", None, None, None, None))
    return jnp.einsum("bxhywc,hwcd->bxyd", cut, kernel)


def patches_arguments():
    return array((8, D), (64, M), 32, 3), array(8, 8, 3, 64)


def areas(images, weights):
    """Sums of rectangles, from sums along rows and columns; rows are split."""
    whole = jax.reshard(images, P(("data", "model"), None, None, None))
    sums = jnp.cumsum(jnp.cumsum(whole, axis=1), axis=2)
    return jnp.einsum("bhwc,cd->bhwd", sums, weights)


def areas_arguments():
    return array((8, D), (32, M), 16, 16), array(16, 32)
