"""Build the permutes of an exchange, box by box, placed by ``placing``."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.tensors import retype, shape_of
from shardpass.ops.halo.moving import Along
from shardpass.ops.halo.placing import Box, Placement, placed
from shardpass.ops.halo.plans import Rounds
from shardpass.ops.halo.transfers import Exchange
from shardpass.ops.model import Site
from shardpass.ops.tiles.boxes import cut_at, grow, put_at
from shardpass.ops.tiles.positions import compare, numbers, spread


def exchange_rounds(site: Site, value: Any, rounds: Rounds) -> Any:
    """Run ``rounds`` on ``value``; elements that no position asked for are arbitrary."""
    return run_exchange(Along(site, rounds.line), value, rounds.exchange, rounds.width)


def run_exchange(along: Along, value: Any, plan: Exchange, width: int) -> Any:
    """Build the ``width`` elements that ``plan`` fetches along the dimension; any others are arbitrary."""
    placement, dim = placed(plan, width), along.line.dim
    if not placement.boxes:
        return along.zeros(value, width)
    longest = max(max(box.take) + box.round.size for box in placement.boxes)
    value = grow(value, dim, 0, max(0, longest - shape_of(value)[dim]))
    if placement.aligned:
        return _aligned(along, value, placement)
    first, *others = placement.boxes
    if len(set(first.put)) == 1:
        left = placement.length - first.put[0] - first.round.size
        window = grow(_box(along, value, first), dim, first.put[0], left)
    else:
        empty = along.zeros(value, placement.length)
        window = put_at(empty, _box(along, value, first), dim, along.number(first.put))
    for box in others:
        window = _add(along, window, _box(along, value, box), box)
    return along.cut(window, 0, width)


def _aligned(along: Along, value: Any, placement: Placement) -> Any:
    row, end = [], 0
    for box in placement.boxes:
        if box.put[0] > end:
            row.append(along.zeros(value, box.put[0] - end))
        row.append(_box(along, value, box))
        end = box.put[0] + box.round.size
    if placement.length > end:
        row.append(along.zeros(value, placement.length - end))
    return along.joined(row)


def _box(along: Along, value: Any, box: Box) -> Any:
    run = along.slice_at(value, box.take, box.round.size)
    source = box.round.source
    return along.permute(run, source) if any(q not in (p, -1) for p, q in enumerate(source)) else run


def _add(along: Along, target: Any, value: Any, box: Box) -> Any:
    start, dim = along.number(box.put), along.line.dim
    if box.masked:
        shape, kind = shape_of(value), numbers(box.round.size)
        extent = spread(along.number(box.round.extent, kind), shape)
        meant = compare("LT", hlo.iota(retype(kind, shape), dim), extent)
        value = hlo.select(meant, value, cut_at(target, dim, start, box.round.size))
    return value if shape_of(value) == shape_of(target) else put_at(target, value, dim, start)
