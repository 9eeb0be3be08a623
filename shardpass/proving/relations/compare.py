"""Compares tiles with whole values: whether each device has the part of the value at its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.proving.relations.combine import operands_of
from shardpass.proving.relations.evaluate import Step
from shardpass.proving.relations.pieces import Bools, Content, Ints, Piece, common, minus
from shardpass.proving.relations.reshaping import unmerged
from shardpass.proving.relations.sides import Side
from shardpass.proving.relations.terms import Term, Terms


def differs(terms: Terms, want: Content, have: Content, side: Side) -> str | None:
    """Return why the tiles ``have`` are not known to equal those of the whole value ``want``; None if they are."""
    devices = len(side.offsets)
    if not want.covered():
        return "the whole program's result is not known"
    if any((rows != rows[:1]).any() for p in want.pieces for rows in (p.b, p.lo, p.hi, p.on)):
        return "the whole program's result depends on the device"
    limit = np.minimum(np.array(side.tile, np.int64), np.array(side.shape, np.int64) - side.offsets)
    rows = np.zeros(devices, np.int64)
    targets = [p.of_devices(rows).moved(-side.offsets).boxed(np.zeros_like(limit), limit) for p in want.pieces]
    return _differs(terms, [target for target in targets if target is not None], have, side.counts)


def _differs(terms: Terms, targets: Sequence[Piece], have: Content, counts: Bools) -> str | None:
    """Return why ``have`` is not known to be ``targets`` on the devices that count; None where it is."""
    for target in targets:
        target = Piece(target.term, target.a, target.b, target.lo, target.hi, target.on & counts)
        if not target.on.any():
            continue
        left = [(target.lo, target.hi, target.on)]
        for other in have.pieces:
            box = common([target, other])
            if box is None:
                continue
            if not equal(terms, target, other, box):
                return told_apart(terms, other, target)
            left = [part for one in left for part in minus(*one, other)]
        if left:
            device = int(left[0][2].argmax())
            return f"what it holds on device {device} at {left[0][0][device].tolist()} is not known"
    return None


def differs_on(terms: Terms, want: Content, have: Content, on: Bools, *, each: bool = False) -> str | None:
    """Return why the devices ``on`` are not known to have the whole ``want``; None where they are.

    With ``each`` a device of the whole program has a value of its own, as in a manual region.
    """
    if want.shape != have.shape or want.element != have.element:
        return "it is of another type"
    if not want.covered():
        return "the whole program's value is not known"
    devices = len(on)
    if not each and any((rows != rows[:1]).any() for p in want.pieces for rows in (p.b, p.lo, p.hi, p.on)):
        return "the whole program's value depends on the device"
    rows = np.arange(devices) if each else np.zeros(devices, np.int64)
    return _differs(terms, [piece.of_devices(rows) for piece in want.pieces], have, on)


def same_steps(terms: Terms, whole: Sequence[Step], local: Sequence[Step], on: Bools) -> bool:
    """Return whether a place of the program of one device is in the branches and loops of one of the whole program."""
    return len(whole) == len(local) and all(
        (one.name, one.number) == (other.name, other.number)
        and (one.which is None or other.which is None or differs_on(terms, one.which, other.which, on) is None)
        for one, other in zip(whole, local, strict=True)
    )


def equal(terms: Terms, one: Piece, other: Piece, box: tuple[Ints, Ints, Any], depth: int = 0) -> bool:
    """Return whether two pieces are equal in ``box``."""
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


def told_apart(terms: Terms, have: Piece, want: Piece) -> str:
    """Describe the actual and the expected contents of a device, in words that differ.

    Two pieces of one op differ in an attribute, in an operand, in how operands lie, or in the elements that they take.
    """
    one, other = described(terms, have), described(terms, want)
    if one != other:
        return f"it holds {one}, not {other}"
    apart = _apart(terms, have.term, want.term)
    if not apart:
        apart = _elsewhere(have, want)
    return f"it holds {one}, {apart}"


def _elsewhere(have: Piece, want: Piece) -> str:
    """Describe how two pieces of one term differ: in an index on a device, in strides, or in extent."""
    on = have.on & want.on
    rows = (("from index", have.at_lo, want.at_lo), ("from place", have.lo, want.lo), ("up to place", have.hi, want.hi))
    places = [
        f"{what} {one[device].tolist()}, not {other[device].tolist()}" + (f", on device {device}" if device else "")
        for what, one, other in rows
        for device in np.flatnonzero((one != other).any(1) & on)[:1]
    ]
    if have.a.tolist() != want.a.tolist():
        places.insert(bool(places), f"in strides {have.a.tolist()}, not {want.a.tolist()}")
    return places[0] if places else "on other devices"


def _apart(terms: Terms, have: int, want: int) -> str:
    """Describe how two terms differ that print alike; "" if they are equal."""
    if have == want:
        return ""
    x, y = terms.all[have], terms.all[want]
    one, other = _named(terms, have), _named(terms, want)
    if one != other:
        return f"of {one}, not {other}"
    leaves = _leaves((x.key, x.reducer, len(x.parts)), (y.key, y.reducer, len(y.parts)))
    if leaves:
        return f"with {leaves[0]}, not {leaves[1]}"
    inner = (_apart(terms, *pair) for pair in zip(x.parts, y.parts, strict=True))
    return next(filter(None, inner), f"whose operands lie as {list(x.rows)}, not {list(y.rows)}")


def _leaves(one: Any, other: Any) -> tuple[Any, Any] | None:
    """Return the first two entries of nested tuples that differ; None where none do."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return next((pair for inner in zip(one, other, strict=True) if (pair := _leaves(*inner)) is not None), None)
    return None if one == other else (one, other)


def _named(terms: Terms, number: int) -> str:
    term, value = terms.all[number], terms.splat(number)
    if term.key[0] == "argument":
        return f"argument {term.key[1]}"
    if term.key[0] == "constant":
        return "a constant" if value is None else f"the constant {value}"
    return f"a value of {str(term.key[0]).split('.')[-1]}"


def described(terms: Terms, piece: Piece) -> str:
    """Describe a term by its op, without its operands."""
    term = terms.all[piece.term]
    if term.key[0] == "argument":
        return f"argument {term.key[1]} at {piece.at_lo[int(piece.on.argmax())].tolist()}"
    if term.key[0] == "apart":
        boxes = terms.sets[int(piece.at_lo[int(piece.on.argmax()), -1])]
        return f"a sum over {len(boxes)} ranges that lie apart"
    return _named(terms, piece.term) + (f" over the range {_range(term, piece)}" if term.ranges else "")


def _range(term: Term, piece: Piece) -> str:
    at = piece.at_lo[int(piece.on.argmax())]
    return ", ".join(f"[{at[lo]}, {at[hi]})" for lo, hi in term.ranges)
