"""Tracebacks as they are, for the time of a search: JAX filters each one that it raises, which costs more than an op's
trace, and a search raises some thousand that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

_OPTION = "jax_traceback_filtering"


@contextmanager
def whole_tracebacks() -> Iterator[None]:
    """Make JAX raise errors with unfiltered tracebacks, inside of the block."""
    before = jax.config.values[_OPTION]
    jax.config.update(_OPTION, "off")
    try:
        yield
    finally:
        jax.config.update(_OPTION, before)
