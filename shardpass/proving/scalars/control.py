"""Control flow, calls and annotations on scalar terms: loops of known length are walked trip by trip."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.ir.annotations import SHARDING, get_text
from shardpass.ir.collectives import OPS
from shardpass.ir.walk import operation
from shardpass.proving.relations.calls import meets
from shardpass.proving.relations.evaluate import Unknown, type_of
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.blocks import everything, leading_batch
from shardpass.proving.rules.calls import CustomCalls, called, custom_call_by
from shardpass.proving.rules.manual import Borders, is_manual, offsets_of
from shardpass.proving.scalars.choices import picked
from shardpass.proving.scalars.elementwise import each
from shardpass.proving.scalars.integers import applied, compared, selected
from shardpass.proving.scalars.moves import same
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value, box, corner
from shardpass.proving.scalars.whole_rows import by_labels

TRIPS = 256


def call(site: ScalarSite) -> list[Value]:
    return site.walk.block(called(site), site.operands)  # type: ignore[return-value]


def custom_call(site: ScalarSite) -> list[Value]:
    made: list[Value] = custom_call_by(
        site, CustomCalls(same, to_shard, to_full, by_labels(leading_batch), by_labels(everything))
    )
    return made


def to_shard(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    owner = site.op.operands[0].owner
    if not is_manual(get_text(site.op, SHARDING)) or hasattr(owner, "arguments"):
        raise Unknown("its operand has no sharding")
    shape = site.shape()
    offsets = offsets_of(get_text(operation(owner), SHARDING), operand.shape, shape, site.devices)
    return [Value(_cut(site, operand, offsets, shape), operand.element)]


def _cut(site: ScalarSite, operand: Value, offsets: Ints, shape: Sequence[int]) -> Ints:
    result = site.table.fresh(("beyond", site.walk.next_name(), site.walk.whole_terms), (site.devices, *shape))
    for device, offset in enumerate(offsets):
        part = operand.ids[box(device, offset, shape)]
        result[corner(device, part.shape)] = part
    return result


def to_full(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    shape = site.shape()
    offsets = offsets_of(get_text(site.op, SHARDING), shape, operand.shape, site.devices)
    return [site.result(_together(site, operand, offsets, shape))]


def _together(site: ScalarSite, operand: Value, offsets: Ints, shape: Sequence[int]) -> Ints:
    whole = np.full(shape, -1, np.int64)
    for device in reversed(range(site.devices)):
        at = tuple(slice(o, o + n) for o, n in zip(offsets[device], operand.shape, strict=True))
        whole[at] = operand.ids[corner(device, whole[at].shape)]
    if (whole < 0).any():
        raise Unknown("its tiles do not cover the whole")
    return np.broadcast_to(whole, (site.devices, *shape))


def computation(site: ScalarSite) -> list[Value]:
    """Relate a ``sdy.manual_computation``: the body on the tiles, and the whole values of its results."""
    (block,) = site.op.regions[0].blocks
    borders = Borders(site.op, site.devices)
    tiles = []
    for k, (operand, argument) in enumerate(zip(site.operands, block.arguments, strict=True)):
        shape, _ = type_of(argument)
        offsets = borders.offsets("in_shardings", k, operand.shape, shape)
        tiles.append(Value(_cut(site, operand, offsets, shape), operand.element))
    result = []
    outer, site.walk.in_region = site.walk.in_region, True
    returned = site.walk.block(block, tiles)
    site.walk.in_region = outer
    for k, tile in enumerate(returned):
        if tile is None:
            raise Unknown("part of what its body returns is not known")
        offsets = borders.offsets("out_shardings", k, site.shape(k), tile.shape)
        result.append(site.result(_together(site, tile, offsets, site.shape(k)), k))
    return result


def while_(site: ScalarSite) -> list[Value]:
    condition, body = (region.blocks[0] for region in site.op.regions)
    carried = list(site.operands)
    for _ in range(TRIPS):
        (again,) = site.walk.block(condition, carried)
        if again is None or not site.table.known(again.ids).all():
            raise Unknown("how often it runs is not known before the program does")
        values = site.table.values(again.ids)
        if (values != values[0]).any():
            raise Unknown("devices leave it at different trips")
        if not values[0]:
            return [Value(v.ids, v.element) for v in carried]
        made = site.walk.block(body, carried)
        if any(v is None for v in made):
            raise Unknown("part of what a trip returns is not known")
        carried = [v for v in made if v is not None]
    raise Unknown(f"it runs more than {TRIPS} times")


def branches(site: ScalarSite) -> list[Value]:
    (which,) = site.operands
    blocks = [region.blocks[0] for region in site.op.regions]
    ids, element = which.ids.ravel(), which.element
    if (ids != ids[0]).any() and meets(site.op, site.walk.functions, OPS):
        raise Unknown("devices that may choose differently meet a collective in a branch")
    if site.table.known(ids).all() and (ids == ids[0]).all():
        value = int(site.table.values(ids)[0])
        number = _number(site.op.name, value, len(blocks))
        return site.walk.block(blocks[number], [])  # type: ignore[return-value]
    rows = [site.walk.block(block, []) for block in blocks]
    result = []
    for index in range(len(site.op.results)):
        column = [row[index] for row in rows]
        if any(v is None for v in column):
            raise Unknown("what a branch returns is not known")
        wide = [
            np.broadcast_to(ids.reshape(-1, *([1] * (len(site.shape(index))))), v.ids.shape)
            for v in column[:1]
            if v is not None
        ]
        columns = [*wide, *(v.ids for v in column if v is not None)]

        def one(choice: int, *options: int) -> int:
            if site.op.name == "stablehlo.if":
                return selected(site.table, choice, *options)
            if site.table.is_known(choice):
                return options[_number(site.op.name, site.table.number(choice), len(options))]
            return _case(site, element, choice, options)

        result.append(site.result(each(site.table, columns, one), index))
    return result


def _case(site: ScalarSite, element: str, choice: int, options: tuple[int, ...]) -> int:
    table, last = site.table, len(options) - 1
    inside = compared(table, "GE", element, choice, table.integer(0))
    clamped = applied(table, "clamp", element, (table.integer(0), choice, table.integer(last)))
    if inside is None or clamped is None:
        raise Unknown("its choice is of a type without bounds")
    result = picked(table, clamped, element, lambda value: options[value])
    return selected(table, inside, result, options[last])


def _number(name: str, value: int, count: int) -> int:
    if name == "stablehlo.if":
        return 0 if value else 1
    return value if 0 <= value < count else count - 1


RULES: dict[str, ScalarRule] = {
    "func.call": call,
    "stablehlo.composite": call,
    "stablehlo.custom_call": custom_call,
    "sdy.sharding_constraint": same,
    "sdy.propagation_barrier": same,
    "sdy.reshard": same,
    "sdy.manual_computation": computation,
    "stablehlo.while": while_,
    "stablehlo.if": branches,
    "stablehlo.case": branches,
}
