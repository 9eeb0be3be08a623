"""Elementwise ops: an op of pieces at the same positions, and the constants that decide without an op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.ir.tensors import enum_word, ints
from shardpass.proving.relations.combine import cells, combine, operands_of
from shardpass.proving.relations.elements import constant_term, finite, folded, neutral, splat_value
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.laws import NEUTRAL, ZERO
from shardpass.proving.relations.pieces import Content, Piece, broadcast_piece, full
from shardpass.proving.relations.reducers import has_negative_zero, has_zero
from shardpass.proving.relations.terms import Key, Terms
from shardpass.proving.rules.integers import (
    Box,
    affine,
    arithmetic,
    compared,
    constant_piece,
    converted,
    extremes,
    is_integer,
    limits,
    numbers_piece,
)

# annotations, which change nothing of what an op computes
_SILENT = (
    *("mhlo.sharding", "sdy.sharding", "channel_handle", "mhlo.frontend_attributes", "xla_metadata"),
    *("result_layout", "xla_shape"),  # layouts of XLA's HLO
)


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


UNARY = words("""abs cbrt ceil cosine count_leading_zeros exponential exponential_minus_one floor imag is_finite log
log_plus_one logistic negate not popcnt real round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh
reduce_precision """)
BINARY = words("""add and atan2 complex divide maximum minimum multiply or power remainder shift_left
shift_right_arithmetic shift_right_logical subtract xor""")
CHLO = words("""acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erfc erf_inv is_inf is_neg_inf
is_pos_inf lgamma next_after polygamma sinh square tan zeta mulhi
constant_like_""")


STRETCHED = (*BINARY, "compare", "next_after", "polygamma", "select", "zeta")


def key_of(op: Any, *more: Any) -> Key:
    """Return the key of ``op``: its name, its attributes and the type of its elements."""
    kept = []
    for named in op.attributes:
        name = named if isinstance(named, str) else named.name
        if name not in _SILENT and not name.startswith(("shardpass.", "sdy.", "jax.")):
            kept.append((name, attribute_text(op, name)))
    return (op.name, tuple(sorted(kept)), *more)


def attribute_text(op: Any, name: str) -> str:
    return str(op.attributes[name])


_NEUTRAL = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
_EXACT_BELOW = {"f32": "i32", "f64": "i32"}  # integers as which whole numbers are computed
BOUNDING = {"minimum": "maximum", "maximum": "minimum"}  # the op inside of it, where the two are a clamp
_NEUTRAL_LAST = {"subtract": "add", "divide": "multiply"}  # of their second operand, that of the other op


def elementwise(site: Site) -> list[Content]:
    name = site.op.name.split(".")[-1]
    shape, element = type_of(site.op.results[0])
    operands = [spread(c, shape) for c in site.operands]
    key = key_of(site.op, element, tuple(c.element for c in operands))
    if is_square(site.op, element):
        name, operands, key = "multiply", operands * 2, product_key(element)
    pieces: list[Piece | None] = []
    for chosen, box in cells([c.pieces for c in operands]):
        result = _simple(site, name, element, operands, chosen, box)
        pieces += result if result is not None else [combine(site.terms, key, chosen, box)]
    return [site.result(pieces)]


def _op(
    site: Site, name: str, element: str, operands: Sequence[Content], pieces: Sequence[Piece], box: Box
) -> list[Piece | None]:
    """Return the result of a maximum or a minimum, which may be part of another op."""
    result = _simple(site, name, element, operands, pieces, box)
    key: Key = (f"stablehlo.{name}", (), element, (element,) * 2)
    return result if result is not None else [combine(site.terms, key, pieces, box)]


def is_square(op: Any, element: str) -> bool:
    """Return whether ``op`` is the product of its operand with itself, which of complex numbers is another op."""
    return op.name == "chlo.square" and not element.startswith("complex")


def product_key(element: str) -> Key:
    """Return the key of ``stablehlo.multiply``."""
    return ("stablehlo.multiply", (), element, (element, element))


def spread(content: Content, shape: Sequence[int]) -> Content:
    """Broadcast a scalar among operands of ``shape``, which clamp and select may have."""
    if content.shape == tuple(shape) or content.shape:
        return content
    return Content(tuple(shape), content.element, tuple(p.columns([-1] * len(shape), shape) for p in content.pieces))


def _simple(
    site: Site, name: str, element: str, operands: Sequence[Content], pieces: Sequence[Piece], box: Box
) -> list[Piece | None] | None:
    """Return the result of an op that needs no term; None for others."""
    value = folded(name, element, [site.terms.splat(piece.term) for piece in pieces])
    if value is not None:
        a, b = np.zeros((0, box[0].shape[1]), np.int64), np.zeros((len(box[2]), 0), np.int64)
        return [Piece(site.terms.constant(element, value), a, b, *box)]
    if name in _NEUTRAL:
        dtype = element_type(element).dtype
        for piece, other in (pieces, pieces[::-1]):
            law = neutral(site.terms.splat(piece.term), name, element, dtype)
            if law is not None and (has_zero(site.terms.all[other.term].reducer) or site.takes(law)):
                return [Piece(other.term, other.a, other.b, *box)]
    if element in _EXACT_BELOW and name in ("add", "subtract", "multiply"):
        counted = _counted(site.terms, name, element, pieces, box)
        if counted is not None:
            return [counted]
    if name in _NEUTRAL_LAST:
        first, last = pieces
        law = neutral(site.terms.splat(last.term), _NEUTRAL_LAST[name], element, element_type(element).dtype)
        if name == "subtract" and law is not None and has_negative_zero(element):
            law = ZERO if law == NEUTRAL else NEUTRAL if not element.startswith("complex") else ZERO  # x - 0 = x + -0
        if law is not None and (has_zero(site.terms.all[first.term].reducer) or site.takes(law)):
            return [Piece(first.term, first.a, first.b, *box)]
    clamped = _as_clamp(site.terms, name, element, pieces, box)
    if clamped is not None:
        return clamp_piece(site.terms, element, clamped, box)
    if name == "clamp":
        inner = _op(site, "maximum", element, operands[:2], pieces[:2], box)
        outer = (_op(site, "minimum", element, operands[1:], [p, pieces[2]], (p.lo, p.hi, p.on)) for p in inner if p)
        return [p for made in outer for p in made]
    if is_integer(element) and is_integer(operands[0].element):
        within = [Piece(piece.term, piece.a, piece.b, *box) for piece in pieces]
        result = arithmetic(site.terms, name, element, within, box)
        if result is not None:
            return result
    if element == "i1" and name in ("and", "or"):
        for piece, other in (pieces, pieces[::-1]):
            value = site.terms.splat(piece.term)
            if value is not None:
                decides = bool(value) == (name == "or")
                return [(piece if decides else other).boxed(box[0], box[1])]
    return None


def _counted(terms: Terms, name: str, element: str, pieces: Sequence[Piece], box: Box) -> Piece | None:
    """Return the op of positions that are floats as the float of a position, exact below ``_EXACT_BELOW``; or None.

    Example: ``convert(iota) + 4.0`` is ``convert(iota + 4)``.
    """
    numbers = [_as_positions(terms, element, piece, box) for piece in pieces]
    if any(n is None for n in numbers):
        return None
    if name == "multiply" and _may_be_negative_zero(terms, numbers, box):
        return None
    made = arithmetic(terms, name, _EXACT_BELOW[element], [n for n in numbers if n is not None], box)
    if made is None or made[0] is None or not _is_exact(terms, element, made[0]):
        return None
    return _as_float(terms, _EXACT_BELOW[element], element, made[0]) or combine(
        terms, ("convert", element, "integer"), [made[0]], box
    )


def _may_be_negative_zero(terms: Terms, numbers: Sequence[Piece | None], box: Box) -> bool:
    """Return whether a product of floats may be -0, as 0 times a negative number is, and the product of integers is
    not.
    """
    known = [affine(terms, piece) for piece in numbers if piece is not None]
    ends = [extremes(*own, box) for own in known if own is not None]
    return len(ends) < 2 or any(x[0] <= 0 <= x[1] and y[0] < 0 for x, y in (ends, ends[::-1]))


def _as_positions(terms: Terms, element: str, piece: Piece, box: Box) -> Piece | None:
    """Return floats that are positions, or one whole number, as integers; None for others."""
    term = terms.all[piece.term]
    if term.key == ("convert", element, "integer") and term.parts == (terms.position,):
        (inner,) = operands_of(terms, piece, box)
        return inner if _is_exact(terms, element, inner) else None
    value = finite(str(terms.splat(piece.term)), element)
    if (
        value is None
        or value != np.rint(value)
        or (value == 0 and np.signbit(value))
        or abs(value) > limits(_EXACT_BELOW[element])[1]
    ):
        return None
    return constant_piece(terms, _EXACT_BELOW[element], int(value), box)


def _is_exact(terms: Terms, element: str, piece: Piece) -> bool:
    known = affine(terms, piece)
    return known is not None and max(map(abs, extremes(*known, (piece.lo, piece.hi, piece.on)))) < 2**24


def _as_clamp(terms: Terms, name: str, element: str, pieces: Sequence[Piece], box: Box) -> list[Piece] | None:
    """Return the bounds of a clamp, which are constants, with its operand between them; None for other ops.

    A clamp may be written as a minimum of a maximum, and where its bounds differ as the maximum of a minimum.
    """
    values = [terms.splat(piece.term) for piece in pieces]
    if name == "clamp":
        return list(pieces) if values[0] is not None and values[2] is not None else None
    for (outer, value), (inner, _) in permutations(zip(pieces, values, strict=True)) if name in BOUNDING else ():
        if value is None or terms.all[inner.term].key[0] != f"stablehlo.{BOUNDING[name]}":
            continue
        for own, x in permutations(operands_of(terms, inner, box)):
            bound = terms.splat(own.term)
            if bound is None:
                continue
            if name == "minimum":
                return [own, x, outer]
            if _less(value, bound):
                return [outer, x, own]
    return None


def _less(one: Any, other: Any) -> bool:
    """Return whether a constant is known to be less than another constant."""
    try:
        return float(str(one)) < float(str(other))
    except ValueError:  # bits, complex numbers, truth values
        return False


def clamp_piece(terms: Terms, element: str, pieces: Sequence[Piece], box: Box) -> list[Piece | None]:
    """Clamp a piece between constants, as ``stablehlo.clamp`` does."""
    inner, bounds = terms.all[pieces[1].term], (pieces[0].term, pieces[2].term)
    if is_integer(element) and inner.key[0] == "stablehlo.clamp" and (inner.parts[0], inner.parts[2]) == bounds:
        return [pieces[1].boxed(box[0], box[1])]  # it lies between these constants already
    result = arithmetic(terms, "clamp", element, pieces, box) if is_integer(element) else None
    return (
        result
        if result is not None
        else [combine(terms, ("stablehlo.clamp", (), element, (element,) * 3), pieces, box)]
    )


def clamped_index(site: Site, index: Content, most: int) -> Content:
    """Clamp an index to ``most``, as a gather does; ``most`` may exceed the index's type, which then bounds it."""
    most = min(most, limits(index.element)[1])
    pieces: list[Piece | None] = []
    for p in index.pieces:
        box = p.lo, p.hi, p.on
        low, high = (constant_piece(site.terms, index.element, n, box) for n in (0, most))
        if low is None or high is None:
            continue
        result = clamp_piece(site.terms, index.element, [low, p, high], box)
        pieces += result
    return Content(index.shape, index.element, tuple(p for p in pieces if p is not None))


def bitcast(site: Site) -> list[Content]:
    """Relate a bitcast between types of one width: a second one that undoes it gives the operand."""
    (operand,) = site.operands
    shape, element = type_of(site.op.results[0])
    if shape != operand.shape:
        raise Unknown("it changes the number of elements")
    pieces = []
    for p in operand.pieces:
        box = p.lo, p.hi, p.on
        term = site.terms.all[p.term]
        if term.key[:2] == ("bitcast", operand.element) and term.key[2] == element:
            pieces += operands_of(site.terms, p, box)
        else:
            pieces.append(combine(site.terms, ("bitcast", element, operand.element), [p], box))
    return [site.result(pieces)]


def convert(site: Site) -> list[Content]:
    (operand,) = site.operands
    _, element = type_of(site.op.results[0])
    if element == operand.element:
        return [site.result(operand.pieces)]
    key: Key = ("convert", element, "integer" if is_integer(operand.element) else operand.element)
    pieces: list[Piece | None] = []
    for p in operand.pieces:
        box = p.lo, p.hi, p.on
        result = converted(site.terms, operand.element, element, p) or _as_float(
            site.terms, operand.element, element, p
        )
        if result is None and p.term != site.terms.position and is_integer(operand.element):
            result = combine(site.terms, (*key[:2], operand.element), [p], box)
        pieces.append(result if result is not None else combine(site.terms, key, [p], box))
    return [site.result(pieces)]


def _as_float(terms: Terms, old: str, new: str, piece: Piece) -> Piece | None:
    """Return a constant integer as its float, written as MLIR writes it; None where that is not exact."""
    value = terms.splat(piece.term)
    if value is None or value.dtype.kind not in "iub" or not is_integer(old) or new not in ("f32", "f64"):
        return None
    number = int(value)
    text = f"{number:.6e}"
    if float(text) != number or abs(number) >= 2**24:
        return None
    term = terms.constant(new, splat_value(text, new, None))
    return Piece(term, piece.a[:0], piece.b[:, :0], piece.lo, piece.hi, piece.on)


TURNED = {"GT": "LT", "GE": "LE"}


def order_of(attributes: Any) -> str:
    """Return the order of a comparison, if it is not the usual order of the type."""
    kind = enum_word(attributes["compare_type"]) if "compare_type" in attributes else ""
    return kind if kind == "TOTALORDER" else ""


def compare(site: Site) -> list[Content]:
    attributes = site.op.attributes
    direction = enum_word(attributes["comparison_direction"])
    kind = order_of(attributes)
    x, y = site.operands
    key: Key = ("compare", direction, kind, "integer" if is_integer(x.element) else x.element)
    pieces: list[Piece | None] = []
    for chosen, box in cells([x.pieces, y.pieces]):
        result = compared(site.terms, direction, chosen, box) if is_integer(x.element) else None
        if result is None and x.element == "i1":
            result = _truth_itself(site.terms, direction, chosen, box)
        pieces += result if result is not None else [combine(site.terms, *turned(key, chosen), box)]
    return [site.result(pieces)]


def turned(key: Key, sides: Sequence[Any]) -> tuple[Key, Sequence[Any]]:
    """Return a comparison by > or >= as one by < or <=, and other comparisons unchanged."""
    direction = TURNED.get(key[1])
    return (key, sides) if direction is None else ((key[0], direction, *key[2:]), sides[::-1])


def _truth_itself(terms: Terms, direction: str, pieces: Sequence[Piece], box: Box) -> list[Piece | None] | None:
    """Return a truth value that is compared with a constant, or its negation; None for other comparisons."""
    if direction not in ("EQ", "NE"):
        return None
    for piece, other in (pieces, pieces[::-1]):
        value = terms.splat(other.term)
        if value is not None:
            if bool(value) is (direction == "EQ"):
                return [Piece(piece.term, piece.a, piece.b, *box)]
            return [combine(terms, ("stablehlo.not", (), "i1", ("i1",)), [piece], box)]
    return None


def select(site: Site) -> list[Content]:
    shape, element = type_of(site.op.results[0])
    which, x, y = site.operands
    which = spread(which, shape)
    pieces: list[Piece | None] = []
    for p in which.pieces:
        value = site.terms.splat(p.term)
        if value is None:
            for chosen, box in cells([[p], x.pieces, y.pieces]):
                pieces.append(combine(site.terms, ("select", element), chosen, box))
            continue
        for (_, picked_piece), box in cells([[p], (x if value else y).pieces]):
            pieces.append(Piece(picked_piece.term, picked_piece.a, picked_piece.b, *box))
    return [site.result(pieces)]


def constant(site: Site) -> list[Content]:
    shape, element = type_of(site.op.results[0])
    term, one = constant_term(site.terms, site.op, shape, element, element_type(element).dtype)
    if one:
        return [site.result([site.walk.everywhere(term, np.zeros((site.devices, 0), np.int64), shape)])]
    rank = len(shape)
    return [site.result([full(term, np.eye(rank, dtype=np.int64), np.zeros((site.devices, rank), np.int64), shape)])]


def stretched(site: Site) -> list[Content]:
    """Relate CHLO's ops that stretch their operands: StableHLO's op of the stretched operands."""
    shape, element = type_of(site.op.results[0])
    name = site.op.name.split(".broadcast_")[1]
    named = "broadcast_dimensions" in site.op.attributes
    lower = ints(site.op.attributes["broadcast_dimensions"]) if named else []
    operands = []
    for c in site.operands:
        dims = list(range(len(shape) - c.rank, len(shape))) if c.rank != len(lower) or c.rank == len(shape) else lower
        wide = tuple(broadcast_piece(p, c.shape, shape, dims) for p in c.pieces)
        operands.append(Content(shape, c.element, wide))
    if name in ("compare", "select"):
        return (compare if name == "compare" else select)(replace(site, operands=operands))
    key: Key = (f"{'chlo' if name in CHLO else 'stablehlo'}.{name}", (), element, tuple(c.element for c in operands))
    pieces: list[Piece | None] = []
    for chosen, box in cells([c.pieces for c in operands]):
        result = _simple(site, name, element, operands, chosen, box)
        pieces += result if result is not None else [combine(site.terms, key, chosen, box)]
    return [site.result(pieces)]


def dimension_size(site: Site) -> list[Content]:
    (operand,) = site.operands
    size = operand.shape[int(site.op.attributes["dimension"].value)]
    lo = np.zeros((site.devices, 0), np.int64)
    return [site.result([constant_piece(site.terms, "i32", size, (lo, lo, np.ones(site.devices, bool)))])]


def iota(site: Site) -> list[Content]:
    shape, element = type_of(site.op.results[0])
    column = np.zeros(len(shape), np.int64)
    column[int(site.op.attributes["iota_dimension"].value)] = 1
    piece = site.walk.everywhere(site.terms.position, np.zeros((site.devices, 1), np.int64), shape)
    piece.a[0] = column
    if is_integer(element) and element != "i1":
        if max(shape, default=0) - 1 > _most(element):
            raise Unknown("it counts beyond its type")
        return [site.result([piece])]
    key: Key = ("convert", element, "integer")
    return [site.result([combine(site.terms, key, [piece], (piece.lo, piece.hi, piece.on))] if 0 not in shape else [])]


def _most(element: str) -> int:
    return limits(element)[1]


def partition_id(site: Site) -> list[Content]:
    if site.devices == 1:
        raise Unknown("the whole program asks which device it is")
    devices = np.arange(site.devices)
    box = np.zeros((site.devices, 0), np.int64), np.zeros((site.devices, 0), np.int64), np.ones(site.devices, bool)
    piece = numbers_piece(site.terms, "ui32", np.zeros(0, np.int64), devices, box)
    return [site.result([piece])]


def replica_id(site: Site) -> list[Content]:
    box = np.zeros((site.devices, 0), np.int64), np.zeros((site.devices, 0), np.int64), np.ones(site.devices, bool)
    return [site.result([constant_piece(site.terms, "ui32", 0, box)])]


RULES: dict[str, Rule] = {
    **{f"stablehlo.{name}": elementwise for name in (*UNARY, *BINARY, "clamp")},
    **{f"chlo.{name}": elementwise for name in CHLO},
    **{f"chlo.broadcast_{name}": stretched for name in STRETCHED},
    "stablehlo.get_dimension_size": dimension_size,
    "stablehlo.convert": convert,
    "stablehlo.bitcast_convert": bitcast,
    "stablehlo.compare": compare,
    "stablehlo.constant": constant,
    "stablehlo.iota": iota,
    "stablehlo.partition_id": partition_id,
    "stablehlo.replica_id": replica_id,
}
