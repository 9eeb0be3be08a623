"""Donated arguments of ``@main``: those whose memory a result takes over.

JAX says for which result an argument is (``tf.aliasing_output``), or leaves the choice to XLA (``jax.buffer_donor``),
which takes the first that is left and as large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from shardpass.ir.annotations import Signature

ALIASING, DONOR = "tf.aliasing_output", "jax.buffer_donor"


def donated(signature: Signature, arguments: Sequence[int], results: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Places of donated arguments, each with that of its result. ``arguments``, ``results``: their bytes."""
    left = dict(enumerate(results))
    donors = []
    for place, row in enumerate(signature.arguments):
        if ALIASING in row:
            index = int(ir.IntegerAttr(row[ALIASING]).value)
            if left.pop(index, None) is not None:
                yield place, index
        elif DONOR in row:
            donors.append(place)
    for place in donors:
        found = next((index for index, size in left.items() if size == arguments[place]), None)
        if found is not None:
            del left[found]
            yield place, found
