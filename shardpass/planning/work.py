"""What an op computes on one device, and what of it goes through memory: flops and bytes, without a machine.

Bytes are those of tiles that the op's borders (``borders``) read or write. Of an operand that is larger than all
results, an op that does not reduce reads no more than results are made of it (a slice, a gather). Of an array that is
updated in place no more is written than the update.

Flops, by the count of the op's row in ``cost.fusion``:

    NONE      0
    RESULTS   elements of the results' tiles
    TILES     elements of the largest tile: a reduction adds all of its operand
    NEST      two for each point of the loop nest, a product and a sum, shared out evenly
    PART      elements of the largest tile but that which is updated

Example: ``[256,64] x [64,1024]`` in f32, with rows over 4 devices: 2 * 64 * 64 * 1024 flops, and (64*64 + 64*1024 +
64*1024) * 4 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from shardpass.cost.fusion import Flops
from shardpass.cost.machine import Work
from shardpass.element_types import ElementType
from shardpass.ops.model import Split
from shardpass.ops.splits.factors import Kind, Rule
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.planning.borders import Borders
from shardpass.program.program import Array
from shardpass.sharding import Mesh

ONE_DEVICE = prime_mesh(Mesh((("one", 1),)))


def work_of(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> Work:
    """The work of one device for an op with ``rule`` under ``split``. Types are those of the op's values in order."""
    widest = max(operands or results, key=lambda element: element.bits)
    return Work(_flops(rule, split, borders.flops), str(widest), _bytes(rule, split, operands, results, borders))


def least_work_of(
    rule: Rule, operands: Sequence[Array], results: Sequence[Array], borders: Borders, parts: int
) -> Work:
    """What ``work_of`` falls below under no split into at most ``parts`` parts, in flops and in bytes."""
    shapes, made = (tuple([array.shape for array in side]) for side in (operands, results))
    unsplit = [tuple([((),) * len(shape) for shape in side]) for side in (shapes, made)]
    split = Split(ONE_DEVICE, ((),) * len(rule.factors), unsplit[0], unsplit[1], shapes, made)
    work = work_of(rule, split, [array.element for array in operands], [array.element for array in results], borders)
    return Work(work.flops / parts, work.element, work.bytes / parts)


def _flops(rule: Rule, split: Split, count: Flops) -> float:
    match count:
        case Flops.NONE:
            return 0.0
        case Flops.RESULTS:
            return float(sum(map(prod, split.result_tiles)))
        case Flops.TILES:
            return float(split.largest_tile)
        case Flops.NEST:
            return 2.0 * prod([max(1, factor.size) for factor in rule.factors]) / split.count
        case Flops.PART:
            return float(split.largest_beside_first)


def _bytes(
    rule: Rule, split: Split, operands: Sequence[ElementType], results: Sequence[ElementType], borders: Borders
) -> float:
    reduces = not rule.in_part and any(factor.kind is Kind.REDUCTION for factor in rule.factors)
    total = 0
    for place, (element, times) in enumerate(zip(operands, borders.reads, strict=True)):
        if times:
            count = prod(split.operand_tile(place))
            total += times * element.bytes(count if reduces else min(count, split.largest_result))
    for element, tile, written in zip(results, split.result_tiles, borders.writes, strict=True):
        if written:
            count = prod(tile)
            total += element.bytes(min(count, split.largest_beside_first) if borders.in_place else count)
    return float(total)
