"""The proof: both programs are walked by one table of terms, and the results' pieces are compared.

Sound: each piece is a true statement of a device's tile for all inputs (each rule keeps that), and a result is proved
only where its pieces name, for every element that is no padding, the term and the index of the whole program's element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shardpass.ir.annotations import TO_SHARD, custom_call_target, main_of
from shardpass.ir.locations import place_of
from shardpass.ir.walk import every_op, operation
from shardpass.proving.refuting import counterexample
from shardpass.proving.relations.compare import differs
from shardpass.proving.relations.evaluate import Loss, Walk
from shardpass.proving.relations.pieces import Content, full
from shardpass.proving.relations.sides import Side
from shardpass.proving.relations.terms import Term, Terms
from shardpass.proving.scalars.proof import ElementProof
from shardpass.proving.signature import sides
from shardpass.proving.table import RULES
from shardpass.proving.verdict import Finding, Verdict

_SOURCES = ("stablehlo.constant", "stablehlo.iota", "stablehlo.partition_id")
NEW = "it computes no value of the whole program"


def prove_modules(whole: Any, local: Any, *, refute: bool = True) -> Verdict:
    """``whole`` and ``local`` are modules; raises ShardpassError where they are no such pair.

    With ``refute``, programs that are small and not proved are run, to see whether they differ.
    """
    arguments, results, devices = sides(whole, local)
    terms = Terms()
    count = devices if _has_regions(whole) else 1
    known = Walk(terms, count, _functions(whole), RULES)
    inputs = [terms.make(Term(("argument", index), (), len(side.shape))) for index, side in enumerate(arguments)]
    wanted = known.block(
        _body(whole), [_whole_argument(t, side, count) for t, side in zip(inputs, arguments, strict=True)]
    )
    walk = Walk(terms, devices, _functions(local), RULES)
    walk.known_loops, walk.sides = known.loops, [*arguments, *results]
    found = walk.block(_body(local), [_argument(t, side, devices) for t, side in zip(inputs, arguments, strict=True)])
    elements: ElementProof | None = None
    for index, (want, have, side) in enumerate(zip(wanted, found, results, strict=True)):
        why = differs(terms, want, have, side)
        if why is not None:
            if elements is None:
                elements = ElementProof(
                    (_body(whole), _functions(whole), count),
                    (_body(local), _functions(local)),
                    arguments,
                    results,
                    devices,
                )
            if elements.proved(index):
                continue
            finding = _finding(walk, known, elements.losses, local, index, want, why)
            shown = counterexample(whole, local) if refute else None
            if shown is None:
                return Verdict(False, unknown=finding)
            number, how = shown
            return Verdict(False, refuted=replace(finding, why=f"{finding.why}; result {number} differs: {how}"))
    return Verdict(True)


def _functions(module: Any) -> dict[str, Any]:
    return {f.attributes["sym_name"].value: operation(f) for f in module.body.operations if "sym_name" in f.attributes}


def _body(module: Any) -> Any:
    return operation(main_of(module)).regions[0].blocks[0]


def _has_regions(module: Any) -> bool:
    return any(
        custom_call_target(op) == TO_SHARD or op.name == "sdy.manual_computation" for op in every_op(module.operation)
    )


def _whole_argument(term: int, side: Side, devices: int) -> Content:
    rank = len(side.shape)
    piece = full(term, np.eye(rank, dtype=np.int64), np.zeros((devices, rank), np.int64), side.shape)
    return Content(side.shape, side.element, (piece,))


def _argument(term: int, side: Side, devices: int) -> Content:
    rank = len(side.shape)
    piece = full(term, np.eye(rank, dtype=np.int64), side.offsets, side.tile)
    valid = piece.boxed(np.zeros(rank, np.int64), np.array(side.shape, np.int64) - side.offsets)
    return Content(side.tile, side.element, () if valid is None else (valid,))


def _finding(
    walk: Walk, known: Walk, elements: Sequence[Loss], local: Any, index: int, want: Content, why: str
) -> Finding:
    """The op at which the relation is lost: the first that result ``index`` follows from, of boxes or of elements."""
    end = list(_body(local).operations)[-1]
    value = operation(end).operands[index]
    before = _behind(value)
    order = {op: number for number, op in enumerate(every_op(operation(main_of(local))))}
    boxes, ended = (
        next((loss for loss in losses if loss.op in before or not before), None) for losses in (walk.losses, elements)
    )
    if not want.covered() and known.losses and ended is None:
        loss = known.losses[0]
        return Finding(loss.op.name, place_of(loss.op.location), f"in the whole program, {loss.why}", index)
    if boxes is not None:
        loss = ended if ended is not None and order.get(ended.op, -1) > order.get(boxes.op, -1) else boxes
        return Finding(loss.op.name, place_of(loss.op.location), loss.why, index)
    for op, _ in walk.new:
        if op in before and op.name not in _SOURCES:
            return Finding(op.name, place_of(op.location), f"{NEW}; the result: {why}", index)
    owner = value.owner
    op = operation(owner) if not hasattr(owner, "arguments") else operation(end)
    return Finding(op.name, place_of(op.location), why, index)


def _behind(value: Any) -> set[Any]:
    """The ops that ``value`` follows from."""
    found: set[Any] = set()
    todo: list[Any] = [value]
    while todo:
        owner = todo.pop().owner
        if hasattr(owner, "arguments"):
            continue
        op = operation(owner)
        if op in found:
            continue
        found.add(op)
        todo += list(op.operands)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    todo += list(operation(inner).operands)
                    found.add(operation(inner))
    return found
