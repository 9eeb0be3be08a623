"""Make random arrays for a program's arguments, reproducible by a seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardpass.runtime.partitioned_signature import Boundary
from shardpass.runtime.tiles import Array


def random_inputs(arguments: Sequence[Boundary], seed: int = 0) -> list[Array]:
    """Make floats, and parts of complex numbers, in [-1, 1]; integers in [0, 8), as far as the type reaches."""
    rng = np.random.default_rng(seed)
    return [_random(rng, boundary) for boundary in arguments]


NEAR = (-100, -9, -8, -1, 0, 1, 7, 8, 9, 100)  # to the usual sizes: wider integers than these lose bits as floats


def edge_inputs(arguments: Sequence[Boundary], seed: int = 0) -> list[list[Array]]:
    """Return inputs for two runs, with values that random numbers rarely contain.

    Floats, and the real parts of complex numbers, are negative in the first run, and at least zero in the second: small
    whole numbers, so that equal ones occur and sums are exact. Booleans are false, then true. Integers are near the
    usual sizes, on both sides of the bounds of an index; those of at most 8 bits are also the least and the greatest.
    """
    rng = np.random.default_rng([seed, 2])
    return [[_at_edges(rng, boundary, run) for boundary in arguments] for run in range(2)]


def _at_edges(rng: np.random.Generator, boundary: Boundary, run: int) -> Array:
    shape, name, bits = boundary.shape, boundary.element.mlir, boundary.element.bits
    if name == "i1":
        values: Any = np.full(shape, bool(run))
    elif name.startswith(("i", "ui")):
        least, most = (0, 2**bits - 1) if name.startswith("ui") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        numbers = [v for v in NEAR if least <= v <= most] + ([least, most] if bits <= 8 else [])
        one_sided = [v for v in numbers if (v >= 0) == bool(run)]  # of a single integer, which cannot be both
        values = rng.choice(one_sided if np.prod(shape) == 1 and one_sided else numbers, shape)
    elif name == "f8E8M0FNU":
        return _random(rng, boundary)
    else:
        values = rng.integers(0, 4, shape) if run else rng.integers(-4, 0, shape)
    return np.asarray(values).astype(boundary.dtype)


SPECIAL_RUNS = 4
SPECIAL = (np.nan, np.inf, -np.inf, -0.0)
EVERY, MOST = 64, 3  # of so many elements one is NaN; but so many at most: a max over thousands must not always be NaN


def special_inputs(arguments: Sequence[Boundary], seed: int = 0) -> list[list[Array]]:
    """Return inputs for several runs: those of ``random_inputs`` with some NaN, -0 and infinities.

    Each array of floats, or of complex numbers (their real part), has them in one of the runs. In the others it is
    ordinary, as a product of two arrays that have them is NaN nearly everywhere. Scalars stay as they are where there
    are longer arrays. Values that an element type lacks are left out; without any the list is empty.
    """
    rng = np.random.default_rng([seed, SPECIAL_RUNS])
    ordinary = random_inputs(arguments, seed)
    able = [k for k, array in enumerate(ordinary) if array.size and _specials(array.dtype)]
    able = [k for k in able if ordinary[k].size > 1] or able
    runs = [able[first::SPECIAL_RUNS] for first in range(min(SPECIAL_RUNS, len(able)))]
    return [[_with_specials(rng, array) if k in run else array for k, array in enumerate(ordinary)] for run in runs]


def _specials(dtype: np.dtype[Any]) -> list[float]:
    """List the values of SPECIAL that ``dtype`` can represent."""
    if not (dtype.kind == "c" or dtype.name.startswith(("float", "bfloat"))):
        return []
    with np.errstate(invalid="ignore"):
        kept = np.array(SPECIAL).astype(dtype).real.astype(np.float64)
    return [v for v, k in zip(SPECIAL, kept, strict=True) if repr(v) == repr(float(k))]


def _with_specials(rng: np.random.Generator, array: Array) -> Array:
    """Replace at most half of the elements of ``array`` by special values, mostly NaN and -0."""
    many = min(MOST, max(1, array.size // EVERY))
    values = _specials(array.dtype)
    values += [v for v in values if not np.isinf(v)] * (many - 1)
    places = rng.permutation(array.size)[: max(1, array.size // 2)][: len(values)]
    numbers = np.array(values[: len(places)])
    changed = array.copy()
    flat = changed.reshape(-1)
    flat[places] = (numbers + 1j * flat[places].imag if array.dtype.kind == "c" else numbers).astype(array.dtype)
    return changed


def _random(rng: np.random.Generator, boundary: Boundary) -> Array:
    shape, dtype, name = boundary.shape, boundary.dtype, boundary.element.mlir
    if name == "i1":
        values: Any = rng.integers(0, 2, shape)
    elif name.startswith(("i", "ui")):
        limit = 2 if boundary.element.bits < 4 else 8
        values = rng.integers(0, limit, shape)
    elif name.startswith("complex"):
        values = rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)
    elif name == "f8E8M0FNU":  # powers of two alone
        values = 2.0 ** rng.integers(-2, 3, shape)
    else:
        values = rng.uniform(-1, 1, shape)
    return np.asarray(values).astype(dtype)


def poison(boundary: Boundary) -> Any:
    """Return a padding value of an argument that exposes a program that reads padding."""
    name = boundary.element.mlir
    if name == "i1":
        return True
    if name.startswith("ui"):
        return 2 ** int(name[2:]) - 1
    if name.startswith("i"):
        return 2 ** (int(name[1:]) - 1) - 1
    return 1.0 if name in ("f4E2M1FN",) else np.nan
