"""Scatters of one window to a known position: the same as an update of a slice, or as no update.

Where the window lies outside of the operand, on the devices whose tile has another part, nothing changes. A window that
lies partly outside says nothing here.
"""

from __future__ import annotations

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Site, Unknown
from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece, made
from shardpass.proving.rules.integers import known_numbers
from shardpass.proving.rules.movement import cut, overwritten


def placed(site: Site) -> list[Content]:
    """Relate a ``stablehlo.scatter``. Raises Unknown for several windows and for unknown positions."""
    if len(site.operands) != 3:
        raise Unknown("it scatters several operands at once")
    operand, indices, updates = site.operands
    numbers = hlo.ScatterDimensionNumbers(site.op.attributes["scatter_dimension_numbers"])
    windows, inserted = list(numbers.update_window_dims), list(numbers.inserted_window_dims)
    batch = [d for d in range(updates.rank) if d not in windows]
    if list(numbers.input_batching_dims) or any(updates.shape[d] != 1 for d in batch) or 0 in updates.shape:
        raise Unknown("it scatters several windows")
    block = site.op.regions[0].blocks[0]
    if list(operation(list(block.operations)[-1]).operands) != [block.arguments[1]]:
        raise Unknown("its updates do not take the place of what is there")
    start = np.zeros((site.devices, operand.rank), np.int64)
    for k, dim in enumerate(numbers.scattered_dims_to_operand_dims):
        start[:, dim] = _index(site, indices, numbers.index_vector_dim, k)
    own = iter(windows)
    source = [-1 if d in inserted else next(own) for d in range(operand.rank)]
    sizes = [1 if k < 0 else updates.shape[k] for k in source]
    window = Content(tuple(sizes), updates.element, tuple(p.columns(source, sizes) for p in updates.pieces))
    shape, size = np.array(operand.shape, np.int64), np.array(sizes, np.int64)
    inside: Bools = np.asarray((start >= 0).all(1) & (start + size <= shape).all(1))
    beyond: Bools = np.asarray((start + size <= 0).any(1) | (start >= shape).any(1))
    if not (inside | beyond).all():
        raise Unknown("its window lies partly outside")
    there = overwritten(operand, window, np.where(inside[:, None], start, 0))
    kept = [made(p.term, p.a, p.b, p.lo, p.hi, p.on & beyond) for p in operand.pieces]
    changed = [made(p.term, p.a, p.b, p.lo, p.hi, p.on & inside) for p in there if p is not None]
    return [site.result([*kept, *changed])]


def _index(site: Site, indices: Content, vector: int, k: int) -> Ints:
    """Return component ``k`` of the one index vector, on each device."""
    if vector == indices.rank:
        known = known_numbers(site.terms, indices)
    else:
        start = np.zeros((site.devices, indices.rank), np.int64)
        start[:, vector] = k
        shape = tuple(1 if d == vector else n for d, n in enumerate(indices.shape))
        strips: list[Piece] = [s for p in indices.pieces if (s := cut(p, start, shape)) is not None]
        known = known_numbers(site.terms, Content(shape, indices.element, tuple(strips)))
    if known is None:
        raise Unknown("its position is not known")
    return known
