"""Gathers and scatters of single rows, as sums over the rows: row v counts where the index is v.

    gather:  out[u] = sum over v of (x[v, u] if index[u] = v else 0)        the index clamped to the rows
    scatter: out[v] = x[v] + sum over u of (update[u] if index[u] = v else 0)

So a gather of a tile of rows is a part of that sum, over the rows of the tile, and a scatter of a tile of updates one
over these updates: partial results that add up as those of a product do. At most one row counts, so the sum is exact. A
tile's own index is the index less the tile's offset, and ``v = index - offset`` is ``v + offset = index``, which is one
form for all devices. A gather whose index may lie outside of the tile is masked: where it does, the row counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.element_types import element_type
from shardpass.ir.tensors import ints
from shardpass.ir.walk import operation
from shardpass.proving.relations.combine import cells, combine, operands_of
from shardpass.proving.relations.elements import neutral
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.laws import NEUTRAL, ZERO
from shardpass.proving.relations.pieces import Content, Ints, Piece, common, minus
from shardpass.proving.relations.reducers import Reducer, bare, has_zero
from shardpass.proving.relations.terms import Terms
from shardpass.proving.rules import blocks, elementwise, rows
from shardpass.proving.rules.contraction import reduced, reducer_of, without_dims, zero_piece
from shardpass.proving.rules.integers import Box, affine, limits
from shardpass.proving.rules.movement import cut
from shardpass.proving.rules.placing import placed


def gather(site: Site) -> list[Content]:
    return [by_rows(site, site.op, site.operands[0], site.operands[1], clamp=True)]


def by_rows(site: Site, op: Any, operand: Content, indices: Content, clamp: bool) -> Content:
    """Relate the gather ``op``; without ``clamp``, an index outside of the operand selects no row."""
    numbers = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    sizes = ints(op.attributes["slice_sizes"])
    shape, element = type_of(op.results[0])
    rows = list(numbers.start_index_map)
    if sorted(rows) != sorted(numbers.collapsed_slice_dims) or 0 in shape or 0 in operand.shape:
        raise Unknown("it takes more than single rows")
    offset = list(numbers.offset_dims)
    batch = [d for d in range(len(shape)) if d not in offset]
    vector = numbers.index_vector_dim
    along = [d for d in range(indices.rank) if d != vector]
    # the space: the dimensions of the result, then one for each row that is chosen
    rank, space = len(shape), [*shape, *(operand.shape[d] for d in rows)]
    windows = iter(offset)
    to: list[int] = []
    for d in range(operand.rank):
        if d in rows:
            to.append(rank + rows.index(d))
        elif d in numbers.operand_batching_dims:
            at = list(numbers.start_indices_batching_dims)[list(numbers.operand_batching_dims).index(d)]
            to.append(batch[along.index(at)])
        else:
            to.append(next(windows))
            if sizes[d] != operand.shape[d]:
                raise Unknown("it takes parts of rows")
    values = [_in_space(p, to, space) for p in operand.pieces]
    choices: list[list[Equality]] = []
    for k, d in enumerate(rows):
        index = _component(site, indices, vector, k)
        if clamp:
            index = elementwise.clamped_index(site, index, operand.shape[d] - 1)
        choices.append(_equalities(site, index, batch, space, rank + k))
    return _along(site, _summed(site, values, choices, space, element, "add"), rank, bare("add", element))


def _in_space(piece: Piece, to: Sequence[int], space: Sequence[int]) -> Piece:
    source = [-1] * len(space)
    for d, place in enumerate(to):
        source[place] = d
    return piece.columns(source, space)


def _component(site: Site, indices: Content, vector: int, k: int) -> Content:
    """Return component ``k`` of the indices, without their vector dimension."""
    if vector == indices.rank:
        return indices
    start = np.zeros((site.devices, indices.rank), np.int64)
    start[:, vector] = k
    sizes = [1 if d == vector else n for d, n in enumerate(indices.shape)]
    strips = [s for p in indices.pieces if (s := cut(p, start, sizes)) is not None]
    return without_dims(Content(tuple(sizes), indices.element, tuple(strips)), [vector])


@dataclass(frozen=True, eq=False, slots=True)
class Equality:
    """Which rows are chosen: ``index`` and ``number``, pieces of the space that are equal where the row counts.

    Along dimension ``row`` of the space the rows ``lo`` to ``hi`` of a device may count; others do not if ``sure``.
    """

    index: Piece
    number: Piece
    row: int
    lo: Ints
    hi: Ints
    sure: bool


def _equalities(site: Site, index: Content, batch: Sequence[int], space: Sequence[int], row: int) -> list[Equality]:
    return [_equality(site, piece, index.element, batch, space, row) for piece in index.pieces]


def _equality(site: Site, piece: Piece, element: str, batch: Sequence[int], space: Sequence[int], row: int) -> Equality:
    terms = site.terms
    piece, shift, checked = _without_offset(terms, piece, element, space[row])
    number = site.walk.everywhere(terms.position, shift[:, None], space)
    number.a[0, row] = 1
    bounds = _clamped_to(terms, piece) if checked is None else checked
    lo, hi = np.zeros_like(shift), np.full_like(shift, space[row])
    if bounds is not None:
        lo, hi = np.clip(bounds[0] - shift, 0, space[row]), np.clip(bounds[1] + 1 - shift, 0, space[row])
    return Equality(_in_space(piece, batch, space), number, row, lo, hi, checked is None)


def _clamped_to(terms: Terms, piece: Piece) -> tuple[int, int] | None:
    """Return the numbers between which a clamp leaves its operand, where these are constants."""
    term = terms.all[piece.term]
    if term.key[0] != "stablehlo.clamp":
        return None
    bounds = [terms.splat(part) for part in (term.parts[0], term.parts[2])]
    if any(b is None or b.dtype.kind not in "iu" for b in bounds):
        return None
    return int(bounds[0]), int(bounds[1])


def _without_offset(terms: Terms, piece: Piece, element: str, rows: int) -> tuple[Piece, Ints, tuple[int, int] | None]:
    """Return an index ``c - offset`` of ``rows`` rows as c, and the offset, which is one number on each device.

    The difference wraps as the type ``element`` does, so row v is chosen where c is v + offset only if the type has
    that number, for each v: other offsets stay.

    ``select(clamp(c) == c, clamp(c) - offset, -1)``, which counts no row where c lies outside of the clamp's bounds, is
    c in them: these come third.
    """
    none = np.zeros(len(piece.on), np.int64)
    box = piece.lo, piece.hi, piece.on
    key = terms.all[piece.term].key
    if key[0] == "select":
        which, inside, outside = operands_of(terms, piece, box)
        number = affine(terms, outside)
        if number is None or number[0].any() or (number[1][piece.on] >= 0).any():
            return piece, none, None
        clamp, shift, checked = _without_offset(terms, inside, element, rows)
        bounds = _clamped_to(terms, clamp)
        if checked is not None or bounds is None or bounds[0] != 0:
            return piece, none, None
        own = operands_of(terms, clamp, box)[1]
        test = terms.all[which.term].key
        if test[:2] != ("compare", "EQ") or test[3] != "integer":
            return piece, none, None
        sides = operands_of(terms, which, box)
        if not any(_same(x, clamp, box) and _same(y, own, box) for x, y in (sides, sides[::-1])):
            return piece, none, None
        return own, shift, bounds
    if key[0] not in ("stablehlo.subtract", "stablehlo.add"):
        return piece, none, None
    x, y = operands_of(terms, piece, box)
    number = affine(terms, y)
    if number is None or number[0][piece.wide].any():
        return piece, none, None
    sign = 1 if key[0] == "stablehlo.subtract" else -1
    shift = sign * (number[1] + piece.lo @ number[0])
    (least, most), live = limits(element), shift[piece.on]
    if live.min() < least or int(live.max()) + rows - 1 > most:
        return piece, none, None
    return x, shift, None


def _same(one: Piece, other: Piece, box: Box) -> bool:
    lo, hi, on = box
    wide = ((hi - lo > 1) & on[:, None]).any(0)
    return (
        one.term == other.term
        and bool((one.a[:, wide] == other.a[:, wide]).all())
        and bool(((lo @ one.a.T + one.b)[on] == (lo @ other.a.T + other.b)[on]).all())
    )


def _summed(
    site: Site, values: Sequence[Piece], choices: Sequence[Sequence[Equality]], space: Sequence[int], element: str,
    name: str,
) -> Content:  # fmt: skip
    """Return the values of each chosen row over the whole ``space``; zeros that change no sum elsewhere."""
    parts = [p for one in product(*choices) for p in _chosen(site, values, one, space, element, name)]
    return Content(tuple(space), element, tuple(parts))


def _chosen(
    site: Site, values: Sequence[Piece], choices: Sequence[Equality], space: Sequence[int], element: str, name: str
) -> list[Piece]:
    key = ("chosen", len(choices), element)
    chosen = [p for c in choices for p in (c.index, c.number)]
    first = chosen[0]
    lo, hi = np.zeros_like(first.lo), np.broadcast_to(np.array(space, np.int64), first.hi.shape).copy()
    box = common([c.index for c in choices])
    if box is None:
        return []
    lo, hi = np.maximum(lo, box[0]), np.minimum(hi, box[1])
    everything = lo.copy(), hi.copy(), box[2]
    for c in choices:
        lo[:, c.row], hi[:, c.row] = np.maximum(lo[:, c.row], c.lo), np.minimum(hi[:, c.row], c.hi)
    made: list[Piece | None] = []
    for pieces, cell in cells([values, *([p] for p in chosen)]):
        part = np.maximum(cell[0], lo), np.minimum(cell[1], hi), cell[2]
        part = part[0], part[1], part[2] & (part[0] < part[1]).all(1)
        if part[2].any():
            made.append(combine(site.terms, key, pieces, part))
    if all(c.sure for c in choices) and name == "add":
        inside = Piece(-1, first.a, first.b, lo, hi, np.logical_and.reduce(lo < hi, axis=1))
        made += [zero_piece(site.terms, element, outside, negative=True) for outside in minus(*everything, inside)]
    return [p for p in made if p is not None]


def _along(site: Site, chosen: Content, rank: int, reducer: Reducer) -> Content:
    """Sum along the dimensions of the space after the first ``rank``."""
    dims = list(range(rank, chosen.rank))
    sums = reduced(site, chosen, dims, reducer)
    return without_dims(Content((*chosen.shape[:rank], *(1 for _ in dims)), chosen.element, tuple(sums)), dims)


def masked(site: Site) -> list[Content]:
    """Relate a select between a gather and zero, chosen by whether the index lies in the operand, and by nothing
    else.
    """
    made_by = [site.op.operands[k].owner for k in (1, 2)]
    gathers = [not hasattr(owner, "arguments") and operation(owner).name == "stablehlo.gather" for owner in made_by]
    if gathers[0] == gathers[1]:
        raise Unknown("it chooses no gather, or between two")
    which, *options = site.operands
    chosen, other = options if gathers[0] else options[::-1]
    dtype = element_type(other.element).dtype
    laws = {neutral(site.terms.splat(p.term), "add", other.element, dtype) for p in other.pieces}
    if not laws or None in laws:
        raise Unknown("it chooses other values than zeros")
    op = operation(made_by[0] if gathers[0] else made_by[1])
    operand, indices = (site.walk.values[v] for v in op.operands)
    if not which.covered():
        raise Unknown("its choice is not known")
    rows = by_rows(site, op, operand, indices, clamp=False).pieces
    result: list[Piece | None] = []
    for choice in which.pieces:
        value = site.terms.splat(choice.term)
        if value is None:
            _says_where(site, op, choice, gathers[0])
        picked = rows if value is None else (chosen if bool(value) is gathers[0] else other).pieces
        result += [Piece(p.term, p.a, p.b, *both) for p in picked if (both := common([choice, p])) is not None]
    if ZERO in laws and not site.takes(ZERO):
        raise Unknown("it puts 0 where no row is, and not -0")
    return [site.result(result)]


def _says_where(site: Site, op: Any, choice: Piece, holds: bool) -> None:
    """Raise Unknown unless ``choice`` is exactly the test whether the index of the gather ``op`` is in its operand's
    bounds.
    """
    box = choice.lo, choice.hi, choice.on
    operand, indices = (site.walk.values[v] for v in op.operands)
    shape, _ = type_of(op.results[0])
    numbers = hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    batch = [d for d in range(len(shape)) if d not in list(numbers.offset_dims)]
    bounds = _bounds(site.terms, choice, box, holds=holds)
    asked = set[int]()
    for k, d in enumerate(numbers.start_index_map):
        index = _component(site, indices, numbers.index_vector_dim, k)
        there = [p for one in index.pieces if common([choice, p := _in_space(one, batch, shape)]) is not None]
        if len(there) != 1 or minus(*box, there[0]):
            raise Unknown("its indices are of several parts")
        asked |= _bounding(site.terms, bounds, there[0], index.element, operand.shape[d], box)
    if len(asked) < len(bounds):
        raise Unknown("the choice says more than that the index lies in the operand")


Bound = tuple[Piece, str, Ints]  # an integer, GE or LE, and the limit on each device
_OPPOSITE = {"LT": "GE", "LE": "GT", "GT": "LE", "GE": "LT"}


def _bounds(terms: Terms, piece: Piece, box: Box, holds: bool) -> list[Bound]:
    """Return integer bounds that are all satisfied exactly where ``piece`` is true, or false if ``holds`` is False.

    Raises Unknown if the condition is not a conjunction of comparisons of integers with known bounds.
    """
    key = terms.all[piece.term].key
    if key[0] == ("stablehlo.and" if holds else "stablehlo.or"):
        return [bound for part in operands_of(terms, piece, box) for bound in _bounds(terms, part, box, holds)]
    if key[0] != "compare" or key[3] != "integer" or key[1] not in _OPPOSITE:
        raise Unknown("its choice is by something else than bounds of integers")
    x, y = operands_of(terms, piece, box)
    direction = key[1]
    if affine(terms, y) is None:  # the bound comes first
        x, y, direction = y, x, {"LT": "GT", "LE": "GE"}.get(direction, direction)
    number = affine(terms, y)
    if number is None or number[0].any():
        raise Unknown("its choice is by bounds that are not known")
    direction = direction if holds else _OPPOSITE[direction]
    step = {"GT": 1, "LT": -1}.get(direction, 0)
    return [(x, "GE" if direction in ("GE", "GT") else "LE", number[1] + step)]


def _bounding(terms: Terms, bounds: Sequence[Bound], index: Piece, element: str, rows: int, box: Box) -> set[int]:
    """Return which of ``bounds`` state that ``index``, with or without an offset, lies in [0, rows).

    Raises Unknown unless both ends are bounds of one of these: a difference that wraps is at least 0 on both sides.
    """
    base, shift, checked = _without_offset(terms, Piece(index.term, index.a, index.b, *box), element, rows)
    forms = [(index, np.zeros_like(shift)), *([(base, shift)] if checked is None else [])]
    on = box[2]
    by_form = [
        [
            {
                number
                for number, (x, direction, at) in enumerate(bounds)
                if direction == word and _same(x, own, box) and (at[on] == (limit + by)[on]).all()
            }
            for word, limit in (("GE", 0), ("LE", rows - 1))
        ]
        for own, by in forms
    ]
    if not any(all(ends) for ends in by_form):
        raise Unknown("the choice does not say that the index lies in the operand")
    return {number for ends in by_form for end in ends for number in end}


def scatter(site: Site) -> list[Content]:
    if len(site.operands) != 3:
        raise Unknown("it scatters several operands at once")
    operand, indices, updates = site.operands
    numbers = hlo.ScatterDimensionNumbers(site.op.attributes["scatter_dimension_numbers"])
    name = reducer_of(site.op)
    rows = list(numbers.scattered_dims_to_operand_dims)
    if sorted(rows) != sorted(numbers.inserted_window_dims) or 0 in updates.shape or 0 in operand.shape:
        raise Unknown("it scatters more than single rows")
    windows = list(numbers.update_window_dims)
    batch = [d for d in range(updates.rank) if d not in windows]
    vector = numbers.index_vector_dim
    along = [d for d in range(indices.rank) if d != vector]
    rank = operand.rank
    # the space: the dimensions of the operand, then those of the updates that are no dimension of the operand
    batching = dict(zip(numbers.scatter_indices_batching_dims, numbers.input_batching_dims, strict=True))
    space, to = list(operand.shape), [0] * updates.rank
    left = iter(windows)
    for d in range(rank):
        if d in rows or d in numbers.input_batching_dims:
            continue
        at = next(left)
        if updates.shape[at] != operand.shape[d]:
            raise Unknown("it scatters parts of rows")
        to[at] = d
    for at, d in zip(batch, along, strict=True):
        if d in batching:
            to[at] = batching[d]
        else:
            to[at] = len(space)
            space.append(updates.shape[at])
    values, choices = [_in_space(p, to, space) for p in updates.pieces], list[list[Equality]]()
    for k, d in enumerate(rows):
        index = _component(site, indices, vector, k)
        choices.append(_equalities(site, index, [to[at] for at in batch], space, d))
    dtype = element_type(operand.element).dtype
    laws = [neutral(site.terms.splat(p.term), name, operand.element, dtype) for p in operand.pieces]
    reducer = (name, operand.element) if set(laws) == {ZERO} else bare(name, operand.element)
    total = _along(site, _summed(site, values, choices, space, operand.element, name), rank, reducer)
    pieces: list[Piece | None] = []
    for (start, more), box in cells([operand.pieces, total.pieces]):
        law = neutral(site.terms.splat(start.term), name, operand.element, dtype)
        if law == NEUTRAL or (law == ZERO and has_zero(reducer)):
            pieces.append(Piece(more.term, more.a, more.b, *box))
        else:
            pieces.append(
                combine(site.terms, (f"stablehlo.{name}", "of a scatter", operand.element), [start, more], box)
            )
    return [site.result(pieces)]


RULES: dict[str, Rule] = {
    "stablehlo.gather": blocks.either(gather, rows.gather),
    "stablehlo.scatter": blocks.either(scatter, blocks.either(placed, rows.scatter)),
    "stablehlo.select": blocks.either(masked, elementwise.select),
}
