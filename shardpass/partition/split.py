"""An op with a rule, made local.

In this order: the split is chosen (``assign``); operands are brought to it; padding that a reduction would see is
masked; the family's rewrite runs; results become tiles; partial results are completed, by ``reduce_scatter`` where the
wanted sharding splits over the same axes and by ``all_reduce`` for the rest; results are brought to what is wanted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import INTERNAL_SHAPE
from shardpass.ir.locations import place_of
from shardpass.ir.reductions import all_reduce, reduce_scatter
from shardpass.ir.tensors import shape_of
from shardpass.ops.model import LocalPlan, OpModel, Site, Split, explain
from shardpass.ops.registry import find
from shardpass.ops.splits.assign import Assignment, Side, assign, scatter_dims
from shardpass.ops.splits.factors import DimAxes, Kind, Rule
from shardpass.ops.tiles.masking import identity_text, mask
from shardpass.partition.rematerialize import recipe
from shardpass.partition.replicated_fallback import report_taken_whole
from shardpass.program.program import Node, element_bits
from shardpass.sharding import Sharding

if TYPE_CHECKING:
    from shardpass.partition.partitioner import Held, Partitioner


def partition_split(work: Partitioner, node: Node, rule: Rule, wanted: list[Sharding], after: Any) -> None:
    """Makes ``node.op`` local; its results are held as ``wanted``. ``after``: the op that follows."""
    op = node.op
    entry = find(op.name)
    assert entry is not None  # it gave the rule
    kinds = [r.type for r in op.results]
    held = [work.values[v] for v in op.operands]
    model = node.model
    assert model is not None
    rule = _maskable(rule, held)
    shapes = tuple(h.shape for h in held), tuple(tuple(k.shape) for k in kinds)
    outputs = [
        Side(tuple(k.shape), m, node.mesh.dims(s, k.rank), element_bits(k) // 8)
        for k, m, s in zip(kinds, rule.results, wanted, strict=True)
    ]
    chosen = _choose(work, node, model, rule, held, kinds, outputs, wanted)
    report_taken_whole(work, node, entry, rule, held, chosen)
    made = recipe(op, entry, model)
    if made is not None:
        work.recipes[op.results[0]] = made
    _bring_operands(work, node, rule, chosen)
    plan = model.plan(Split.of(rule, node.mesh, chosen.factors, *shapes))
    site = Site(op, plan.split, after, work.channel)
    tiles = model.emit(plan, site)
    for index, (result, kind) in enumerate(zip(op.results, kinds, strict=True)):
        tile, dims = tiles[index], chosen.results[index]
        if chosen.partial:
            tile, dims = _complete(work, site, rule, tile, dims, chosen, outputs[index])
        expected = node.mesh.tile(outputs[index].shape, dims)
        if shape_of(tile) != expected:
            raise INTERNAL_SHAPE.error(place_of(op.location), op=op.name, found=shape_of(tile), expected=expected)
        work.deliver(result, tile, kind, node.mesh.sharding(dims), wanted[index], node, after)
    if site.discarded:
        work.dead.append(op)


def _choose(
    work: Partitioner,
    node: Node,
    model: OpModel[LocalPlan],
    rule: Rule,
    held: list[Held],
    kinds: list[Any],
    outputs: list[Side],
    wanted: list[Sharding],
) -> Assignment:
    """The split, from the table of those chosen before: programs repeat their layers."""
    mesh = node.mesh
    key = (
        model,
        rule,
        mesh.manual,
        tuple((h.kind.element_type, work.at_hand(h)) for h in held),
        tuple((k.element_type, s) for k, s in zip(kinds, wanted, strict=True)),
    )
    known = work.choices.get(key)
    if known is not None:
        return known
    inputs = [Side(h.shape, m, h.dims, element_bits(h.kind) // 8) for h, m in zip(held, rule.operands, strict=True)]
    shapes = tuple(h.shape for h in held), tuple(tuple(k.shape) for k in kinds)
    work.choices[key] = chosen = assign(
        rule,
        inputs,
        outputs,
        mesh,
        lambda i, dims: work.price_of(held[i], mesh.sharding(dims)),
        lambda i, dims: 0 if outputs[i].dims == dims else work.price(kinds[i], mesh.sharding(dims), wanted[i], mesh),
        lambda factors: [c.bytes for c in model.plan(Split.of(rule, mesh, factors, *shapes)).collectives],
    )
    return chosen


def _maskable(rule: Rule, operands: list[Held]) -> Rule:
    """``rule``; without split reductions where padding could not be masked."""
    if not rule.combiner or rule.masks:
        return rule
    if all(identity_text(rule.combiner, h.kind.element_type) is not None for h in operands):
        return rule
    factors = tuple(replace(f, kind=Kind.REPLICATED) if f.kind is Kind.REDUCTION else f for f in rule.factors)
    return replace(rule, factors=factors)


def _bring_operands(work: Partitioner, node: Node, rule: Rule, chosen: Assignment) -> None:
    op, mesh = node.op, node.mesh
    for index, (value, dims) in enumerate(zip(list(op.operands), chosen.operands, strict=True)):
        tile = work.bring(value, mesh.sharding(dims), op, f"operand {index} of {op.name}")
        for dim, (factors, axes) in enumerate(zip(rule.operands[index], dims, strict=True)):
            size = work.values[value].shape[dim]
            joins = not rule.masks and any(rule.factors[f].kind is Kind.REDUCTION for f in factors)
            if axes and joins and size % mesh.count(axes):
                with ir.InsertionPoint(op), op.location:
                    tile = mask(tile, dim, size, axes, mesh, rule.combiner)
        if tile != value:
            op.operands[index] = tile


def _complete(
    work: Partitioner, site: Site, rule: Rule, tile: Any, dims: DimAxes, chosen: Assignment, side: Side
) -> tuple[Any, DimAxes]:
    """Completes partial results: scattered where the wanted sharding splits over the same axes."""
    mesh, combiner = site.split.mesh, rule.combiner
    left, out = list(chosen.partial), list(dims)
    cause = f"partial results of {site.op.name}"
    with site.after():
        for dim, axes in scatter_dims(side, dims, chosen.partial, mesh):
            step = reduce_scatter(tile, dim, mesh.groups(axes), combiner, next(work.channel))
            explain(step, mesh, axes, cause)
            tile, out[dim] = step.results[0], out[dim] + axes
            left = [a for a in left if a not in axes]
        if left:
            step = all_reduce(tile, mesh.groups(tuple(left)), combiner, next(work.channel))
            explain(step, mesh, tuple(left), cause)
            tile = step.results[0]
    return tile, tuple(out)
