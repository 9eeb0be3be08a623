"""Turn partial sums at the borders of a program and of manual regions into arrays with a dimension of summands.

Problem. ``P("x", unreduced={"y"})`` is the type of an argument or a result of a JAX program, or of a ``shard_map``:
each device along y holds a summand of its tile. Whole arrays cannot express that, so the value becomes its
``summands``, an array with one dimension more, which y splits:

    %a: tensor<8x4xf32> {unreduced over y=2}  ->  %a: tensor<2x8x4xf32> {dimension 0 split over y}
                                                  %sum = reduce add of %a over dimension 0

Partitioning needs no special case: the reduce has partial results over y, which are joined where that is cheapest.

Cases:

1. An argument of main: its type becomes that of the summands, and its users use their sum.
2. A result of main: the summands of the returned value (``summands``).
3. The entry of a manual region: the summands go in, and the tile [1, ...] inside is reshaped.
4. The exit of one: the same, the other way; behind it is the sum.

Arguments and results of main keep their original sharding in ``shardpass.partial``, which ``shardpass.jax`` restores
when it builds a program of whole arrays from the partitioned one.

Partial sums over axes that are not manual in a region do not concern its border: constraints express them
(``constraints.open_unreduced_constraints``). Partial maxima and minima are left, and refused later (SP208).

O(borders + ops that ``summands`` reads).
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
from shardpass.ir.blocks import terminator
from shardpass.ir.tensors import i64_array, ints, operation, retype, shape_of
from shardpass.ir.walk import OpLists, named
from shardpass.program.manual_regions import marked_scope, set_scope
from shardpass.sharding import Mesh, Sharding, common_mesh, parse_sharding

CUSTOM_CALL = "stablehlo.custom_call"


def stack_partial_sums(
    main: Any, signature: Signature, lists: OpLists, devices: int | None, prefer: Mesh | None = None
) -> None:
    """Rewrite the arguments and results of ``main`` that are partial sums, in place. ``lists``: the ops of main.

    ``devices``: of the program, for ``{unreduced}``, which names none. ``prefer``: the mesh that the module names.
    """
    calls = named(lists.blocks, (CUSTOM_CALL,))
    borders = [op for op in calls if custom_call_target(op) in (TO_SHARD, TO_FULL)]
    around = [operation(op.operands[0].owner) for op in borders if not isinstance(op.operands[0].owner, ir.Block)]
    holders = [*signature.arguments, *signature.results, *(op.attributes for op in (*borders, *around))]
    if not any(SHARDING in attributes and "unreduced" in text(attributes[SHARDING]) for attributes in holders):
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


def _partial_sum(attributes: Any, value: Any, summands: Summands) -> Sharding | None:
    """Return the annotated sharding of ``value`` if it is a partial sum over axes of a mesh, else None."""
    if SHARDING not in attributes or "unreduced" not in text(attributes[SHARDING]):
        return None
    sharding = summands.shardings.annotation(attributes, value)
    return sharding if sharding is not None and sharding.unreduced and sharding.reduction == "sum" else None


def _stacked(attributes: Any, sharding: Sharding) -> dict[str, Any]:
    """Return the attributes for the summands of a value with ``attributes``."""
    stacked = {name: attributes[name] for name in (UNSPECIFIED, PRIORITIES) if name in attributes}
    if UNSPECIFIED in stacked:
        stacked[UNSPECIFIED] = i64_array([dim + 1 for dim in ints(stacked[UNSPECIFIED])])
    if PRIORITIES in stacked:
        stacked[PRIORITIES] = i64_array([0, *ints(stacked[PRIORITIES])])
    return {**stacked, SHARDING: ir.StringAttr.get(str(stacked_sharding(sharding)))}


def _count(sharding: Sharding) -> int:
    assert sharding.mesh is not None
    return count_of(sharding.mesh, sharding.unreduced)


# ---------------------------------------------------------------- main


def _arguments(main: Any, signature: Signature, summands: Summands) -> bool:
    block, changed = main.regions[0].blocks[0], False
    for argument, row in zip(block.arguments, signature.arguments, strict=True):
        sharding = _partial_sum(row, argument, summands)
        if sharding is None:
            continue
        with ir.InsertionPoint.at_block_begin(block), _where_used(argument):
            argument.set_type(retype(argument.type, (_count(sharding), *shape_of(argument))))
            total = summands.total(argument, sharding)
        argument.replace_all_uses_except(total, [operation(total.owner)])
        row.update({**_stacked(row, sharding), PARTIAL: ir.StringAttr.get(str(sharding))})
        changed = True
    if changed:
        _retype(main)
    return changed


def _where_used(argument: Any) -> Any:
    """Return the location of the argument's first user, which is that of the sum.

    A constraint that repeats the argument's annotation, as newer JAX writes it, is no user: it does not need the sum.
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
    end, changed = terminator(main.regions[0].blocks[0]), False
    for index, row in enumerate(signature.results):
        sharding = _partial_sum(row, end.operands[index], summands)
        if sharding is None:
            continue
        with ir.InsertionPoint(end), end.location:
            end.operands[index] = summands.stack(end.operands[index], sharding)
        row.update({**_stacked(row, sharding), PARTIAL: ir.StringAttr.get(str(sharding))})
        changed = True
    if changed:
        _retype(main)
    return changed


def _retype(main: Any) -> None:
    """Update the function type of main to its current arguments and results."""
    inputs = [argument.type for argument in main.regions[0].blocks[0].arguments]
    results = [value.type for value in terminator(main.regions[0].blocks[0]).operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


# ---------------------------------------------------------------- manual regions


def _manual_part(sharding: Sharding, scope: str | None) -> Sharding | None:
    """Return ``sharding`` with only its partial sums over manual axes of ``scope``; None without such sums."""
    if scope == MANUAL or scope is None:
        return sharding
    inside = parse_sharding(scope)
    if not isinstance(inside, Sharding):
        return None
    mesh = common_mesh([sharding, inside])
    on, around = (None, None) if mesh is None else (sharding.on(mesh), inside.on(mesh))
    if on is None or around is None or on.mesh is None:
        return None
    axes = [axis for axis in on.unreduced if axis in around.manual]
    return Sharding.tiled(on.mesh, on.dims, unreduced=axes, manual=on.manual) if axes else None


def _entry(op: Any, summands: Summands) -> bool:
    """Rewrite the entry of a manual region (case 3), after a constraint with a partial sum."""
    value = op.operands[0]
    if isinstance(value.owner, ir.Block) or custom_call_target(constraint := operation(value.owner)) != CONSTRAINT:
        return False
    sharding, scope = _partial_sum(constraint.attributes, value, summands), marked_scope(op)
    sharding = None if sharding is None else _manual_part(sharding, scope)
    if sharding is None:
        return False
    tile = op.results[0].type
    with ir.InsertionPoint(op), op.location:
        stacked = summands.stack(constraint.operands[0], sharding)
        around = marked_scope(constraint)
        stacked = make_custom_call(CONSTRAINT, stacked, stacked.type, _stacked(constraint.attributes, sharding))
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
    """Rewrite the exit of a manual region (case 4) whose sharding is a partial sum."""
    value, sharding = op.operands[0], _partial_sum(op.attributes, op.results[0], summands)
    if sharding is None:
        return False
    scope = None if isinstance(value.owner, ir.Block) else marked_scope(operation(value.owner))
    part, around = _manual_part(sharding, scope), marked_scope(op)
    if part is None:  # over free axes: the value is whole along them
        assert sharding.mesh is not None
        op.attributes[SHARDING] = ir.StringAttr.get(
            str(Sharding.tiled(sharding.mesh, sharding.dims, manual=sharding.manual))
        )
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
    """Return an entry's attributes for a tile with an additional leading dimension."""
    sharding = parse_sharding(text(op.attributes[SHARDING])) if SHARDING in op.attributes else None
    if not isinstance(sharding, Sharding) or sharding.mesh is None:
        return {SHARDING: op.attributes[SHARDING]} if sharding is not None else {}
    moved = Sharding.tiled(sharding.mesh, ((), *sharding.dims), manual=sharding.manual)
    return {SHARDING: ir.StringAttr.get(str(moved))}
