"""The elements of constants: numbers where NumPy has them, text elsewhere; and which constants change no reduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.ir.tensors import splat_text
from shardpass.proving.relations.terms import Term, Terms

_TRUTH = {"true": True, "false": False}


def constant_term(terms: Terms, op: Any, shape: Sequence[int], element: str, dtype: Any) -> tuple[int, bool]:
    """The term of a ``stablehlo.constant``, and whether it has rank 0: all of its elements are one."""
    text = splat_text(op)
    if text is not None:
        return terms.constant(element, splat_value(text, element, dtype)), True
    value = op.attributes["value"]
    try:
        array = np.ascontiguousarray(np.array(value)).reshape(shape)
    except (TypeError, ValueError):
        return terms.make(Term(("constant of text", element, str(value)), (), len(shape))), False
    if element == "i1":
        array = array.astype(np.bool_)
    return terms.constant(element, array), False


def splat_value(text: str, element: str, dtype: Any) -> Any:
    """Of integers and booleans a number; of others the text, in which 0 and -0, or two NaNs, differ."""
    if text in _TRUTH:
        return np.array(_TRUTH[text])
    try:
        return np.array(int(text, 0)).astype(dtype) if element.lstrip("u").startswith("i") else np.array(text)
    except (ValueError, OverflowError):
        return np.array(text)


def is_identity(value: Any, reducer: str, element: str, dtype: Any) -> bool:
    """Whether ``reducer`` of ``value`` and any other element is the other."""
    if value is None:
        return False
    if value.dtype.kind in "iub":
        least, most = _bounds(element, dtype)
        known = {"add": 0, "multiply": 1, "maximum": least, "minimum": most, "or": 0, "and": most, "xor": 0}
        if element.lstrip("u").startswith("i") and element.startswith("i") and reducer == "and" and element != "i1":
            known["and"] = -1
        return reducer in known and int(value) == known[reducer]
    text = str(value)
    if reducer == "maximum":
        return text in _infinities(dtype, True)
    if reducer == "minimum":
        return text in _infinities(dtype, False)
    try:
        number = float(text)
    except ValueError:
        return text in ("(0.000000e+00,0.000000e+00)", "(0.000000e+00, 0.000000e+00)") and reducer == "add"
    return number == {"add": 0.0, "multiply": 1.0}.get(reducer)


def _bounds(element: str, dtype: Any) -> tuple[int, int]:
    if element == "i1":
        return 0, 1
    bits = int(element.lstrip("ui"))
    return (0, 2**bits - 1) if element.startswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _infinities(dtype: Any, negative: bool) -> tuple[str, ...]:
    if dtype is None or np.dtype(dtype).kind == "c":
        return ()
    value = np.array(-np.inf if negative else np.inf).astype(dtype)
    if np.isfinite(value.astype(np.float64)):
        return ()
    bits = value.tobytes()[::-1].hex().upper()
    return (f"0x{bits}", "-inf" if negative else "inf")
