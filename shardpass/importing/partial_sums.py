"""Partial sums at the borders of a program and of manual regions become arrays with a dimension of summands.

Problem. ``P("x", unreduced={"y"})`` is the type of an argument or a result of a JAX program, or of a ``shard_map``:
each device along y holds a summand of its tile. Whole arrays know no such thing, so the value becomes its
``summands``, an array with one dimension more, which y splits:

    %a: tensor<8x4xf32> {unreduced over y=2}  ->  %a: tensor<2x8x4xf32> {dimension 0 split over y}
                                                  %sum = reduce add of %a over dimension 0

Partitioning then knows nothing new: the reduce has partial results over y, which are joined where that is cheapest.

Cases:

1. An argument of main: its type becomes that of the summands, and what used it uses their sum.
2. A result of main: the summands of what is returned (``summands``).
3. The entry of a manual region: the summands go in, and the tile [1, ...] inside is reshaped.
4. The exit of one: the same, the other way; behind it is the sum.

Arguments and results of main say in ``shardpass.partial`` which sharding they had, so that whoever makes a program of
whole arrays of the partitioned one (``shardpass.jax``) can give it back.

Partial sums over axes that are not manual in a region are no matter of its border: constraints say them
(``constraints.open_unreduced_constraints``). Partial maxima and minima are left, and refused later (SP208).

O(borders + what ``summands`` looks at).
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.importing.known_shardings import KnownShardings
from shardpass.importing.owned_parts import count_of
from shardpass.importing.summands import Summands, stacked_sharding
from shardpass.ir.annotations import (
    CONSTRAINT,
    MANUAL,
    PARTIAL,
    PRIORITIES,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    UNSPECIFIED,
    Signature,
    custom_call_target,
    make_custom_call,
    text,
)
from shardpass.ir.tensors import i64_array, ints, operation, retype, shape_of
from shardpass.ir.walk import OpLists, named
from shardpass.program.manual_regions import marked_scope, set_scope
from shardpass.sharding import Mesh, Sharding, common_mesh, parse_sharding

CUSTOM_CALL = "stablehlo.custom_call"


def stack_partial_sums(
    main: Any, signature: Signature, lists: OpLists, devices: int | None, prefer: Mesh | None = None
) -> None:
    """Rewrites the borders of ``main``, whose ops ``lists`` holds, in place.

    ``devices``: of the program, for ``{unreduced}``, which names none. ``prefer``: the mesh that the module names.
    """
    calls = named(lists.blocks, (CUSTOM_CALL,))
    borders = [op for op in calls if custom_call_target(op) in (TO_SHARD, TO_FULL)]
    around = [operation(op.operands[0].owner) for op in borders if not isinstance(op.operands[0].owner, ir.Block)]
    holders = [*signature.arguments, *signature.results, *(op.attributes for op in (*borders, *around))]
    if not any(SHARDING in held and "unreduced" in text(held[SHARDING]) for held in holders):
        return
    annotated = [op for inside in lists.blocks for op in inside.ops if SHARDING in op.attributes]
    summands = Summands(KnownShardings(main, signature.arguments, annotated, devices, prefer))
    changed = _arguments(main, signature, summands)
    for op in borders:
        rewrite = _entry if custom_call_target(op) == TO_SHARD else _exit
        changed |= rewrite(op, summands)
    changed |= _results(main, signature, summands)
    if changed:
        lists.changed()


def _said(attributes: Any, value: Any, summands: Summands) -> Sharding | None:
    """The sharding of ``value``, where it is a partial sum over axes of a mesh."""
    if SHARDING not in attributes or "unreduced" not in text(attributes[SHARDING]):
        return None
    said = summands.shardings.said(attributes, value)
    return said if said is not None and said.unreduced and said.reduction == "sum" else None


def _stacked(attributes: Any, said: Sharding) -> dict[str, Any]:
    """What stands on the summands of a value that has ``attributes``."""
    found = {name: attributes[name] for name in (UNSPECIFIED, PRIORITIES) if name in attributes}
    if UNSPECIFIED in found:
        found[UNSPECIFIED] = i64_array([dim + 1 for dim in ints(found[UNSPECIFIED])])
    if PRIORITIES in found:
        found[PRIORITIES] = i64_array([0, *ints(found[PRIORITIES])])
    return {**found, SHARDING: ir.StringAttr.get(str(stacked_sharding(said)))}


def _count(said: Sharding) -> int:
    assert said.mesh is not None
    return count_of(said.mesh, said.unreduced)


# ---------------------------------------------------------------- main


def _arguments(main: Any, signature: Signature, summands: Summands) -> bool:
    block, changed = main.regions[0].blocks[0], False
    for argument, row in zip(block.arguments, signature.arguments, strict=True):
        said = _said(row, argument, summands)
        if said is None:
            continue
        with ir.InsertionPoint.at_block_begin(block), _where_used(argument):
            argument.set_type(retype(argument.type, (_count(said), *shape_of(argument))))
            total = summands.total(argument, said)
        argument.replace_all_uses_except(total, [operation(total.owner)])
        row.update({**_stacked(row, said), PARTIAL: ir.StringAttr.get(str(said))})
        changed = True
    if changed:
        _retype(main)
    return changed


def _where_used(argument: Any) -> Any:
    """The place of the first use: it is there that the program asks for the sum.

    Newer JAX first says of the argument once more that it is a partial sum, which asks for nothing.
    """
    value, where = argument, argument.location
    while uses := [operation(use.owner) for use in value.uses]:
        op = uses[-1]  # MLIR lists the last that was made first
        where = op.location
        repeats = custom_call_target(op) == CONSTRAINT and "unreduced" in text(op.attributes[SHARDING])
        if not repeats:
            break
        value = op.results[0]
    return where


def _results(main: Any, signature: Signature, summands: Summands) -> bool:
    end, changed = _end(main), False
    for index, row in enumerate(signature.results):
        said = _said(row, end.operands[index], summands)
        if said is None:
            continue
        with ir.InsertionPoint(end), end.location:
            end.operands[index] = summands.stack(end.operands[index], said)
        row.update({**_stacked(row, said), PARTIAL: ir.StringAttr.get(str(said))})
        changed = True
    if changed:
        _retype(main)
    return changed


def _end(main: Any) -> Any:
    block = main.regions[0].blocks[0]
    return operation(block.operations[len(block.operations) - 1])


def _retype(main: Any) -> None:
    """Writes the types that main has now."""
    inputs = [argument.type for argument in main.regions[0].blocks[0].arguments]
    results = [value.type for value in _end(main).operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


# ---------------------------------------------------------------- manual regions


def _manual_part(said: Sharding, scope: str | None) -> Sharding | None:
    """``said`` with the partial sums over axes that are manual in ``scope``; None where there are none."""
    if scope == MANUAL or scope is None:
        return said
    inside = parse_sharding(scope)
    if not isinstance(inside, Sharding):
        return None
    mesh = common_mesh([said, inside])
    on, around = (None, None) if mesh is None else (said.on(mesh), inside.on(mesh))
    if on is None or around is None or on.mesh is None:
        return None
    axes = [axis for axis in on.unreduced if axis in around.manual]
    return Sharding.tiled(on.mesh, on.dims, unreduced=axes, manual=on.manual) if axes else None


def _entry(op: Any, summands: Summands) -> bool:
    """Case 3. The constraint before the entry says the partial sum."""
    value = op.operands[0]
    if isinstance(value.owner, ir.Block) or custom_call_target(constraint := operation(value.owner)) != CONSTRAINT:
        return False
    said, scope = _said(constraint.attributes, value, summands), marked_scope(op)
    said = None if said is None else _manual_part(said, scope)
    if said is None:
        return False
    tile = op.results[0].type
    with ir.InsertionPoint(op), op.location:
        stacked = summands.stack(constraint.operands[0], said)
        around = marked_scope(constraint)
        stacked = make_custom_call(CONSTRAINT, stacked, stacked.type, _stacked(constraint.attributes, said))
        inside = make_custom_call(TO_SHARD, stacked, retype(tile, (1, *tile.shape)), _shifted(op))
        result = hlo.reshape(tile, inside)
    if around is not None:
        set_scope(operation(stacked.owner), around)
    if scope is not None:
        set_scope(operation(inside.owner), scope)
        set_scope(operation(result.owner), scope)
    op.results[0].replace_all_uses_with(result)
    op.erase()
    return True


def _exit(op: Any, summands: Summands) -> bool:
    """Case 4. The exit itself says the partial sum."""
    value, said = op.operands[0], _said(op.attributes, op.results[0], summands)
    if said is None:
        return False
    scope = None if isinstance(value.owner, ir.Block) else marked_scope(operation(value.owner))
    part, around = _manual_part(said, scope), marked_scope(op)
    if part is None:  # over free axes: the value is whole along them
        assert said.mesh is not None
        op.attributes[SHARDING] = ir.StringAttr.get(str(Sharding.tiled(said.mesh, said.dims, manual=said.manual)))
        return True
    whole = op.results[0].type
    with ir.InsertionPoint(op), op.location:
        one = hlo.reshape(retype(value.type, (1, *shape_of(value))), value)
        kind = retype(whole, (_count(part), *whole.shape))
        stacked = make_custom_call(TO_FULL, one, kind, _stacked(op.attributes, part))
        total = summands.total(stacked, part)
    if scope is not None:
        set_scope(operation(one.owner), scope)
    if around is not None and around != MANUAL:
        for inner in (stacked, total):
            set_scope(operation(inner.owner), around)
    op.results[0].replace_all_uses_with(total)
    op.erase()
    return True


def _shifted(op: Any) -> dict[str, Any]:
    """What stands on an entry, for a tile with a dimension more before the others."""
    said = parse_sharding(text(op.attributes[SHARDING])) if SHARDING in op.attributes else None
    if not isinstance(said, Sharding) or said.mesh is None:
        return {SHARDING: op.attributes[SHARDING]} if said is not None else {}
    moved = Sharding.tiled(said.mesh, ((), *said.dims), manual=said.manual)
    return {SHARDING: ir.StringAttr.get(str(moved))}
