"""Read the elements of constants, and find the constants that are identities of reductions.

Elements are NumPy numbers if NumPy has their type, and text otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.ir.tensors import splat_text
from shardpass.proving.relations.laws import NEUTRAL, ZERO, Law
from shardpass.proving.relations.reducers import has_negative_zero
from shardpass.proving.relations.terms import Term, Terms

_TRUTH = {"true": True, "false": False}
_FLOATS = {"f32": np.float32, "f64": np.float64}
_FOLDED = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negate": np.negative,
    "sqrt": np.sqrt,
}  # each rounded once


def constant_term(terms: Terms, op: Any, shape: Sequence[int], element: str, dtype: Any) -> tuple[int, bool]:
    """Return the term of a ``stablehlo.constant``, and whether its rank is 0 because all elements are equal."""
    text = splat_text(op)
    if text is not None:
        return terms.constant(element, splat_value(text, element, dtype)), True
    array = elements_of(op, shape, dtype)
    if array is None:
        return terms.make(Term(("constant of text", element, _written(op)), (), len(shape))), False
    if element == "i1":
        array = array.astype(np.bool_)
    return terms.constant(element, array), False


def elements_of(op: Any, shape: Sequence[int], dtype: Any) -> Any:
    """Return the elements of a ``stablehlo.constant`` as an array; None where NumPy has no such elements.

    The bindings cannot hand out complex elements, nor integers of less than 8 bits (jaxlib 0.10.2), which are read from
    the text; the latter become int64.
    """
    try:
        return np.ascontiguousarray(np.array(op.attributes["value"])).reshape(tuple(shape))
    except ValueError:
        return None
    except TypeError:
        if dtype is None or np.dtype(dtype).kind not in "cV":
            return None
    text = _written(op)
    if text.startswith('"0x'):
        if np.dtype(dtype).kind == "V":
            return None
        return np.frombuffer(bytes.fromhex(text[3:].rstrip('"')), dtype).reshape(tuple(shape))
    words = re.findall(r"[^\s\[\](),]+", text)
    if np.dtype(dtype).kind == "V":
        whole = all(re.fullmatch("-?[0-9]+", word) for word in words)
        return np.array([int(word) for word in words], np.int64).reshape(tuple(shape)) if whole else None
    part = {"complex64": "f32", "complex128": "f64"}[np.dtype(dtype).name]
    numbers = [_number(word, part) for word in words]
    if any(number is None for number in numbers):
        return None
    return np.array(numbers, _FLOATS[part]).view(dtype).reshape(tuple(shape))


def _written(op: Any) -> str:
    """Return the elements of a constant as MLIR writes them."""
    text: str = op.get_asm(use_local_scope=True)
    return text[text.index("dense") :].split("<", 1)[1].rpartition("> :")[0]


def _number(text: str, element: str) -> Any:
    """Return the number of type f32 or f64 that MLIR writes; None for text that is no number."""
    try:
        if text.startswith("0x"):
            return np.frombuffer(bytes.fromhex(text[2:].zfill(2 * np.dtype(_FLOATS[element]).itemsize))[::-1],
                                 _FLOATS[element])[0]  # fmt: skip
        return _FLOATS[element](float(text))
    except ValueError:
        return None


def integer_value(number: int, element: str) -> Any:
    """Return a number of an integer type as the one scalar that represents it in the table of terms."""
    if element == "i1":
        return np.array(bool(number))
    return np.array(number, np.uint64 if element == "ui64" else np.int64)


def splat_value(text: str, element: str, dtype: Any) -> Any:
    """Parse a splat constant: a number for integers and booleans, else a text that tells 0 from -0 and NaNs apart."""
    if text in _TRUTH:
        return np.array(_TRUTH[text])
    number = finite(text, element)
    if number is not None:
        return np.array(repr(float(number)))
    try:
        return integer_value(int(text, 0), element) if element.lstrip("u").startswith("i") else np.array(text)
    except (ValueError, OverflowError):
        return np.array(text)


def finite(text: str, element: str) -> Any:
    """Return the finite number of type f32 or f64 that MLIR writes, in decimals or as bits; None for others."""
    number = _number(text, element) if element in _FLOATS else None
    return number if number is not None and np.isfinite(number) else None


def folded(name: str, element: str, values: Sequence[Any]) -> Any:
    """Return the op ``name`` of constants of type f32 or f64, rounded once, as text; None where it is not finite."""
    if name not in _FOLDED or any(value is None for value in values):
        return None
    numbers = [finite(str(value), element) for value in values]
    if any(number is None for number in numbers):
        return None
    with np.errstate(all="ignore"):
        result = _FOLDED[name](*numbers)
    least = np.finfo(result.dtype).tiny
    vanishes = abs(result) < least and name in ("multiply", "divide") and numbers[0] != 0
    vanishes |= name == "sqrt" and 0 < abs(numbers[0]) < least
    if not np.isfinite(result) or vanishes:
        return None
    return np.array(repr(float(result)))


def neutral(value: Any, reducer: str, element: str, dtype: Any) -> Law | None:
    """Return the law that makes ``value`` the identity of ``reducer``; None if there is no such law."""
    if value is None:
        return None
    if value.dtype.kind in "iub":
        least, most = _bounds(element, dtype)
        known = {"add": 0, "multiply": 1, "maximum": least, "minimum": most, "or": 0, "and": most, "xor": 0}
        if element.lstrip("u").startswith("i") and element.startswith("i") and reducer == "and" and element != "i1":
            known["and"] = -1
        return NEUTRAL if reducer in known and int(value) == known[reducer] else None
    text = str(value)
    if reducer in ("maximum", "minimum"):
        return NEUTRAL if text in _infinities(dtype, reducer == "maximum") else None
    try:
        parts = [float(part) for part in text.strip("()").split(",")]
    except ValueError:
        return None
    if reducer == "add" and not any(parts):
        exact = all(np.signbit(part) for part in parts) or not has_negative_zero(element)
        return NEUTRAL if exact else ZERO
    return NEUTRAL if reducer == "multiply" and parts == [1.0] else None


def is_neutral(value: Any, reducer: str, element: str, dtype: Any) -> bool:
    """Return whether ``value`` is an identity of ``reducer``, possibly except for -0."""
    return neutral(value, reducer, element, dtype) is not None


def _bounds(element: str, dtype: Any) -> tuple[int, int]:
    if element == "i1":
        return 0, 1
    bits = int(element.lstrip("ui"))
    return (0, 2**bits - 1) if element.startswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _infinities(dtype: Any, negative: bool) -> tuple[str, ...]:
    if dtype is None or np.dtype(dtype).kind == "c":
        return ()
    value = np.array(-np.inf if negative else np.inf).astype(dtype)
    if not np.isinf(value.astype(np.float64)):  # finite in some types of 8 bits, a NaN in others
        return ()
    bits = value.tobytes()[::-1].hex().upper()
    return (f"0x{bits}", "-inf" if negative else "inf")
