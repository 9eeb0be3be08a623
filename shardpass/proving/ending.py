"""Describe where a proof ends: the op of the per-device program, its counterpart in the whole program, and the known
facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from shardpass.ir.annotations import main_of
from shardpass.ir.locations import place_of
from shardpass.ir.walk import every_op, operation
from shardpass.proving.relations.compare import described
from shardpass.proving.relations.evaluate import Loss, Walk, is_token
from shardpass.proving.relations.pieces import Content
from shardpass.proving.verdict import Finding

_SOURCES = ("stablehlo.constant", "stablehlo.iota", "stablehlo.partition_id")
NEW = "it computes no value of the whole program"


def where_it_ends(
    walk: Walk, known: Walk, elements: Sequence[Loss], whole: Any, local: Any, index: int, want: Content, why: str
) -> Finding:
    """Return the op at which the relation is lost: the first on the way to result ``index``, of boxes or of elements.

    ``walk`` and ``known`` are those over ``local`` and ``whole``; ``elements``: the losses of the walk over elements.
    """
    value, returned = (
        [operand for operand in _last(module).operands if not is_token(operand.type)][index]
        for module in (local, whole)
    )
    before = _behind([value])
    order = {op: number for number, op in enumerate(every_op(operation(main_of(local))))}
    boxes, ended = (
        next((loss for loss in losses if loss.op in before or not before), None) for losses in (walk.losses, elements)
    )
    if not want.covered() and known.losses and ended is None:
        loss = known.losses[0]
        place = place_of(loss.op.location)
        return Finding(
            loss.op.name, place, f"in the whole program, {loss.why}", index, loss.op.name, place, _held(known, loss.op)
        )
    if boxes is not None:
        loss = ended if ended is not None and order.get(ended.op, -1) > order.get(boxes.op, -1) else boxes
        return _finding(walk, known, loss.op, loss.why, index, returned)
    for op, _ in walk.new:
        if op in before and op.name not in _SOURCES:
            return _finding(walk, known, op, f"{NEW}; the result: {why}", index, returned)
    owner = value.owner
    op = _last(local) if hasattr(owner, "arguments") else operation(owner)
    return _finding(walk, known, op, why, index, returned)


def _last(module: Any) -> Any:
    """Return the operands of main's terminator."""
    return operation(list(operation(main_of(module)).regions[0].blocks[0].operations)[-1])


def _finding(walk: Walk, known: Walk, op: Any, why: str, index: int, returned: Any) -> Finding:
    other = _counterpart(walk, known, op, returned)
    return Finding(op.name, place_of(op.location), why, index, other.name, place_of(other.location), _held(walk, op))


def _held(walk: Walk, op: Any) -> tuple[str, ...]:
    """Describe what is known of each operand of ``op``."""
    known_of = []
    for value in op.operands:
        content = walk.values.get(value)
        pieces = () if content is None else content.pieces
        some = f", and {len(pieces) - 1} pieces more" if len(pieces) > 1 else ""
        known_of.append(f"{described(walk.terms, pieces[0])}{some}" if pieces else "nothing that is known")
    return tuple(known_of)


def _counterpart(walk: Walk, known: Walk, op: Any, returned: Any) -> Any:
    """Return the op of the whole program that corresponds to ``op`` of the local program.

    One of its name whose operands are the same terms; else the last one that makes a term which ``op`` reads; else the
    one that makes the result ``returned``.
    """
    read = [_terms(walk, value) for value in op.operands]
    made = None
    seen: set[int] = set()
    for value, content in known.values.items():
        if hasattr(value.owner, "arguments"):
            seen |= {piece.term for piece in content.pieces}
            continue
        own = operation(value.owner)
        if own.name == op.name and _reads(known, own, read):
            return own
        new = {piece.term for piece in content.pieces} - seen
        seen |= new
        if any(mine & new for mine in read):
            made = own
    if made is not None:
        return made
    return returned.owner.owner if hasattr(returned.owner, "arguments") else operation(returned.owner)


def _reads(known: Walk, op: Any, read: Sequence[set[int]]) -> bool:
    """Return, operand by operand of ``op``, whether it has terms of ``read``."""
    if not read or len(op.operands) != len(read):
        return False
    return all(mine & _terms(known, value) for mine, value in zip(read, op.operands, strict=True))


def _terms(walk: Walk, value: Any) -> set[int]:
    content = walk.values.get(value)
    return set() if content is None else {piece.term for piece in content.pieces}


class Behind:
    """Determine whether results of ``modules`` may depend on an op. Results of ops in other functions may.

    Most proofs take no law and ask nothing, so the ops are listed at the first question.
    """

    def __init__(self, modules: Sequence[Any], indices: set[int]) -> None:
        self._modules, self._indices = modules, indices
        self._mains = [operation(main_of(module)) for module in modules]

    @cached_property
    def _ops(self) -> set[Any]:
        returned = [[value for value in _last(m).operands if not is_token(value.type)] for m in self._modules]
        return _behind([values[k] for values in returned for k in self._indices])

    def __call__(self, op: Any) -> bool:
        around = operation(op)
        while around is not None and around.name != "func.func":
            if around in self._ops:
                return True
            around = None if around.parent is None else operation(around.parent)
        return around not in self._mains


def _behind(values: Sequence[Any]) -> set[Any]:
    """Return the ops that any of ``values`` follows from."""
    result: set[Any] = set()
    todo = list(values)
    while todo:
        owner = todo.pop().owner
        if hasattr(owner, "arguments"):
            continue
        op = operation(owner)
        if op in result:
            continue
        result.add(op)
        todo += list(op.operands)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    todo += list(operation(inner).operands)
                    result.add(operation(inner))
    return result
