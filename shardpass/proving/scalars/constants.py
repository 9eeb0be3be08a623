"""Constants as scalar terms: integers by their value, others by their bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.ir.tensors import splat_text
from shardpass.proving.relations.elements import _bounds, _infinities, elements_of
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Bools, Ints
from shardpass.proving.relations.reducers import has_negative_zero
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.table import Scalars

_TRUTH = {"true": True, "false": False}


def constant(table: Scalars, op: Any, shape: Sequence[int], element: str) -> Ints:
    """Return the numbers of a ``stablehlo.constant``'s elements."""
    text = splat_text(op)
    if text is not None:
        return np.broadcast_to(np.int64(splat(table, text, element)), tuple(shape)).copy()
    array = elements_of(op, shape, element_type(element).dtype)
    if array is None:
        raise Unknown("its elements are of a type that NumPy has not")
    return of_array(table, array, element)


def of_array(table: Scalars, array: Any, element: str) -> Ints:
    if element == "i1":
        return table.integers(array.astype(bool).astype(np.int64))
    if is_integer(element):
        if element == "ui64" and array.size and array.max() > 2**63 - 1:
            raise Unknown("its elements are greater than 2**63")
        return table.integers(array.astype(np.int64))
    array = np.ascontiguousarray(array)
    count = array.itemsize
    flat = [array.tobytes()[i : i + count] for i in range(0, array.nbytes, count)]
    return np.array([table.one(("constant", element, bits)) for bits in flat], np.int64).reshape(array.shape)


def splat(table: Scalars, text: str, element: str) -> int:
    if text in _TRUTH:
        return table.integer(int(_TRUTH[text]))
    if is_integer(element):
        value = int(text, 0)
        if value > 2**63 - 1:
            raise Unknown("its elements are greater than 2**63")
        return table.integer(value)
    dtype = element_type(element).dtype
    number = _number(text, dtype)
    if number is None:
        return table.one(("constant of text", element, text))
    return int(of_array(table, number.reshape(1), element)[0])


def _number(text: str, dtype: Any) -> Any:
    """Parse the number that MLIR writes as ``text``: decimal, bits in hexadecimal, or a pair of these."""
    try:
        if text.startswith("("):
            parts = [float(x) for x in text.strip("()").split(",")]
            return np.array(complex(*parts), dtype)
        if text.startswith("0x"):
            size = np.dtype(dtype).itemsize
            return np.frombuffer(bytes.fromhex(text[2:].zfill(2 * size))[::-1], dtype)[:1].reshape(())
        return np.array(float(text)).astype(dtype)
    except (ValueError, TypeError, OverflowError):
        return None


def whole_number(table: Scalars, value: int, element: str) -> int | None:
    """Return the integer ``value`` as a float; None where that would round."""
    array = np.array([value]).astype(element_type(element).dtype)
    if abs(value) > 2**53 or int(array.real.astype(np.float64)[0]) != value:
        return None
    return int(of_array(table, array, element)[0])


def identity(table: Scalars, name: str, element: str) -> int:
    """Return the element that changes no reduction by ``name``. Raises Unknown where there is none."""
    known = identities(table, name, element)
    if not len(known):
        raise Unknown(f"{name} of {element} has no identity")
    return int(known[0])


def identities(table: Scalars, name: str, element: str) -> Ints:
    """Return the elements that change no reduction, which is one for most types: -0 of sums of floats."""
    known = table.constants.get((name, element))
    if known is None:
        known = table.constants[name, element] = _identities(table, name, element)
    return known


def _identities(table: Scalars, name: str, element: str) -> Ints:
    if is_integer(element):
        low, high = (0, 1) if element == "i1" else _bounds(element, None)
        ones = high if low == 0 else -1
        known = {"add": 0, "multiply": 1, "maximum": low, "minimum": high, "or": 0, "and": ones, "xor": 0}
        value = known.get(name)
        return np.array([] if value is None or value > 2**63 - 1 else [table.integer(value)], np.int64)
    dtype = element_type(element).dtype
    if dtype is None:
        return np.array([], np.int64)
    values: list[Any] = {"add": [-0.0], "multiply": [1.0]}.get(name, [])
    if element.startswith("complex"):
        values = [complex(-0.0, -0.0)] if name == "add" else []
    if name in ("maximum", "minimum") and _infinities(dtype, True):
        values = [-np.inf if name == "maximum" else np.inf]
    return _numbers(table, values, element)


def zero(table: Scalars, element: str) -> int:
    """Return the number 0."""
    if is_integer(element):
        return table.integer(0)
    (number, *_) = _numbers(table, [0.0], element).tolist() or [None]
    if number is None:
        raise Unknown(f"{element} has no 0")
    return int(number)


def zeros(table: Scalars, element: str) -> Ints:
    """Return the elements that change no sum but one that is -0; to add them twice is to add them once."""
    known = table.constants.get(("zeros", element))
    if known is None:
        parts = (0.0, -0.0)
        pairs = [complex(real, imaginary) for real in parts for imaginary in parts][:-1]
        values: list[Any] = pairs if element.startswith("complex") else [0.0]
        signed = not is_integer(element) and has_negative_zero(element)
        known = table.constants["zeros", element] = _numbers(table, values if signed else [], element)
    return known


def _numbers(table: Scalars, values: Sequence[Any], element: str) -> Ints:
    """Return ``values`` as elements of a float type, without those that the type lacks."""
    arrays = [np.array([v]).astype(element_type(element).dtype) for v in values]
    kept = [a for a, v in zip(arrays, values, strict=True) if a.dtype.kind == "c" or float(a[0]) == v]
    return np.array([int(of_array(table, a, element)[0]) for a in kept], np.int64)


def constants_of(table: Scalars, ids: Ints) -> Bools:
    """Return which of ``ids`` are constants of a float type."""
    unique, inverse = np.unique(ids, return_inverse=True)
    table.spend(ids.size)
    keys = (table.terms[number][0] for number in unique.tolist())
    known = np.array([isinstance(key, tuple) and key[0] == "constant" for key in keys], bool)
    return np.asarray(known[inverse.reshape(ids.shape)])


def product(table: Scalars, element: str, numbers: Sequence[int]) -> int | None:
    """Return the product of two constants of a float type where it is finite and exact; None for others."""
    values = [float(value) for value in _values(table, element, numbers)]
    if not values or not np.isfinite(values).all():
        return None
    x, y = values
    rounded = np.array([x * y]).astype(element_type(element).dtype)
    if not np.isfinite(rounded[0]) or Fraction(float(rounded[0])) != Fraction(x) * Fraction(y):
        return None
    return int(of_array(table, rounded, element)[0])


def rounded_once(table: Scalars, element: str, numbers: Sequence[int], op: Callable[..., Any]) -> int | None:
    """Apply ``op`` to normal numbers of type f32 or f64, where it gives one; None for others."""
    values = _values(table, element, numbers) if element in ("f32", "f64") else []
    with np.errstate(all="ignore"):
        row = np.array([*values, op(*values)]) if values else np.zeros(1)
    sizes = np.abs(row)
    if not (np.isfinite(sizes) & (sizes >= np.finfo(sizes.dtype).tiny)).all():
        return None
    return int(of_array(table, row[-1:], element)[0])


def compared_constants(table: Scalars, element: str, numbers: Sequence[int], direction: str, kind: str) -> int | None:
    """Compare two constants of a float type; None for complex numbers and in the total order."""
    values = _values(table, element, numbers)
    if "TOTAL" in kind or not values:
        return None
    x, y = map(float, values)
    return table.integer(int({"EQ": x == y, "NE": x != y, "LT": x < y, "LE": x <= y}[direction]))


def negative(table: Scalars, element: str, number: int) -> int | None:
    """Return the negative of a finite constant of a float type of 16 bits or more; None for others."""
    values = _values(table, element, [number]) if element in ("f16", "bf16", "f32", "f64") else []
    return int(of_array(table, -np.array(values), element)[0]) if values and np.isfinite(values[0]) else None


def _values(table: Scalars, element: str, numbers: Sequence[int]) -> list[Any]:
    """Return constants of a type of real floats; [] where one of ``numbers`` is another term."""
    keys = [table.terms[number][0] for number in numbers]
    if element.startswith("complex") or not all(isinstance(k, tuple) and k[:2] == ("constant", element) for k in keys):
        return []
    return [np.frombuffer(key[2], element_type(element).dtype)[0] for key in keys]
