"""Read which arguments of ``@main`` are donated: a result reuses their memory.

JAX names the result that reuses an argument's memory (``tf.aliasing_output``), or leaves the choice to XLA
(``jax.buffer_donor``), which chooses the first remaining result of the same size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxlib.mlir import ir

from shardpass.ir.annotations import Signature

ALIASING, DONOR = "tf.aliasing_output", "jax.buffer_donor"


def donated(signature: Signature, arguments: Sequence[int], results: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield donated arguments with their results, by place. ``arguments``, ``results``: their bytes."""
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
        match = next((index for index, size in left.items() if size == arguments[place]), None)
        if match is not None:
            del left[match]
            yield place, match
