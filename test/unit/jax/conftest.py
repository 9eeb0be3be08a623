"""What the tests of JAX share."""

import jax
import pytest


@pytest.fixture(params=[True, False], ids=["shardy", "gspmd"])
def shardy(request):
    """Whether JAX writes Shardy's annotations; each test runs with both notations."""
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", request.param)
    yield request.param
    jax.config.update("jax_use_shardy_partitioner", before)
