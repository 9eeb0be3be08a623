"""Evaluate one edited expression: whether JAX can type it, its type, and its cost.

The operands are those that the probe saw in the trace that failed, arrays as their types alone. An expression that JAX
types as it is failed in its backward pass, and is tried with that.

A program costs what it does on the one machine, decided and planned as ``explain`` does.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax

from shardpass.advise.find.verify import figures_as_built, figures_of
from shardpass.advise.repair.expression import FUNCTION, PROBE, Edit, Expression
from shardpass.cost.chosen import chosen
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.context import parse_module
from shardpass.ir.machines import set_module_machine
from shardpass.pipeline.plan import plan_of
from shardpass.pipeline.run import run_in_place
from shardpass.planning.plan.task import holding
from shardpass.planning.price.clock import clock_of
from shardpass.report.findings import Figures

Values = dict[int, Any]


class Probe:
    """Record the arguments of calls in an edited program: the types of arrays, and other values unchanged."""

    def __init__(self) -> None:
        self.values: Values = {}

    def __call__(self, number: int, value: Any) -> Any:
        self.values[number] = _kept(value)
        return value

    @contextmanager
    def called(self) -> Iterator[None]:
        """Let edited programs call this probe, inside of the block."""
        setattr(builtins, PROBE, self)
        try:
            yield
        finally:
            delattr(builtins, PROBE)


@dataclass(frozen=True)
class Typed:
    """An edit with which JAX types the expression. ``types``: of its results."""

    edit: Edit
    types: tuple[str, ...]
    traced: Any


class Alone:
    """Evaluates ``expression`` by itself on operands ``values``, on the mesh of their types."""

    def __init__(self, expression: Expression, values: Values, machine: str) -> None:
        self.expression, self.machine = expression, machine
        self.arrays = {
            number: value
            for number, value in values.items()
            if number >= 0 and isinstance(value, jax.ShapeDtypeStruct) and value.sharding is not None
        }
        meshes = [one.sharding.mesh for one in self.arrays.values() if not one.sharding.mesh.empty]
        self.mesh = meshes[0] if meshes else None
        function = values.get(FUNCTION)
        inside = function is not None and of_array(function)
        self._function = "" if inside else "_function"
        self._names = {number: f"_{number}" for number in values if number >= 0}
        others = {self._names[number]: values[number] for number in values if number >= 0 and number not in self.arrays}
        self._namespace = {
            expression.file.spec_name.partition(".")[0]: jax.sharding.PartitionSpec,
            "P": jax.sharding.PartitionSpec,
            **expression.modules,
            "_function": function,
            **others,
        }
        self._backward = False
        self._backward = self.typed(Edit()) is not None

    def typed(self, edit: Edit) -> Typed | None:
        """Trace the expression with ``edit``; return None if JAX does not type it."""
        try:
            code = compile(self.expression.alone(edit, self._names, self._function), "<expression>", "eval")
            with jax.sharding.use_abstract_mesh(self.mesh):
                traced = jax.jit(self._program(code)).trace(*self.arrays.values())
        except Exception:  # whatever the user's function or JAX says of it
            return None
        return Typed(edit, tuple(one.str_short() for one in traced.jaxpr.out_avals), traced)

    def shape(self, edit: Edit) -> tuple[int, ...] | None:
        """Return the shape of the result with ``edit``; None if JAX cannot type it or it is not an array."""
        typed = self.typed(edit)
        if typed is None:
            return None
        result = typed.traced.out_info[0] if self._backward else typed.traced.out_info
        shape: tuple[int, ...] | None = getattr(result, "shape", None)
        return shape

    def price(self, one: Typed) -> float | None:
        """Return the seconds of an expression that is typed; None if it cannot be priced."""
        try:
            with jax.sharding.use_abstract_mesh(self.mesh):
                lowered = one.traced.lower(lowering_platforms=("cpu",))
        except Exception:  # as above
            return None
        made = priced(lowered.as_text(), self.machine, as_built=False)
        return None if made is None else made[1]

    def _program(self, code: Any) -> Callable[..., Any]:
        names = [self._names[number] for number in self.arrays]

        def forward(*arrays: Any) -> Any:
            return eval(code, dict(self._namespace) | dict(zip(names, arrays, strict=True)))

        def both(*arrays: Any) -> Any:
            result, back = jax.vjp(forward, *arrays)
            return result, back(result)

        return both if self._backward else forward


def _kept(value: Any) -> Any:
    if not isinstance(value, jax.Array):
        return value
    kind = jax.typeof(value)
    return jax.ShapeDtypeStruct(kind.shape, kind.dtype, sharding=kind.sharding, weak_type=kind.weak_type)


def of_array(function: Any) -> bool:
    """Return whether ``function`` is a method of an array: the expression reaches it through the array itself."""
    owner = getattr(function, "__self__", None)
    bound = (owner, *getattr(function, "args", ()))  # ``functools.partial`` binds methods of tracers
    return "_IndexUpdateRef" in type(owner).__name__ or any(isinstance(one, jax.Array) for one in bound)


def priced(text: str, machine: str, *, as_built: bool = True) -> tuple[Figures, float] | None:
    """Return the figures of a module (text) on ``machine``, and its price: the seconds, and a little for the memory.

    Types fix nearly all shardings of such programs, so shardings are propagated and not searched (effort 0).
    ``as_built``: of the program that is built, in place of its plan. None if the module cannot be partitioned.
    """
    try:
        with collect():
            module = parse_module(text)
            set_module_machine(module, machine)
            run_in_place(module, "shardpass-import, shardpass-propagate{effort=0}")
            figures = figures_as_built(module) if as_built else figures_of(plan_of(module))
    except ShardpassError:
        return None
    return figures, figures.seconds + holding(figures.memory, clock_of(chosen(machine)))
