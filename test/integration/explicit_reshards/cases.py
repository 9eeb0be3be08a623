"""What the programs share: a mesh of explicit axes, arrays on it, and the table of programs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

P = PartitionSpec
AXES = {"data": 4, "model": 2}
MARK = "# wasteful"


def mesh() -> Any:
    return jax.make_mesh(
        tuple(AXES.values()), tuple(AXES), axis_types=(AxisType.Explicit,) * len(AXES), devices=jax.devices()[:8]
    )


@dataclass(frozen=True)
class Array:
    """An argument: its shape, its spec and its type."""

    shape: tuple[int, ...]
    spec: PartitionSpec
    dtype: Any = np.float32

    def on(self, mesh: Any) -> Any:
        return jax.ShapeDtypeStruct(self.shape, self.dtype, sharding=NamedSharding(mesh, self.spec))


def rows(*shape: int, dtype: Any = np.float32) -> Array:
    """A batch: its first dimension over the axis of data."""
    return Array(shape, P("data", *(None,) * (len(shape) - 1)), dtype)


def columns(*shape: int) -> Array:
    """A weight whose last dimension the axis of models splits."""
    return Array(shape, P(*(None,) * (len(shape) - 1), "model"))


def inner(*shape: int) -> Array:
    """A weight whose first dimension the axis of models splits."""
    return Array(shape, P("model", *(None,) * (len(shape) - 1)))


def whole(*shape: int) -> Array:
    return Array(shape, P(*(None,) * len(shape)))


@dataclass(frozen=True)
class Program:
    """``make``: the function and its arguments. ``source``: which functions' lines are marked."""

    name: str
    make: Callable[[Any], tuple[Any, tuple[Any, ...]]]
    file: str
    lines: tuple[int, ...]


PROGRAMS: dict[str, Program] = {}


def program(*arguments: Array, of: Any = None) -> Callable[[Any], Any]:
    """Registers a function of arrays under its name. ``of``: a class or function that has the marked lines too."""

    def register(function: Any) -> Any:
        def make(over: Any) -> tuple[Any, tuple[Any, ...]]:
            return function, tuple(one.on(over) for one in arguments)

        known(function.__name__, make, function, *(() if of is None else of if isinstance(of, tuple) else (of,)))
        return function

    return register


def known(name: str, make: Any, *marked: Any) -> None:
    lines = []
    for one in marked:
        text, first = inspect.getsourcelines(inspect.unwrap(one))
        lines += [first + number for number, row in enumerate(text) if row.rstrip().endswith(MARK)]
    assert lines, name
    file = inspect.getsourcefile(inspect.unwrap(marked[0])) or ""
    PROGRAMS[name] = Program(name, make, file, tuple(lines))


def lines_of(file: str, line: int) -> range:
    """The lines of the statement at ``line``: a call may start elsewhere than its reshard."""
    with open(file) as text:
        tree = ast.parse(text.read())
    spans = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.Return | ast.Expr) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return min(spans, key=len, default=range(line, line + 1))
