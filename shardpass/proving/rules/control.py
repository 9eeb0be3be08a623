"""Control flow, and manual regions in Shardy's form.

**Loops**, by induction. In the whole program each carried value becomes a term of its own, and the body is walked once:
it derives what a trip returns from what it carries. A loop of the program of one device is one of the whole program's
if its tiles are those of the whole loop's values (1) at the entry, (2) after a trip, given that they were before it,
and if (3) both have one condition. Then they are so at the end. It may carry fewer of them, and others that a trip
returns as it is given them. Where the tiles lie follows from the entry, or, where that is a constant, from what a trip
returns. A carried value that a trip returns unchanged is the value at the entry. It ends where the whole loop does, if
it stands in the same branches and loops.

**Branches**: where the choice is known, the branch; elsewhere a choice between what the branches return. A branch may
have collectives, in it or in what it calls, only if all devices choose alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from shardpass.ir.collectives import OPS
from shardpass.ir.walk import inputs_of, operation
from shardpass.proving.relations.calls import meets
from shardpass.proving.relations.combine import cells, combine
from shardpass.proving.relations.compare import differs, same_steps
from shardpass.proving.relations.evaluate import Loss, Rule, Site, Step, Unknown, type_of
from shardpass.proving.relations.lying import where_in
from shardpass.proving.relations.pieces import Bools, Content, Ints, full, made
from shardpass.proving.relations.sides import Side
from shardpass.proving.relations.terms import Term
from shardpass.proving.rules.integers import known_numbers
from shardpass.proving.rules.manual import alike, computation

MOST_CORRESPONDENCES = 4
LOOP, CONDITION = "the body of a loop", "the condition of a loop"

# ---------------------------------------------------------------- loops


@dataclass(eq=False)
class Loop:
    """A loop of the whole program: at the entry, the carried terms, and what a trip and the condition return."""

    number: int
    entry: list[Content]
    carried: list[Content]
    fixed: list[bool]
    condition: Content
    trip: list[Content]
    results: list[Content]
    steps: tuple[Step, ...]
    on: Bools
    used: bool = field(default=False)


def while_(site: Site) -> list[Content]:
    walk = site.walk
    if walk.known_loops is None:
        loop = _whole_loop(site, walk.next_loop())
        walk.loops.append(loop)
        return loop.results
    reasons = []
    for loop in sorted(walk.known_loops, key=lambda loop: loop.used):
        for stands_for in _correspondences(site, loop):
            state = walk.state()
            result = _as_loop(site, loop, stands_for)
            if not isinstance(result, str):
                loop.used = True
                if not same_steps(site.terms, loop.steps, walk.steps, walk.active) or not _reached(loop, walk.active):
                    walk.stuck.append(Loss(site.op, "the whole program has this loop in other branches or loops"))
                return result
            reasons.append(result)
            walk.back_to(state)
    raise Unknown(reasons[0] if reasons else "it is none of the whole program's loops")


def _reached(loop: Loop, active: Bools) -> bool:
    """Return whether the devices ``active`` reach the whole program's loop."""
    return bool((active <= loop.on).all()) if len(loop.on) == len(active) else bool(loop.on.all())


def _correspondences(site: Site, loop: Loop) -> Iterator[list[int | None]]:
    """Yield, for each carried value, the value of ``loop`` that it may be; None: it is as at the entry after each
    trip.

    First one by one; then of what changes in a trip, in the order of the whole program, some of it left out.
    """
    same = [None if keep else k for k, keep in enumerate(loop.fixed)]
    if len(loop.entry) == len(site.operands) and all(map(_alike, loop.entry, site.operands)):
        yield same
    options: list[Sequence[int | None]] = []
    moving = [k for k in same if k is not None]
    for have, keep in zip(site.operands, _returned_as_given(site), strict=True):
        options.append([None] if keep else [k for k in moving if _enters(site, loop.entry[k], have)])
    others = (chosen for chosen in _increasing(options, -1) if chosen != same)
    yield from islice(others, MOST_CORRESPONDENCES)


def _increasing(options: Sequence[Sequence[int | None]], above: int) -> Iterator[list[int | None]]:
    """Yield choices of one option of each of ``options`` whose numbers increase from ``above`` on."""
    if not options:
        yield []
        return
    for k in options[0]:
        if k is None or k > above:
            for rest in _increasing(options[1:], above if k is None else k):
                yield [k, *rest]


def _returned_as_given(site: Site) -> list[bool]:
    """Return which carried values the body returns unchanged."""
    block = site.op.regions[1].blocks[0]
    *_, end = [operation(op) for op in block.operations]
    return [one == other for one, other in zip(block.arguments, end.operands, strict=True)]


def _alike(one: Content, other: Content) -> bool:
    return one.element == other.element and one.rank == other.rank


def _enters(site: Site, whole: Content, have: Content) -> bool:
    """Return whether ``have`` may be a tile of ``whole``: where it is known how the tiles lie, it is one."""
    if not _alike(whole, have) or any(n > m for n, m in zip(have.shape, whole.shape, strict=True)):
        return False
    side = where_in(whole, have, site.devices)
    return side is None or differs(site.terms, whole, have, side) is None


def _term_content(term: int, like: Content, devices: int) -> Content:
    rank = like.rank
    piece = full(term, np.eye(rank, dtype=np.int64), np.zeros((devices, rank), np.int64), like.shape)
    return replace(like, pieces=(piece,))


def _whole_loop(site: Site, number: int) -> Loop:
    terms, walk = site.terms, site.walk
    if walk.devices > 1 and not _one_for_all(site):
        raise Unknown("a loop in a manual region carries another value on each device")
    condition, body = (region.blocks[0] for region in site.op.regions)
    fresh = [
        _term_content(terms.make(Term(("carried", number, i), (), c.rank)), c, site.devices)
        for i, c in enumerate(site.operands)
    ]
    inner, state = len(walk.loops), walk.state()
    trip = walk.inside(body, fresh, Step(LOOP, number))
    fixed = [_same_piece(one, other) for one, other in zip(fresh, trip, strict=True)]
    carried = [entry if keep else new for entry, keep, new in zip(site.operands, fixed, fresh, strict=True)]
    if any(fixed):
        del walk.loops[inner:]  # loops in the body are walked again
        walk.back_to(state)
        trip = walk.inside(body, carried, Step(LOOP, number))
    (again,) = walk.inside(condition, carried, Step(CONDITION, number))
    if not all(alike(c) for c in (again, *trip)):
        raise Unknown("a loop in a manual region carries another value on each device")
    results = [
        entry
        if keep
        else _term_content(terms.make(Term(("after loop", number, i), (), entry.rank)), entry, site.devices)
        for i, (entry, keep) in enumerate(zip(site.operands, fixed, strict=True))
    ]
    return Loop(number, list(site.operands), carried, fixed, again, trip, results, walk.steps, walk.active)


def _one_for_all(site: Site) -> bool:
    """Return whether all devices carry and use the same values."""
    by_device = meets(site.op, site.walk.functions, ("stablehlo.partition_id",))
    return not by_device and all(alike(site.walk.values[v]) for v in inputs_of(site.op))


def _same_piece(one: Content, other: Content) -> bool:
    if len(one.pieces) != 1 or len(other.pieces) != 1:
        return False
    p, q = one.pieces[0], other.pieces[0]
    return p.term == q.term and all((getattr(p, n) == getattr(q, n)).all() for n in ("a", "b", "lo", "hi", "on"))


def _as_loop(site: Site, loop: Loop, stands_for: Sequence[int | None]) -> list[Content] | str:
    """Return the results of the loop as ``loop`` of the whole program, or the reason why it is a different loop."""
    walk = site.walk
    condition, body = (region.blocks[0] for region in site.op.regions)
    pairs = list(zip(stands_for, site.operands, strict=True))
    sides = [None if k is None else where_in(loop.entry[k], have, site.devices) for k, have in pairs]
    if any(side is None and k is not None for side, k in zip(sides, stands_for, strict=True)):
        state = walk.state()
        trip = walk.inside(body, _carried(site, loop, stands_for, sides), Step(LOOP, loop.number))
        walk.back_to(state)
        returned = list(body.operations)[-1].operands
        for i, (k, have, value) in enumerate(zip(stands_for, trip, returned, strict=True)):
            if k is not None:
                known = sides[i] or where_in(loop.trip[k], have, site.devices)
                sides[i] = known or _usual(site, loop.trip[k], have, value)
    carried = _carried(site, loop, stands_for, sides)
    trip = walk.inside(body, carried, Step(LOOP, loop.number))
    (again,) = walk.inside(condition, carried, Step(CONDITION, loop.number))
    scalar = Side((), "i1", (), np.zeros((site.devices, 0), np.int64), np.ones(site.devices, bool))
    why = differs(site.terms, loop.condition, again, scalar)
    if why is not None:
        return f"the condition of the loop is not that of the whole program's: {why}"
    results = []
    for i, ((k, entry), side) in enumerate(zip(pairs, sides, strict=True)):
        if k is None:
            if not _same_piece_of_all(carried[i], trip[i]):
                return f"carried value {i} does not change in the whole program, and does here"
            results.append(entry)
            continue
        if side is None:
            return f"where the tiles of carried value {i} lie is not known"
        why = differs(site.terms, loop.entry[k], entry, side)
        if why is not None:
            return f"at the entry, carried value {i} is no tile of the whole: {why}"
        why = differs(site.terms, loop.trip[k], trip[i], side)
        if why is not None:
            return f"after a trip, carried value {i} is no tile of the whole: {why}"
        results.append(_tile(loop.results[k], site, side))
    return results


def _same_piece_of_all(one: Content, other: Content) -> bool:
    return len(one.pieces) == len(other.pieces) and all(
        p.term == q.term and all((getattr(p, n)[p.on] == getattr(q, n)[p.on]).all() for n in ("b", "lo", "hi"))
        and (p.a == q.a).all() and (p.on == q.on).all()
        for p, q in zip(one.pieces, other.pieces, strict=True)
    )  # fmt: skip


def _carried(site: Site, loop: Loop, stands_for: Sequence[int | None], sides: Sequence[Side | None]) -> list[Content]:
    return [
        entry if k is None else replace(entry, pieces=()) if side is None else _tile(loop.carried[k], site, side)
        for entry, k, side in zip(site.operands, stands_for, sides, strict=True)
    ]


def _tile(whole: Content, site: Site, side: Side) -> Content:
    (piece,) = whole.pieces
    spread = piece.of_devices(np.zeros(site.devices, np.int64)).moved(-side.offsets)
    limit = np.minimum(np.array(side.tile, np.int64), np.array(side.shape, np.int64) - side.offsets)
    tile = spread.boxed(np.zeros_like(limit), limit)
    return Content(side.tile, whole.element, () if tile is None else (tile,))


def _usual(site: Site, whole: Content, have: Content, value: Any) -> Side | None:
    """Guess tiles that lie as others that are cut alike; the guess is checked like any other.

    Others are what the op that makes ``value`` reads, arguments and results of main, and the body's values.
    """
    offsets = np.zeros((site.devices, whole.rank), np.int64)
    for dim in range(whole.rank):
        size, tile = whole.shape[dim], have.shape[dim]
        if size == tile:
            continue
        known = next((rows for rows in _offsets(site, value, size, tile)
                      if set(rows.tolist()) == set(range(0, size, tile))), None)  # fmt: skip
        if known is None:
            return None
        offsets[:, dim] = known
    return Side(whole.shape, whole.element, have.shape, offsets, np.ones(site.devices, bool))


def _offsets(site: Site, value: Any, size: int, tile: int) -> Iterator[Ints]:
    """Return where tiles may lie along a dimension, the best guess first."""
    if not hasattr(value.owner, "arguments"):
        yield from _indices(site, value.owner.operands)
    for side in site.walk.sides:
        yield from (side.offsets[:, d] for d, n in enumerate(side.shape) if (n, side.tile[d]) == (size, tile))
    yield from _indices(site, [result for op in site.op.regions[1].blocks[0].operations for result in op.results])


def _indices(site: Site, values: Iterable[Any]) -> list[Ints]:
    """Return the indices at which ``values`` begin on each device, the most frequent first."""
    contents = [site.walk.values[value] for value in values if value in site.walk.values]
    rows = [row.tobytes() for content in contents for p in content.pieces if p.on.all() for row in p.at_lo.T]
    return [np.frombuffer(row, np.int64) for row, _ in Counter(rows).most_common()]


# ---------------------------------------------------------------- branches


def branches(site: Site) -> list[Content]:
    which = site.operands[0]
    blocks = [region.blocks[0] for region in site.op.regions]
    known = known_numbers(site.terms, which)
    if known is not None and (known == known[0]).all():
        return site.walk.block(blocks[_taken(site.op.name, int(known[0]), len(blocks))], [])
    if not _alike_everywhere(which) and meets(site.op, site.walk.functions, OPS):
        raise Unknown("devices that may choose differently meet a collective in a branch")
    rows = [site.walk.inside(block, [], *_into(site, known, number)) for number, block in enumerate(blocks)]
    result = []
    for index, column in enumerate(zip(*rows, strict=True)):
        shape, element = type_of(site.op.results[index])
        if known is not None:
            chosen_by = [(p, _into(site, known, number)[1]) for number, c in enumerate(column) for p in c.pieces]
            result.append(site.result([made(p.term, p.a, p.b, p.lo, p.hi, p.on & on) for p, on in chosen_by], index))
            continue
        choice = [p.columns([-1] * len(shape), shape) for p in which.pieces]
        chosen_pieces = [
            combine(site.terms, (site.op.name, element), chosen, box)
            for chosen, box in cells([choice, *(c.pieces for c in column)])
        ]
        result.append(site.result(chosen_pieces, index))
    return result


def _taken(name: str, value: int, count: int) -> int:
    if name == "stablehlo.if":
        return 0 if value else 1
    return value if 0 <= value < count else count - 1


def _into(site: Site, known: Ints | None, number: int) -> tuple[Step | None, Bools | None]:
    """Return the step into a branch, or, where each device's choice is known, the devices that take it."""
    if known is None:
        return Step(site.op.name, number, site.operands[0]), None
    count = len(site.op.regions)
    return None, np.array([_taken(site.op.name, int(value), count) == number for value in known])


def _alike_everywhere(content: Content) -> bool:
    """Return whether all devices have one element."""
    if len(content.pieces) != 1:
        return False
    (piece,) = content.pieces
    return bool(piece.on.all() and (piece.at_lo == piece.at_lo[:1]).all())


RULES: dict[str, Rule] = {
    "sdy.manual_computation": computation,
    "stablehlo.while": while_,
    "stablehlo.if": branches,
    "stablehlo.case": branches,
}
