"""The arrays of a redistribution problem: what each device holds before, and what it must hold after.

Tiles are slices of the whole array by the arithmetic of ``Side.held``. Elements past the end of the array, and those of
a device that holds none of it, are rubbish before and are not looked at after.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.element_types import ELEMENT_TYPES
from tools.prove.law import Broken, hold
from tools.prove.redistribution_problems import Problem

Array = np.ndarray[Any, Any]

JOINS = {"sum": np.add, "max": np.maximum, "min": np.minimum}

ELEMENTS = tuple(row.mlir for row in ELEMENT_TYPES if row.dtype is not None)  # all that there are arrays of


def joined(problem: Problem, rng: np.random.Generator, dtype: Any) -> tuple[list[Array], Array]:
    """The whole arrays that the source holds tiles of, one for each summand, and what they make, exact in any type."""
    count = max(problem.source.summands(problem.devices)) + 1
    if count == 1:
        whole = contents(problem.shape, dtype, rng)
        return [whole], whole
    if np.dtype(dtype).itemsize > 1:
        signed = np.dtype(dtype).kind != "u"
        parts = [rng.integers(-4 if signed else 0, 5, problem.shape) for _ in range(count)]
    elif problem.source.reduction == "sum":  # one at most of a place, so that narrow types hold the sum
        total = rng.integers(0, 2, problem.shape)
        owner = rng.integers(0, count, problem.shape)
        parts = [np.where(owner == k, total, 0) for k in range(count)]
    else:
        parts = [rng.integers(0, 2, problem.shape) for _ in range(count)]
    whole = JOINS[problem.source.reduction].reduce(parts)
    return [part.astype(dtype) for part in parts], whole.astype(dtype)


def contents(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Array:
    """Elements that differ where the type can tell that many apart: any bits at all."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if kind.itemsize == 1 and few(kind):
        return rng.integers(0, 2, shape).astype(np.int8).astype(kind)
    size = math.prod(shape)
    if kind.kind in "iu" and kind.itemsize >= 4:
        return np.arange(1, size + 1).astype(kind).reshape(shape)
    found: Array = rng.integers(0, 256, size * kind.itemsize, dtype=np.uint8).view(kind).reshape(shape)
    with np.errstate(invalid="ignore"):
        number = found == found
    return np.where(number, found, np.ones((), kind)).astype(kind)  # which NaN a NaN is may change on the way


def few(kind: np.dtype[Any]) -> bool:
    """Whether elements of the type are less than a byte, whatever NumPy stores."""
    return re.search(r"int[24]|float4", kind.name) is not None


def before(problem: Problem, parts: Sequence[Array], rubbish: Any) -> list[Array]:
    """The local array of each device."""
    tile = problem.source.tile(problem.shape)
    arrays = []
    places = problem.source.held(problem.shape, problem.devices)
    for where, summand in zip(places, problem.source.summands(problem.devices), strict=True):
        local = np.full(tile, rubbish, parts[0].dtype)
        if where is not None:
            part = parts[summand][where]
            local[tuple(map(slice, part.shape))] = part
        arrays.append(local)
    return arrays


def expect(problem: Problem, whole: Array, found: Sequence[Array], who: str) -> None:
    """Every element of every target tile is that of the whole array; partial values make it."""
    target = problem.target
    tile, places = target.tile(problem.shape), target.held(problem.shape, problem.devices)
    summands = target.summands(problem.devices)
    totals: dict[int, tuple[Array, Array]] = {}  # by summand: its elements, and which of them are known
    for d, (where, got) in enumerate(zip(places, found, strict=True)):
        if where is None:
            continue
        hold(got.shape == tile, f"{who}: device {d} ends with an array of {got.shape}, not {tile}")
        hold(got.dtype == whole.dtype, f"{who}: device {d} ends with {got.dtype}, not {whole.dtype}")
        want = whole[where]
        got = got[tuple(map(slice, want.shape))]
        if target.unreduced:
            total, known = totals.setdefault(summands[d], (np.zeros_like(whole), np.zeros(whole.shape, bool)))
            alike = ~known[where] | (total[where] == got)
            hold(bool(alike.all()), f"{who}: copies of a partial sum differ on device {d}")
            total[where], known[where] = got, True
        elif not same(got, want):
            at = tuple(np.argwhere(np.asarray(got != want))[0].tolist())
            raise Broken(f"{who}: device {d} ends with {got[at]} at {list(at)} of its tile, not {want[at]}")
    if target.unreduced:
        wide = np.complex128 if whole.dtype.kind == "c" else np.float64
        total = JOINS[target.reduction].reduce([part.astype(wide) for part, _ in totals.values()])
        hold(bool((total == whole.astype(wide)).all()), f"{who}: the partial values that are kept make another whole")


def same(got: Array, want: Array) -> bool:
    """Bit for bit where the type fills its bytes."""
    if few(want.dtype):
        return bool((got == want).all())
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()
