"""One program, two ways: partitioned for many devices, and whole on one. What every test of the partitioner needs.

The devices are XLA's virtual CPU devices (test/conftest.py makes 12). ``check_text`` takes StableHLO with shardings,
``check_jax`` a JAX function with PartitionSpecs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

import shardpass
from shardpass.diagnostics import Diagnostic, collect
from shardpass.ir.collectives import CollectiveUse, collectives
from shardpass.ir.context import parse_module
from shardpass.runtime import compile_single, interpret

TOLERANCE = {
    "float64": 1e-12,
    "float32": 1e-5,
    "bfloat16": 2e-2,
    "float16": 2e-3,
    "complex64": 1e-5,
    "complex128": 1e-12,
}


@dataclass(frozen=True)
class Outcome:
    """What a check saw: the partitioned module, its collectives, and the diagnostics of the pipeline."""

    module: Any
    collectives: list[CollectiveUse]
    diagnostics: list[Diagnostic]

    @property
    def kinds(self) -> list[str]:
        return sorted(use.kind for use in self.collectives)


def draw(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Small whole numbers, so that sums are exact in any order and products stay small."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    values = rng.integers(0 if dtype.kind == "u" else -3, 4, shape)
    if dtype.kind == "c":
        return (values + 1j * rng.integers(-3, 4, shape)).astype(dtype)
    return values.astype(dtype)


def assert_same(found: Any, expected: Any, what: str) -> None:
    """Integers equal; floats within the type's tolerance of the greatest magnitude; NaN where NaN is due."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    assert found.dtype == expected.dtype, f"{what}: {found.dtype}, not {expected.dtype}"
    tolerance = TOLERANCE.get(str(expected.dtype))
    if tolerance is None:
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), expected.astype(wide)
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=what)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(a[~finite & ~np.isnan(b)], b[~finite & ~np.isnan(b)], err_msg=what)
    scale = max(1.0, float(np.abs(b[finite]).max(initial=0.0)))
    np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=tolerance * scale, err_msg=what)


def check_text(
    text: str,
    arguments: Sequence[Any] | None = None,
    *,
    seed: int = 0,
    interpreter: bool = False,
    pipeline: str = "partition",
) -> Outcome:
    """Partitions ``text``, runs it, and compares every result with the whole program on one device."""
    with collect() as found:
        module = shardpass.run_pipeline(text, pipeline)
    executable = shardpass.compile(module)
    if arguments is None:
        rng = np.random.default_rng(seed)
        arguments = [draw(rng, b.shape, b.dtype) for b in executable.signature.arguments]
    expected = compile_single(parse_module(text))(*arguments)
    for index, (one, other) in enumerate(zip(executable(*arguments), expected, strict=True)):
        assert_same(one, other, f"result {index} on XLA")
    if interpreter:
        for index, (one, other) in enumerate(zip(interpret(module, *arguments), expected, strict=True)):
            assert_same(one, other, f"result {index} on the reference interpreter")
    return Outcome(module, collectives(module), found)


def check_jax(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    specs: Sequence[Any],
    mesh: Sequence[int] = (4, 2),
    out_specs: Any = None,
    **options: Any,
) -> Outcome:
    """As ``check_text`` for a JAX function: ``arguments`` are arrays, ``specs`` their PartitionSpecs (axes x, y, z).

    ``out_specs``: a PartitionSpec, or one for each result; None leaves results free.
    """
    import jax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

    names = ("x", "y", "z")[: len(mesh)]
    devices = np.array(jax.devices("cpu")[: prod(mesh)]).reshape(mesh)
    grid = Mesh(devices, names, axis_types=(AxisType.Auto,) * len(mesh))

    def named(spec: Any) -> Any:
        return jax.tree.map(
            lambda s: None if s is None else NamedSharding(grid, s),
            spec,
            is_leaf=lambda s: s is None or isinstance(s, PartitionSpec),
        )

    jitted = jax.jit(function, in_shardings=tuple(map(named, specs)), out_shardings=named(out_specs))
    shapes = [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in arguments]
    return check_text(jitted.lower(*shapes).as_text(), arguments, **options)
