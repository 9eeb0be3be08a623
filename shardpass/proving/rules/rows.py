"""Ops that move rows to places which the program computes: gathers, scatters, slices and paddings of whole rows."""

from __future__ import annotations

from collections.abc import Sequence

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import ints
from shardpass.proving.relations.evaluate import Site, type_of
from shardpass.proving.relations.pieces import Content
from shardpass.proving.rules.blocks import Labels, blockwise
from shardpass.proving.rules.bodies import region_key
from shardpass.proving.rules.elementwise import clamped_index


def gather(site: Site) -> list[Content]:
    operand, indices = site.operands
    numbers = hlo.GatherDimensionNumbers(site.op.attributes["dimension_numbers"])
    sizes = ints(site.op.attributes["slice_sizes"])
    shape, _ = type_of(site.op.results[0])
    offset = list(numbers.offset_dims)
    dropped = [*numbers.collapsed_slice_dims, *numbers.operand_batching_dims]
    vector = numbers.index_vector_dim
    batch = [d for d in range(len(shape)) if d not in offset]
    of_indices: list[object] = []
    for d in range(indices.rank):
        of_indices.append(None if d == vector else ("r", batch[len([x for x in of_indices if x is not None])]))
    of_operand: list[object] = [None] * operand.rank
    windows = iter(offset)
    for d in range(operand.rank):
        if d in numbers.collapsed_slice_dims:
            continue
        if d in numbers.operand_batching_dims:
            at = list(numbers.start_indices_batching_dims)[list(numbers.operand_batching_dims).index(d)]
            of_operand[d] = of_indices[at]
            continue
        to = next(windows)
        if sizes[d] == operand.shape[d]:
            of_operand[d] = ("r", to)
    labelled = {label for label in (*of_operand, *of_indices) if label is not None}
    of_result: list[object] = [("r", d) if ("r", d) in labelled else None for d in range(len(shape))]
    cut = tuple((d, sizes[d]) for d in range(operand.rank) if of_operand[d] is None)
    key = (
        site.op.name,
        tuple(numbers.start_index_map),
        tuple(dropped),
        tuple(offset),
        vector,
        cut,
        tuple(numbers.operand_batching_dims),
    )
    return blockwise(site, [of_operand, of_indices], [of_result], key)


def scatter(site: Site) -> list[Content]:
    numbers = hlo.ScatterDimensionNumbers(site.op.attributes["scatter_dimension_numbers"])
    half = len(site.operands) // 2
    operand, indices, updates = site.operands[0], site.operands[half], site.operands[half + 1]
    windows = list(numbers.update_window_dims)
    of_operand: list[object] = [None] * operand.rank
    of_updates: list[object] = [None] * updates.rank
    of_indices: list[object] = [None] * indices.rank
    left = iter(windows)
    for d in range(operand.rank):
        if d in numbers.inserted_window_dims or d in numbers.input_batching_dims:
            continue
        at = next(left)
        if updates.shape[at] == operand.shape[d]:
            of_operand[d] = of_updates[at] = ("w", d)
    batch = [d for d in range(updates.rank) if d not in windows]
    along = [d for d in range(indices.rank) if d != numbers.index_vector_dim]
    for d, at in zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True):
        of_operand[d] = of_indices[at] = of_updates[batch[along.index(at)]] = ("w", d)
    key = (
        site.op.name,
        tuple(windows),
        tuple(numbers.inserted_window_dims),
        tuple(numbers.input_batching_dims),
        tuple(numbers.scattered_dims_to_operand_dims),
        tuple(numbers.scatter_indices_batching_dims),
        numbers.index_vector_dim,
        tuple(label is None for label in of_operand),
        region_key(site.op),
    )
    labels = [*([of_operand] * half), of_indices, *([of_updates] * half)]
    return blockwise(site, labels, [of_operand] * half, key)


def dynamic_slice_rows(site: Site) -> list[Content]:
    """Relate a slice at a computed position: a device needs all of the dimensions that are cut."""
    operand, *starts = site.operands
    shape, _ = type_of(site.op.results[0])
    labels = [d if n == operand.shape[d] else None for d, n in enumerate(shape)]
    moving = _clamped_starts(site, starts, labels, operand.shape, shape)
    none: list[Labels] = [[] for _ in moving]
    return blockwise(site, [labels, *none], [labels], (site.op.name,), [operand, *moving])


def _clamped_starts(
    site: Site, starts: Sequence[Content], labels: Labels, shape: Sequence[int], sizes: Sequence[int]
) -> list[Content]:
    """Return where the op really starts along the dimensions that it cuts."""
    return [clamped_index(site, start, shape[d] - sizes[d]) for d, start in enumerate(starts) if labels[d] is None]


def dynamic_update_slice_rows(site: Site) -> list[Content]:
    operand, update, *starts = site.operands
    labels = [d if n == operand.shape[d] else None for d, n in enumerate(update.shape)]
    moving = _clamped_starts(site, starts, labels, operand.shape, update.shape)
    none: list[Labels] = [[] for _ in moving]
    return blockwise(site, [labels, labels, *none], [labels], (site.op.name,), [operand, update, *moving])


def pad_rows(site: Site) -> list[Content]:
    rows = [ints(site.op.attributes[n]) for n in ("edge_padding_low", "edge_padding_high", "interior_padding")]
    still = [not any(row) for row in zip(*rows, strict=True)]
    labels = [d if s else None for d, s in enumerate(still)]
    how = tuple(row for row, s in zip(zip(*rows, strict=True), still, strict=True) if not s)
    return blockwise(site, [labels, []], [labels], (site.op.name, how))
