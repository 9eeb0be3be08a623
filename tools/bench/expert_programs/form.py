"""A program as an expert annotates it, at the sizes at which people run it, with the arithmetic of its published plan.

A form is a frozen dataclass whose fields are its sizes; the defaults are the real ones, and a test makes small ones. No
form is ever executed: arguments are shapes and meshes are abstract, so that JAX lowers a program for 4,096 devices on
any machine.

The formula of a plan states bytes that one device receives, in the terms of its source. Formulas are written out here,
apart from those of ``shardpass.cost``, to which they are a witness.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding

from tools.bench.underspecified_programs.program import Axes, P, named

BF16, F32 = 2, 4  # bytes of an element
__all__ = ["BF16", "F32", "Annotated", "Axes", "Constrain", "Form", "Formula", "P", "array", "lowered"]

Constrain = Callable[..., Any]  # value, then the entries of a PartitionSpec -> the value with that constraint


@dataclass(frozen=True, slots=True)
class Formula:
    """What the published plan receives.

    ``bytes``: of one device; of ``axis`` alone, where one is named. ``collectives``: where the source counts them.
    """

    bytes: float
    collectives: int | None = None
    axis: str = ""


@dataclass(frozen=True, slots=True)
class Annotated:
    """``function`` of ``arguments`` (trees of shapes) with PartitionSpecs for these and for the results."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    specs: tuple[Any, ...]
    results: Any


class Form(ABC):
    """``waits``: the plan adds partial sums of several products before it completes them."""

    source: ClassVar[str]
    waits: ClassVar[bool] = False

    @property
    @abstractmethod
    def axes(self) -> Axes:
        """The mesh: names and sizes, major to minor."""

    @abstractmethod
    def formula(self) -> Formula | None:
        """None where no plan was published."""

    @abstractmethod
    def text(self, platform: str = "cpu") -> str:
        """StableHLO for ``platform``."""

    def count(self, *names: str) -> int:
        """Devices along the axes ``names``."""
        return prod(size for name, size in self.axes if name in names)


class JaxForm(Form):
    """A form that is written in JAX."""

    @abstractmethod
    def program(self, constrain: Constrain) -> Annotated:
        """The program with its annotations."""

    def text(self, platform: str = "cpu") -> str:
        """StableHLO as JAX lowers the program."""
        names, sizes = zip(*self.axes, strict=True)
        mesh = AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(names))

        def constrain(value: Any, *spec: Any) -> Any:
            return jax.lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))

        made = self.program(constrain)
        specs = tuple(named(mesh, spec) for spec in made.specs)
        jitted = jax.jit(made.function, in_shardings=specs, out_shardings=named(mesh, made.results), keep_unused=True)
        text: str = jitted.trace(*made.arguments).lower(lowering_platforms=(platform,)).as_text(debug_info=True)
        return text


@lru_cache(maxsize=64)
def lowered(form: Form) -> str:
    """The text of a form, made once."""
    return form.text()


def array(*shape: int, dtype: Any = jnp.bfloat16) -> Any:
    """An argument: its shape, and no values."""
    return jax.ShapeDtypeStruct(shape, dtype)


# ---------------------------------------------------------------- bytes that a device receives, n devices in a group


def gathered(whole: float, n: int) -> float:
    """By an all_gather whose result is ``whole``, or a reduce_scatter whose operand is."""
    return whole * (n - 1) / n


def summed(whole: float, n: int) -> float:
    """By an all_reduce of ``whole``."""
    return 2 * gathered(whole, n)


def exchanged(tile: float, n: int) -> float:
    """By an all_to_all of a ``tile``."""
    return tile * (n - 1) / n
