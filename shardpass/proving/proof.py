"""The proof: both programs are walked by one table of terms, and the results' pieces are compared.

Sound: each piece is a true statement of a device's tile for all inputs (each rule keeps that), and a result is proved
only where its pieces name, for every element that is no padding, the term and the index of the whole program's element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from shardpass.ir.annotations import main_of
from shardpass.ir.locations import place_of
from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Walk
from shardpass.proving.relations.pieces import Content, Ints, Piece, common, full, minus
from shardpass.proving.relations.reshaping import unmerged
from shardpass.proving.relations.terms import Term, Terms
from shardpass.proving.rules.collectives import operands_of
from shardpass.proving.signature import Side, sides
from shardpass.proving.table import RULES
from shardpass.proving.verdict import Finding, Verdict

NEW = "it computes no value of the whole program"


def prove_modules(whole: Any, local: Any) -> Verdict:
    """``whole`` and ``local`` are modules; raises ShardpassError where they are no such pair."""
    arguments, results, devices = sides(whole, local)
    terms = Terms()
    known = Walk(terms, 1, _functions(whole), RULES)
    inputs = [terms.make(Term(("argument", index), (), len(side.shape))) for index, side in enumerate(arguments)]
    wanted = known.block(_body(whole), [_argument(t, side, 1) for t, side in zip(inputs, arguments, strict=True)])
    made_of_whole = len(terms.all)
    walk = Walk(terms, devices, _functions(local), RULES)
    walk.known_loops = known.loops
    found = walk.block(_body(local), [_argument(t, side, devices) for t, side in zip(inputs, arguments, strict=True)])
    for index, (want, have, side) in enumerate(zip(wanted, found, results, strict=True)):
        why = differs(terms, want, have, side)
        if why is not None:
            return Verdict(False, unknown=_finding(walk, known, local, index, want, why, made_of_whole))
    return Verdict(True)


def _functions(module: Any) -> dict[str, Any]:
    return {f.attributes["sym_name"].value: operation(f) for f in module.body.operations if "sym_name" in f.attributes}


def _body(module: Any) -> Any:
    return operation(main_of(module)).regions[0].blocks[0]


def _argument(term: int, side: Side, devices: int) -> Content:
    rank = len(side.shape)
    if devices == 1:
        piece = full(term, np.eye(rank, dtype=np.int64), np.zeros((1, rank), np.int64), side.shape)
        return Content(side.shape, side.element, (piece,))
    piece = full(term, np.eye(rank, dtype=np.int64), side.offsets, side.tile)
    valid = piece.boxed(np.zeros(rank, np.int64), np.array(side.shape, np.int64) - side.offsets)
    return Content(side.tile, side.element, () if valid is None else (valid,))


def differs(terms: Terms, want: Content, have: Content, side: Side) -> str | None:
    """Why the tiles ``have`` are not known to be those of the whole ``want``; None where they are."""
    devices = len(side.offsets)
    if not want.covered():
        return "the whole program's result is not known"
    for piece in want.pieces:
        spread = piece.taken(np.zeros(devices, np.int64)).moved(-side.offsets)
        limit = np.minimum(np.array(side.tile, np.int64), np.array(side.shape, np.int64) - side.offsets)
        target = spread.boxed(np.zeros_like(limit), limit)
        if target is None:
            continue
        target = Piece(target.term, target.a, target.b, target.lo, target.hi, target.on & side.counts)
        if not target.on.any():
            continue
        left = [(target.lo, target.hi, target.on)]
        for other in have.pieces:
            box = common([target, other])
            if box is None:
                continue
            if not equal(terms, target, other, box):
                return f"it holds {described(terms, other)}, not {described(terms, target)}"
            left = [part for one in left for part in minus(*one, other)]
        if left:
            device = int(left[0][2].argmax())
            return f"what it holds on device {device} at {left[0][0][device].tolist()} is not known"
    return None


def equal(terms: Terms, one: Piece, other: Piece, box: tuple[Ints, Ints, Any], depth: int = 0) -> bool:
    """Whether two pieces hold the same in ``box``."""
    lo, hi, on = box
    if one.term == other.term:
        wide = ((hi - lo > 1) & on[:, None]).any(0)
        same = (one.a[:, wide] == other.a[:, wide]).all()
        if same and ((lo @ one.a.T + one.b)[on] == (lo @ other.a.T + other.b)[on]).all():
            return True
    p = unmerged(terms, Piece(one.term, one.a, one.b, lo, hi, on))
    q = unmerged(terms, Piece(other.term, other.a, other.b, lo, hi, on))
    if (p.term, q.term) != (one.term, other.term):
        return equal(terms, p, q, box, depth)
    x, y = terms.all[p.term], terms.all[q.term]
    if x.rows and x.key == y.key and len(x.parts) == len(y.parts) and depth < 8:
        pairs = zip(operands_of(terms, p, box), operands_of(terms, q, box), strict=True)
        return all(equal(terms, a, b, box, depth + 1) for a, b in pairs)
    return False


def described(terms: Terms, piece: Piece) -> str:
    """A term in words: its op and how far down it goes is not said."""
    term = terms.all[piece.term]
    if term.key[0] == "argument":
        return f"argument {term.key[1]} at {piece.at_lo[int(piece.on.argmax())].tolist()}"
    if term.key[0] == "constant":
        return "a constant"
    name = str(term.key[0]).split(".")[-1]
    return f"a value of {name}" + (f" over the range {_range(term, piece)}" if term.ranges else "")


def _range(term: Term, piece: Piece) -> str:
    at = piece.at_lo[int(piece.on.argmax())]
    return ", ".join(f"[{at[lo]}, {at[hi]})" for lo, hi in term.ranges)


def _finding(walk: Walk, known: Walk, local: Any, index: int, want: Content, why: str, made_of_whole: int) -> Finding:
    """The op at which the relation is lost: the first that result ``index`` follows from."""
    if not want.covered() and known.losses:
        loss = known.losses[0]
        return Finding(loss.op.name, place_of(loss.op.location), f"in the whole program, {loss.why}", index)
    end = list(_body(local).operations)[-1]
    value = operation(end).operands[index]
    before = _behind(value)
    for loss in walk.losses:
        if loss.op in before or not before:
            return Finding(loss.op.name, place_of(loss.op.location), loss.why, index)
    for op, _ in walk.new:
        if op in before:
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
