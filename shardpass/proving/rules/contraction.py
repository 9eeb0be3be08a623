"""Reductions, and products that are reductions of elementwise products."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.ir.tensors import ints
from shardpass.ir.walk import operation
from shardpass.proving.relations.combine import add_ranges, cells, combine, reduce_along, times
from shardpass.proving.relations.elements import is_neutral, neutral, splat_value
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.laws import ZERO
from shardpass.proving.relations.pieces import Content, Ints, Piece, common, made, minus, volume
from shardpass.proving.relations.reducers import Reducer, bare, has_negative_zero, has_zero
from shardpass.proving.relations.rows import of_each, with_dimension
from shardpass.proving.relations.terms import Key, Terms
from shardpass.proving.rules.integers import Box, is_integer


def reducer_of(op: Any) -> str:
    """Return the name of the one op, of its two arguments, in a reduction's body.

    Raises Unknown for other bodies, and for those that reduce in a wider type than that of the operand.
    """
    block = op.regions[0].blocks[0]
    *body, end = [operation(op) for op in block.operations]
    simple = (
        len(body) == 1
        and len(block.arguments) == 2
        and len(body[0].operands) == 2
        and {body[0].operands[0], body[0].operands[1]} == set(block.arguments)
        and list(end.operands) == [body[0].results[0]]
    )
    name = body[0].name.split(".")[-1] if simple else ""
    if name not in ("add", "multiply", "maximum", "minimum", "and", "or", "xor"):
        raise Unknown("its body is not one op that can be reordered")
    if type_of(block.arguments[0])[1] != type_of(op.operands[0])[1]:
        raise Unknown("its body reduces in another type than its operand's")
    return name


def without_dims(content: Content, dims: Sequence[int]) -> Content:
    """Return ``content`` without dimensions of size 1."""
    kept = [d for d in range(content.rank) if d not in dims]
    shape = tuple(content.shape[d] for d in kept)
    return Content(shape, content.element, tuple(p.columns(kept, shape) for p in content.pieces))


def reduced(site: Site, content: Content, dims: Sequence[int], reducer: Reducer) -> list[Piece]:
    """Reduce ``content`` along ``dims``, which have size 1 in the result; neutral elements are left out."""
    element, dtype = content.element, element_type(content.element).dtype
    busy, idle = list[Piece](), list[Piece]()
    for p in content.pieces:
        law = neutral(site.terms.splat(p.term), reducer[0], element, dtype)
        drops = law is not None and (has_zero(reducer) or site.takes(law))
        (idle if drops else busy).append(p)
    result = []
    for box in kept_boxes(content, dims):
        piece = _reduced_box(site.terms, reducer, content, dims, box, busy, idle)
        if piece is not None:
            result.append(piece)
    return result


def kept_boxes(content: Content, dims: Sequence[int]) -> list[Box]:
    """Return the boxes of kept positions in which the same pieces lie."""
    boxes: list[Box] = []
    for piece in content.pieces:
        lo, hi = _whole_along(piece.lo, piece.hi, dims, content.shape)
        new = replace(piece, lo=lo, hi=hi)
        parts: list[Box] = []
        rest: list[Box] = [(lo, hi, piece.on)]
        for known in boxes:
            old = replace(new, lo=known[0], hi=known[1], on=known[2])
            both = common([old, new])
            parts += [known] if both is None else [both, *minus(*known, new)]
            rest = [part for one in rest for part in minus(*one, old)]
        boxes = parts + rest
    return boxes


def _whole_along(lo: Ints, hi: Ints, dims: Sequence[int], shape: Sequence[int]) -> tuple[Ints, Ints]:
    for dim in dims:
        lo, hi = with_dimension(lo, dim, 0), with_dimension(hi, dim, shape[dim])
    return lo, hi


def _reduced_box(
    terms: Terms, reducer: Key, content: Content, dims: Sequence[int], box: Box, busy: Sequence[Piece],
    idle: Sequence[Piece],
) -> Piece | None:  # fmt: skip
    """Reduce one box of kept positions: the sum of all that lies along it; None where part of that is not known."""
    lo, hi, on = box
    inside = [q for p in busy if (q := made(p.term, p.a, p.b, *met(p, box))) is not None]
    rest = [q for p in idle if (q := made(p.term, p.a, p.b, *met(p, box))) is not None]
    known = sum((volume(p.lo, p.hi, p.on) for p in (*inside, *rest)), np.zeros(len(on), np.int64))
    on = on & (known == volume(lo, hi, on))
    if not on.any():
        return None
    new_lo, new_hi = lo, hi
    for dim in dims:
        new_lo, new_hi = with_dimension(new_lo, dim, 0), with_dimension(new_hi, dim, 1)
    if not inside and has_zero(reducer):
        return zero_piece(terms, content.element, (new_lo, new_hi, on))
    if not inside:
        (first, *_) = rest
        result = made(first.term, first.a, first.b, new_lo, new_hi, on)
        return result
    sums = []
    for piece in inside:
        partial: Piece | None = piece
        for dim in dims:
            partial = None if partial is None else reduce_along(terms, reducer, partial, dim)
        if partial is None:
            return None
        sums.append(partial)
    if has_zero(reducer) and not any(has_zero(terms.all[p.term].reducer) for p in sums):  # one element, and 0
        sums = [times(terms, reducer, p, np.ones(len(p.on), np.int64)) for p in sums]
    if len(sums) == 1 and not (on & ~sums[0].on).any():
        return made(sums[0].term, sums[0].a, sums[0].b, new_lo, new_hi, on)
    return _total(terms, sums, (new_lo, new_hi, on), reducer)


def met(piece: Piece, box: Box) -> Box:
    return of_each(np.maximum, piece.lo, box[0]), of_each(np.minimum, piece.hi, box[1]), piece.on & box[2]


def _total(terms: Terms, sums: Sequence[Piece], box: Box, reducer: Key) -> Piece | None:
    """Add several sums; a device without a part of a sum adds an empty range."""
    lo, hi, on = box
    spread: list[Piece] = []
    for piece in sums:
        term = terms.all[piece.term]
        if not term.ranges:
            spread = []
            break
        live = piece.on
        b = piece.b.copy()
        if (on & ~live).any():
            if len(sums) > 1:
                source = next((p for p in sums if p.term == piece.term and p is not piece), None)
                if source is not None:
                    b[~live] = source.b[~live]
            for low, high in term.ranges:
                b[~live, high] = b[~live, low]
        spread.append(Piece(piece.term, piece.a, b, lo, hi, on))
    if spread:
        if len(spread) == 1:
            return spread[0]
        result = add_ranges(terms, spread, box)
        if result is not None:
            return result
    if all(not (on & ~p.on).any() for p in sums):
        total = Piece(sums[0].term, sums[0].a, sums[0].b, lo, hi, on)
        for piece in sums[1:]:
            total = combine(terms, ("sum of sums", *reducer), [total, replace(piece, lo=lo, hi=hi, on=on)], box)
        return total
    return None


def reduce(site: Site) -> list[Content]:
    if len(site.op.results) != 1:
        raise Unknown("a reduction of several operands at once is not known")
    operand, init = site.operands
    dims = ints(site.op.attributes["dimensions"])
    name = reducer_of(site.op)
    if 0 in operand.shape:
        raise Unknown("it reduces nothing")
    shape = tuple(1 if d in dims else n for d, n in enumerate(operand.shape))

    def by(reducer: Reducer) -> Content:
        return without_dims(Content(shape, operand.element, tuple(reduced(site, operand, dims, reducer))), dims)

    return [site.result(from_start(site, init, name, by))]


def from_start(site: Site, init: Content, name: str, reduce: Callable[[Reducer], Content]) -> list[Piece | None]:
    """Relate ``reduce`` by a reducer from ``init``, which may be 0 on some devices and -0 on others."""
    dtype = element_type(init.element).dtype
    made: dict[Reducer, Content] = {}
    result: list[Piece | None] = []
    for piece in init.pieces:
        law = neutral(site.terms.splat(piece.term), name, init.element, dtype)
        reducer = (name, init.element) if law == ZERO else bare(name, init.element)
        if reducer not in made:
            made[reducer] = reduce(reducer)
        content = made[reducer]
        if law is not None and len(init.pieces) == 1 and init.covered():
            return list(content.pieces)
        start = piece.columns([-1] * content.rank, content.shape)
        key = (f"stablehlo.{name}", "of a start", init.element)
        for chosen, box in cells([content.pieces, [start]]):
            one = chosen[0]
            result.append(Piece(one.term, one.a, one.b, *box) if law else combine(site.terms, key, chosen, box))
    return result


# ---------------------------------------------------------------- products


def dot_general(site: Site) -> list[Content]:
    from jaxlib.mlir.dialects import stablehlo as hlo

    numbers = hlo.DotDimensionNumbers(site.op.attributes["dot_dimension_numbers"])
    lhs, rhs = site.operands
    batch = list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions)
    inner = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    return [site.result(product(site, lhs, rhs, batch, inner).pieces)]


def dot(site: Site) -> list[Content]:
    """Relate the product over the last dimension of lhs and the first of rhs."""
    lhs, rhs = site.operands
    return [site.result(product(site, lhs, rhs, ([], []), ([lhs.rank - 1], [0])).pieces)]


def product(
    site: Site, lhs: Content, rhs: Content, batch: tuple[list[int], list[int]], inner: tuple[list[int], list[int]]
) -> Content:
    """Multiply with dimensions in this order: batch, free ones of lhs, free ones of rhs, contracted ones."""
    free_l = [d for d in range(lhs.rank) if d not in batch[0] and d not in inner[0]]
    free_r = [d for d in range(rhs.rank) if d not in batch[1] and d not in inner[1]]
    none_l, none_r = [-1] * len(free_l), [-1] * len(free_r)
    shape = [lhs.shape[d] for d in (*batch[0], *free_l)]
    shape += [rhs.shape[d] for d in free_r] + [lhs.shape[d] for d in inner[0]]
    x = [p.columns([*batch[0], *free_l, *none_r, *inner[0]], shape) for p in lhs.pieces]
    y = [p.columns([*batch[1], *none_l, *free_r, *inner[1]], shape) for p in rhs.pieces]
    _, element = type_of(site.op.results[0])
    return contracted(site, x, y, shape, len(inner[0]), (lhs.element, rhs.element, element))


def contracted(
    site: Site, x: Sequence[Piece], y: Sequence[Piece], shape: Sequence[int], last: int, elements: tuple[str, str, str]
) -> Content:
    """Sum products x * y over the ``last`` dimensions."""
    element = elements[2]
    attributes = site.op.attributes
    how = tuple(
        str(attributes[n]) for n in ("precision_config", "algorithm") if n in attributes and not _usual(attributes[n])
    )
    key = ("product", *elements, *how)
    pieces = []
    for chosen, box in cells([x, y]):
        zeros = [_zero(site.terms, p, e) for p, e in zip(chosen, elements, strict=False)]
        if (last and all(zeros)) or (any(zeros) and all(is_integer(e) for e in elements)):
            pieces.append(zero_piece(site.terms, element, box))
        else:
            pieces.append(combine(site.terms, key, chosen, box))
    products = Content(tuple(shape), element, tuple(p for p in pieces if p is not None))
    rank = len(shape)
    dims = list(range(rank - last, rank))
    if any(shape[d] == 0 for d in dims):
        raise Unknown("it contracts nothing")
    sums = reduced(site, products, dims, ("add", element)) if dims else list(products.pieces)
    one = Content(tuple(1 if d in dims else n for d, n in enumerate(shape)), element, tuple(sums))
    return without_dims(one, dims)


def _usual(attribute: Any) -> bool:
    """Return whether a list of precisions says what no list says."""
    return not set(re.findall(r"[A-Z][A-Z0-9]+", str(attribute))) - {"DEFAULT"} and "dot_algorithm" not in str(
        attribute
    )


def _zero(terms: Terms, piece: Piece, element: str) -> bool:
    return is_neutral(terms.splat(piece.term), "add", element, element_type(element).dtype)


def zero_piece(terms: Terms, element: str, box: Box, negative: bool = False) -> Piece | None:
    """Return the piece of zeros; with ``negative`` of those that change no sum, -0 where the type has it."""
    text = "0" if is_integer(element) else "false" if element == "i1" else "0.000000e+00"
    if negative and has_negative_zero(element):
        text = f"-{text}"
    if element.startswith("complex"):
        text = f"({text},{text})"
    term = terms.constant(element, splat_value(text, element, element_type(element).dtype))
    lo, hi, on = box
    return made(term, np.zeros((0, lo.shape[1]), np.int64), np.zeros((len(on), 0), np.int64), lo, hi, on)


RULES: dict[str, Rule] = {
    "stablehlo.reduce": reduce,
    "stablehlo.dot": dot,
    "stablehlo.dot_general": dot_general,
}
