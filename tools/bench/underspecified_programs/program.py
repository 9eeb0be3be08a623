"""A program in two forms: as a user annotates it who says little, and as an expert annotates it.

A kind's file registers builders::

    @program(mesh=DATA, tolerance=1e-4)
    def fsdp_mlp(...) -> Case: ...

Both forms run one function. Its first argument is a ``Pin``: ``pin("hidden", h)`` constrains ``h`` to what the form
says of "hidden", and returns ``h`` where the form says nothing. Each form gives PartitionSpecs for the arguments and
results, and those of the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
Axes = tuple[tuple[str, int], ...]

DATA: Axes = (("data", 8),)
DATA_MODEL: Axes = (("data", 4), ("model", 2))
DATA_FSDP_MODEL: Axes = (("data", 2), ("fsdp", 2), ("model", 2))
FORMS = ("free", "expert")


@dataclass(frozen=True, slots=True)
class Pin:
    """Constrains the values that a form names. ``used`` collects the names that the function asks for."""

    mesh: Mesh
    pins: Mapping[str, Any]
    used: set[str] = field(default_factory=set)

    def __call__(self, name: str, value: Any) -> Any:
        self.used.add(name)
        if name not in self.pins:
            return value
        return jax.lax.with_sharding_constraint(value, named(self.mesh, self.pins[name]))


@dataclass(frozen=True, slots=True)
class Annotations:
    """What one form says. Pytrees of PartitionSpecs: one may stand for a subtree, and None leaves it open."""

    specs: tuple[Any, ...]
    results: Any = None
    pins: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """``function`` takes a Pin and then ``arguments``."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    free: Annotations
    expert: Annotations

    def form(self, name: str) -> Annotations:
        return {"free": self.free, "expert": self.expert}[name]


@dataclass(frozen=True, slots=True)
class Program:
    """``tolerance``: the greatest difference of a float result, relative to its greatest magnitude."""

    name: str
    kind: str
    axes: Axes
    tolerance: float
    summary: str
    build: Callable[[], Case]

    def in_form(self, form: str) -> FormedProgram:
        return FormedProgram(self, form)


@dataclass(frozen=True, slots=True)
class Lowered:
    """``lowered`` is JAX's; ``pin`` knows which names the function asked for."""

    lowered: Any
    case: Case
    pin: Pin

    @property
    def text(self) -> str:
        found: str = self.lowered.as_text(debug_info=True)
        return found

    @property
    def arguments(self) -> list[Any]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves(self.case.arguments)]


@dataclass(frozen=True, slots=True)
class FormedProgram:
    """A program in one form, as tools/bench/peers.py measures it."""

    program: Program
    form: str

    @property
    def name(self) -> str:
        return f"{self.program.name}/{self.form}"

    @property
    def devices(self) -> int:
        return prod(self.mesh)

    @property
    def mesh(self) -> tuple[int, ...]:
        return tuple(size for _, size in self.program.axes)

    @property
    def tolerance(self) -> float:
        return self.program.tolerance

    def jitted(self) -> tuple[Any, Case, Pin]:
        """The function under jax.jit with the annotations of the form; it needs that many devices."""
        devices = np.array(jax.devices("cpu")[: self.devices]).reshape(self.mesh)
        names = tuple(name for name, _ in self.program.axes)
        mesh = Mesh(devices, names, axis_types=(AxisType.Auto,) * len(names))
        case = self.program.build()
        said = case.form(self.form)
        pin = Pin(mesh, said.pins)

        def main(*arguments: Any) -> Any:
            return case.function(pin, *arguments)

        shardings = tuple(named(mesh, spec) for spec in said.specs)
        jitted = jax.jit(main, in_shardings=shardings, out_shardings=named(mesh, said.results), keep_unused=True)
        return jitted, case, pin

    def lower(self) -> Lowered:
        """The program as JAX lowers it."""
        jitted, case, pin = self.jitted()
        return Lowered(jitted.lower(*shapes(case.arguments)), case, pin)


def shapes(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    found: tuple[Any, ...] = jax.tree.map(lambda a: jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype), arguments)
    return found


def named(mesh: Mesh, spec: Any) -> Any:
    """The same tree with NamedShardings in place of PartitionSpecs."""

    def leaf(value: Any) -> bool:
        return value is None or isinstance(value, PartitionSpec)

    return jax.tree.map(lambda s: None if s is None else NamedSharding(mesh, s), spec, is_leaf=leaf)


PROGRAMS: dict[str, Program] = {}


def register(name: str, kind: str, axes: Axes, tolerance: float, summary: str, build: Callable[[], Case]) -> None:
    """Puts one program into the table."""
    if name in PROGRAMS:
        raise ValueError(f"two programs are named {name}")
    PROGRAMS[name] = Program(name, kind, axes, tolerance, summary, build)


def program(*, mesh: Axes, tolerance: float = 1e-4) -> Callable[[Callable[[], Case]], Callable[[], Case]]:
    """Registers a builder under its function's name; the first line of its docstring is the summary."""

    def of(build: Callable[[], Case]) -> Callable[[], Case]:
        summary = (build.__doc__ or "").strip().split("\n")[0].rstrip(".")
        register(build.__name__, build.__module__.rsplit(".", 1)[-1], mesh, tolerance, summary, build)
        return build

    return of


class Draw:
    """Arguments: the same numbers on every machine and version of JAX."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        return (scale * self.rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)

    def weight(self, *shape: int, fan: int | None = None) -> Any:
        """Scaled so that what it multiplies keeps its size; ``fan``: how many terms a sum has."""
        return self.normal(*shape, scale=(fan or shape[0]) ** -0.5)

    def integers(self, high: int, *shape: int) -> Any:
        return self.rng.integers(0, high, shape).astype(np.int32)

    def weights(self, layers: int, *shape: int) -> Iterator[Any]:
        return (self.weight(*shape) for _ in range(layers))
