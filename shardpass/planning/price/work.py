"""What an op computes on one device, and what of it goes through memory: flops and bytes, without a machine.

Bytes are those of tiles that the op's borders (``borders``) read or write. Of an operand that is larger than all
results, an op that does not reduce reads no more than results are made of it (a slice, a gather). Of an array that is
updated in place no more is written than the update.

A kernel ends where a result is written: there the elements of the largest tile count.

Flops, by the count of the op's row in ``cost.fusion``:

    NONE      a 64th of the elements of the results' tiles: broadcasts, slices, moves
    RESULTS   elements of the results' tiles
    TILES     elements of the largest tile: a reduction adds all of its operand
    NEST      two for each point of the loop nest, a product and a sum, shared out evenly
    PART      elements of the largest tile but that which is updated
    SORT, FFT what an element takes in rows (transforms) of the dimensions that no split cuts, times elements
    SOLVE,    what an element of the right-hand sides takes, times these
    REFLECT,
    BANDED
    others    of one matrix, the last two dimensions of operand 0, times the matrices (``cost.factorizations``)

Of the last three groups the whole is shared out evenly, as that of a nest. A dimension that cannot be split is one of
each operand, and no index of a nest.

Example: ``[256,64] x [64,1024]`` in f32, with rows over 4 devices: 2 * 64 * 64 * 1024 flops, and (64*64 + 64*1024 +
64*1024) * 4 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardpass.cost.factorizations import OF_A_MATRIX, OF_AN_ELEMENT, butterflies, comparisons
from shardpass.cost.fusion import Flops
from shardpass.cost.machine import Work
from shardpass.element_types import ElementType
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Kind, Rule
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.price.borders import Borders
from shardpass.program.program import Array
from shardpass.sharding import Mesh

MADE = 1 / 64  # flops of an element that is made and not computed: among equal splits, what makes fewest
ONE_DEVICE = prime_mesh(Mesh((("one", 1),)))


def work_of(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> Work:
    """Return the work of one device for an op with ``rule`` under ``split``. Types are those of its values, in
    order.
    """
    widest = max(operands or results, key=lambda element: element.bits)
    flops = _flops(rule, split, borders.flops)
    if borders.flops is Flops.FFT and not all(element.mlir.startswith("complex") for element in (*operands, *results)):
        flops /= 2
    return Work(flops, str(widest), _bytes(rule, split, operands, results, borders), _elements(rule, split, borders))


def least_work_of(
    rule: Rule, operands: Sequence[Array], results: Sequence[Array], borders: Borders, parts: int
) -> Work:
    """Return a lower bound of ``work_of``, in each of its numbers, for all splits into at most ``parts`` parts."""
    shapes, made = (tuple([array.shape for array in side]) for side in (operands, results))
    unsplit = [tuple([((),) * len(shape) for shape in side]) for side in (shapes, made)]
    split = Split(ONE_DEVICE, ((),) * len(rule.factors), unsplit[0], unsplit[1], shapes, made)
    work = work_of(rule, split, [array.element for array in operands], [array.element for array in results], borders)
    return Work(work.flops / parts, work.element, work.bytes / parts, work.elements / parts)


def _flops(rule: Rule, split: Split, count: Flops) -> float:
    match count:
        case Flops.NONE:
            return MADE * sum(map(prod, split.result_tiles))
        case Flops.RESULTS:
            return float(sum(map(prod, split.result_tiles)))
        case Flops.TILES:
            return float(split.largest_tile)
        case Flops.NEST:
            return 2 * prod([max(1, factor.size) for factor in rule.factors]) / split.count
        case Flops.PART:
            return float(split.largest_beside_first)
        case Flops.SORT | Flops.FFT:
            size = _uncut(rule, split)
            each = comparisons(size) if count is Flops.SORT else butterflies(size)
            return each * max(map(prod, (*split.operand_shapes, *split.result_shapes))) / split.count
        case Flops.SOLVE | Flops.REFLECT | Flops.BANDED:
            each = OF_AN_ELEMENT[count]((1, *split.operand_shapes[0])[-1])
            return each * max(map(prod, split.result_shapes), default=0) / split.count
        case _:
            *batch, rows, columns = (1, 1, *split.operand_shapes[0])
            return OF_A_MATRIX[count](rows, columns) * prod(batch) / split.count


def _uncut(rule: Rule, split: Split) -> int:
    """Return the number of elements of the dimensions that no split cuts: a sorted row, the points of a transform."""
    sides = zip((*rule.operands, *rule.results), (*split.operand_shapes, *split.result_shapes), strict=True)
    return max(
        prod(
            size
            for dim, size in zip(dims, shape, strict=True)
            if any(rule.factors[f].kind is Kind.REPLICATED for f in dim)
        )
        for dims, shape in sides
    )


def _elements(rule: Rule, split: Split, borders: Borders) -> int:
    """Count the elements of the largest array of the kernel that the op ends, 1 of a product's; 0 inside of one."""
    if not any(borders.writes) or borders.flops is Flops.NEST:
        return int(any(borders.writes))
    if borders.in_place:
        return split.largest_beside_first
    return split.largest_tile if _reduces(rule) else split.largest_result


def _reduces(rule: Rule) -> bool:
    return not rule.in_part and any(factor.kind is Kind.REDUCTION for factor in rule.factors)


def _bytes(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> float:
    reduces, total = _reduces(rule), 0
    for place, (element, times) in enumerate(zip(operands, borders.reads, strict=True)):
        if times:
            count = prod(split.operand_tile(place))
            total += times * element.bytes(count if reduces else min(count, split.largest_result))
    for element, tile, written in zip(results, split.result_tiles, borders.writes, strict=True):
        if written:
            count = prod(tile)
            total += element.bytes(min(count, split.largest_beside_first) if borders.in_place else count)
    return float(total)
