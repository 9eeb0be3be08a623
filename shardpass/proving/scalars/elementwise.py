"""Elementwise ops on scalar terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from shardpass.ir.tensors import enum_word, ints
from shardpass.proving.relations.combine import COMPARED
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.elementwise import (
    BINARY,
    CHLO,
    STRETCHED,
    UNARY,
    is_square,
    key_of,
    order_of,
    product_key,
    turned,
)
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.choices import chosen
from shardpass.proving.scalars.constants import (
    compared_constants,
    constants_of,
    negative,
    product,
    rounded_once,
    whole_number,
)
from shardpass.proving.scalars.integers import applied, compared, converted, selected
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.rows import segments
from shardpass.proving.scalars.table import CHOICE, TERM, Scalars, distinct
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

LISTS = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")


def each(table: Scalars, columns: Sequence[Ints], rule: Callable[..., int]) -> Ints:
    """Apply ``rule`` to each different row of ``columns``."""
    flat = [np.asarray(c).ravel() for c in columns]
    if not len(flat[0]):
        return np.zeros(columns[0].shape, np.int64)
    table.spend(len(flat[0]) * len(flat))
    first, inverse = distinct(flat)
    table.spend(TERM * len(first))
    rows = np.stack([c[first] for c in flat], axis=1).tolist()
    return np.array([rule(*row) for row in rows], np.int64)[inverse].reshape(columns[0].shape)


def spread(site: ScalarSite, value: Value, shape: Sequence[int]) -> Ints:
    """Broadcast the elements of a scalar, or of a value without leading dimensions, to ``shape``."""
    front = len(shape) - value.rank
    if any(n not in (1, m) for n, m in zip(value.shape, shape[front:], strict=True)):
        return value.ids  # named dimensions say where they go
    ids = value.ids.reshape(site.devices, *([1] * front), *value.shape)
    return np.broadcast_to(ids, (site.devices, *shape))


def elementwise(site: ScalarSite) -> list[Value]:
    return _op(site, site.op.name.split(".")[-1], [spread(site, v, site.shape()) for v in site.operands])


def stretched(site: ScalarSite) -> list[Value]:
    """Relate CHLO's ops that stretch their operands."""
    name, shape = site.op.name.split(".broadcast_")[1], site.shape()
    columns = [spread(site, v, shape) for v in site.operands]
    if "broadcast_dimensions" in site.op.attributes:  # of the operand of lower rank
        dims = ints(site.op.attributes["broadcast_dimensions"])
        for k, value in enumerate(site.operands):
            if value.rank == len(dims) < len(shape):
                wide = [1] * len(shape)
                for size, dim in zip(value.shape, dims, strict=True):
                    wide[dim] = size
                columns[k] = np.broadcast_to(value.ids.reshape(site.devices, *wide), (site.devices, *shape))
    if name in ("compare", "select"):
        operands = [Value(column, v.element) for column, v in zip(columns, site.operands, strict=True)]
        return (compare if name == "compare" else select)(replace(site, operands=operands))
    return _op(site, name, columns, f"{'chlo' if name in CHLO else 'stablehlo'}.{name}")


def _op(site: ScalarSite, name: str, columns: list[Ints], as_op: str = "") -> list[Value]:
    element = site.element()
    if is_square(site.op, element):
        operand = site.operands[0].element
        return [site.result(op_of(site.table, "multiply", element, columns * 2, product_key(element), (operand,) * 2))]
    kinds = tuple(v.element for v in site.operands)
    key = (as_op, (), element, kinds) if as_op else key_of(site.op, element, kinds)
    return [site.result(op_of(site.table, name, element, columns, key, kinds))]


def op_of(table: Scalars, name: str, element: str, columns: list[Ints], key: object, kinds: Sequence[str]) -> Ints:
    if name == "clamp":
        inner = op_of(table, "maximum", element, columns[:2], key, kinds[:2])
        return op_of(table, "minimum", element, [inner, columns[2]], key, kinds[1:])
    if is_integer(element) and all(is_integer(k) for k in kinds):
        return each(table, columns, lambda *row: _integer(table, name, element, row, key))
    return _other(table, name, element, columns, key)


def _integer(table: Scalars, name: str, element: str, row: tuple[int, ...], key: object) -> int:
    result = applied(table, name, element, row)
    if result is not None:
        return result
    return int(_other(table, name, element, [np.array([n], np.int64) for n in row], key)[0])


def _other(table: Scalars, name: str, element: str, columns: list[Ints], key: object) -> Ints:
    """Sums and the like as lists; differences as sums."""
    if name == "subtract" and element != "i1":
        columns = [columns[0], negated(table, element, columns[1])]
        name = "add"
    if name == "negate":
        return negated(table, element, columns[0])
    if name in LISTS:
        result = reduced(table, name, element, np.stack(columns, axis=-1))
        return result if name != "multiply" else _with_constants(table, element, columns, result, product)
    result = table.rows(key, columns)
    op = {"divide": np.divide, "sqrt": np.sqrt}.get(name)
    return result if op is None else _with_constants(table, element, columns, result, partial(rounded_once, op=op))


def _with_constants(
    table: Scalars, element: str, columns: Sequence[Ints], result: Ints, of: Callable[..., int | None]
) -> Ints:
    """Return ``result`` of ``columns``, computed where all operands are constants."""
    operands = [np.broadcast_to(column, result.shape) for column in columns]
    known = np.logical_and.reduce([constants_of(table, x) for x in operands])
    if known.any():
        result = result.copy()
        result[known] = each(
            table,
            [*(x[known] for x in operands), result[known]],
            lambda *row: number if (number := of(table, element, row[:-1])) is not None else row[-1],
        )
    return result


def negated(table: Scalars, element: str, ids: Ints, within: bool = False) -> Ints:
    """Negate ``ids``; the negative of a sum is a sum for integers, and with ``within`` for floats too."""
    key, code = ("negated", element), table.head(("add", element))
    within = within or is_integer(element)

    def one(number: int) -> int:
        if is_integer(element):
            result = applied(table, "negate", element, (number,))
            if result is not None:
                return result
        constant = negative(table, element, number)
        if constant is not None:
            return constant
        own, inner = table.terms[number]
        if own == key:
            return int(inner[0])
        if table.head_of(number) == CHOICE:  # the choice of the negatives
            base, rows = segments(table, number)
            return chosen(table, base, [(start, one(child)) for start, child in rows])
        if within and table.head_of(number) == code:  # of a sum, the sum of the negatives
            table.spend(TERM * len(inner))
            return int(reduced(table, "add", element, np.array([[one(n) for n in inner]], np.int64))[0])
        return table.one(key, (number,))

    return each(table, [ids], one)


def select(site: ScalarSite) -> list[Value]:
    columns = [spread(site, v, site.shape()) for v in site.operands]
    return [site.result(each(site.table, columns, lambda *row: selected(site.table, *row)))]


def compare(site: ScalarSite) -> list[Value]:
    x, y = site.operands
    direction = enum_word(site.op.attributes["comparison_direction"])
    kind = order_of(site.op.attributes)
    key, columns = turned(("compare", direction, kind, x.element), [x.ids, y.ids])
    commutes = key[:2] in COMPARED
    if not is_integer(x.element):
        ordered = [np.minimum(*columns), np.maximum(*columns)] if commutes else columns
        result = site.table.rows(key, ordered)
        folds = partial(compared_constants, direction=str(key[1]), kind=str(kind))
        return [site.result(_with_constants(site.table, x.element, columns, result, folds))]

    def one(a: int, b: int) -> int:
        result = compared(site.table, key[1], x.element, a, b)
        return site.table.one(key, (min(a, b), max(a, b)) if commutes else (a, b)) if result is None else result

    return [site.result(each(site.table, columns, one))]


def convert(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    old, new = operand.element, site.element()
    return [site.result(as_type(site.table, operand.ids, old, new))]


def as_type(table: Scalars, ids: Ints, old: str, new: str) -> Ints:
    if old == new:
        return ids
    key = ("convert", new, old)

    def one(number: int) -> int:
        result = None
        if is_integer(old) and is_integer(new):
            result = converted(table, old, new, number, wraps=False)
        elif is_integer(old) and table.is_known(number) and not new.startswith("complex"):
            result = whole_number(table, table.number(number), new)
        return table.one(key, (number,)) if result is None else result

    return each(table, [ids], one)


def bitcast(site: ScalarSite) -> list[Value]:
    """Relate a bitcast: a second that undoes it gives the operand; between widths, all parts of an element count."""
    (operand,) = site.operands
    old, new, table = operand.element, site.element(), site.table
    if site.shape() == operand.shape:
        return [site.result(each(table, [operand.ids], lambda number: _bits(table, number, old, new)))]
    key = ("bits", new, old)
    if len(site.shape()) < operand.rank:
        return [site.result(table.rows(key, [operand.ids[..., k] for k in range(operand.shape[-1])]))]
    places = table.integers(np.arange(site.shape()[-1], dtype=np.int64))
    wide = np.broadcast_to(operand.ids[..., None], (site.devices, *site.shape()))
    return [site.result(table.rows(key, [wide, np.broadcast_to(places, wide.shape)]))]


def _bits(table: Scalars, number: int, old: str, new: str) -> int:
    if is_integer(old) and is_integer(new):
        result = converted(table, old, new, number, wraps=True)
        if result is not None:
            return result
    (own, inner) = table.terms[number]
    if own == ("bits", old, new):
        return int(inner[0])
    return table.one(("bits", new, old), (number,))


RULES: dict[str, ScalarRule] = {
    **{f"stablehlo.{name}": elementwise for name in (*UNARY, *BINARY, "clamp")},
    **{f"chlo.{name}": elementwise for name in CHLO},
    **{f"chlo.broadcast_{name}": stretched for name in STRETCHED},
    "stablehlo.select": select,
    "stablehlo.compare": compare,
    "stablehlo.convert": convert,
    "stablehlo.bitcast_convert": bitcast,
    "chlo._asin_acos_kernel": elementwise,
}
