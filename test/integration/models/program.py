"""A real program: a JAX function with its mesh, shardings and arguments, and what else knows its results.

A family's file registers builders::

    @program(mesh=(4, 2), tolerance=1e-4)
    def mlp_forward(pin: Pin) -> Case: ...

The builder runs when the program is wanted: it may import a library, and ``pin(x, "x", None)`` constrains a value
to a PartitionSpec of the program's mesh (axes x, y, z), as ``jax.lax.with_sharding_constraint`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
AXES = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class Pin:
    """Constrains values to shardings of one mesh: ``pin(x, "x", None)``."""

    mesh: Mesh

    def __call__(self, value: Any, *spec: Any) -> Any:
        return jax.lax.with_sharding_constraint(value, NamedSharding(self.mesh, P(*spec)))


@dataclass(frozen=True, slots=True)
class Case:
    """``arguments``, ``specs`` and ``out_specs`` are pytrees; a spec may stand for a subtree, None leaves it free.

    ``oracle``: the results in NumPy, from the same arguments; None where a rewriting would only repeat the program.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    specs: tuple[Any, ...]
    out_specs: Any = None
    oracle: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Program:
    """``tolerance``: greatest difference of a float result, relative to its greatest magnitude."""

    name: str
    family: str
    mesh: tuple[int, ...]
    tolerance: float
    needs: str | None  # a library without which it cannot be built
    summary: str
    build: Callable[[Pin], Case]

    @property
    def devices(self) -> int:
        return prod(self.mesh)

    @property
    def available(self) -> bool:
        return self.needs is None or find_spec(self.needs) is not None

    def lower(self, platform: str = "cpu") -> Lowered:
        """The program as JAX lowers it for ``platform``; needs that many CPU devices."""
        devices = np.array(jax.devices("cpu")[: self.devices]).reshape(self.mesh)
        mesh = Mesh(devices, AXES[: len(self.mesh)], axis_types=(AxisType.Auto,) * len(self.mesh))
        case = self.build(Pin(mesh))
        named = [_named(mesh, spec) for spec in case.specs]
        jitted = jax.jit(
            case.function, in_shardings=tuple(named), out_shardings=_named(mesh, case.out_specs), keep_unused=True
        )
        shapes = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype), case.arguments)
        return Lowered(jitted.trace(*shapes).lower(lowering_platforms=(platform,)), case)


@dataclass(frozen=True, slots=True)
class Lowered:
    """``lowered`` is JAX's; arguments and results of the executable forms are flat lists of arrays."""

    lowered: Any
    case: Case

    @property
    def text(self) -> str:
        found: str = self.lowered.as_text(debug_info=True)
        return found

    @property
    def arguments(self) -> list[Any]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.case.arguments)]

    def oracle(self) -> list[Any] | None:
        """What NumPy says the results are."""
        if self.case.oracle is None:
            return None
        return list(jax.tree.leaves(self.case.oracle(*self.case.arguments)))


def _named(mesh: Mesh, spec: Any) -> Any:
    def leaf(value: Any) -> bool:
        return value is None or isinstance(value, PartitionSpec)

    return jax.tree.map(lambda s: None if s is None else NamedSharding(mesh, s), spec, is_leaf=leaf)


PROGRAMS: dict[str, Program] = {}


def program(
    *, mesh: Sequence[int], tolerance: float = 1e-5, needs: str | None = None
) -> Callable[[Callable[[Pin], Case]], Callable[[Pin], Case]]:
    """Registers a builder under its function's name; its docstring's first line is the summary."""

    def register(build: Callable[[Pin], Case]) -> Callable[[Pin], Case]:
        name = build.__name__
        assert name not in PROGRAMS, name
        family = build.__module__.rsplit(".", 1)[-1]
        summary = (build.__doc__ or "").strip().split("\n")[0].rstrip(".")
        PROGRAMS[name] = Program(name, family, tuple(mesh), tolerance, needs, summary, build)
        return build

    return register


class Draw:
    """Arguments: the same numbers on every machine and version of JAX."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        return (scale * self.rng.standard_normal(shape)).astype(np.float32)

    def weight(self, *shape: int, fan: int | None = None) -> Any:
        """Scaled so that what it multiplies keeps its size; ``fan``: how many terms a sum has."""
        return self.normal(*shape, scale=(fan or shape[0]) ** -0.5)

    def uniform(self, *shape: int) -> Any:
        return self.rng.random(shape).astype(np.float32)

    def integers(self, high: int, *shape: int) -> Any:
        return self.rng.integers(0, high, shape).astype(np.int32)
