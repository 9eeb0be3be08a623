"""``partition(f, ...)``: a function like that of ``jax.jit``, partitioned by shardpass, with its steps accessible.

    step = partition(train_step, mesh=mesh, in_shardings=(P(), P("data")), out_shardings=P())
    step(params, batch)                     # runs it
    lowered = step.lower(params, batch)     # or shapes: jax.ShapeDtypeStruct
    print(lowered.plan); print(lowered.explain())

State: the jitted function. The hook does the work, with the pipeline of this function, and raises where it would leave
the program to XLA.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cached_property, partial, update_wrapper
from typing import TYPE_CHECKING, Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from shardpass.cost.chosen import content_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import Diagnostic, ShardpassError, collect
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.ir.context import UNNAMED, copy_module, make_context
from shardpass.ir.machines import set_module_machine
from shardpass.jax.here import machine_of_lowered
from shardpass.jax.hook import for_jax, using
from shardpass.jax.scope import Mode
from shardpass.passes.partition import Partition
from shardpass.passes.propagate import Propagate
from shardpass.pipeline.resolve import resolve
from shardpass.pipeline.run import run_pipeline

if TYPE_CHECKING:
    from shardpass.planning.plan.plan import ProgramPlan
    from shardpass.report.explanation import Explanation

UNSPECIFIED: Any = object()  # in the place of shardings that are not given


def partition(
    f: Callable[..., Any],
    *,
    mesh: Any = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    pipeline: str = "partition",
    machine: str | os.PathLike[str] | Machine | None = None,
    **options: Any,
) -> Partitioned:
    """Compile ``f`` as ``jax.jit(f, ...)`` does, partitioned by shardpass.

    Args:
        f: the function.
        mesh: the ``jax.sharding.Mesh`` of each ``PartitionSpec``, here and in ``f``.
        in_shardings, out_shardings: the shardings, as for ``jax.jit``, or trees of ``PartitionSpec``.
        pipeline: the passes that partition the program: a named or textual pipeline.
        machine: the machine for which the program is decided and planned, as in ``use``.
        options: other options of ``jax.jit``.

    Raises:
        ShardpassError: SP140 if ``mesh`` is not a mesh; SP901 to SP903 for an unknown machine.
    """
    check_mesh("partition", mesh)
    options |= over(mesh, in_shardings=in_shardings, out_shardings=out_shardings)
    decided_for = "" if machine is None else content_text(machine)
    return Partitioned(jax.jit(f, **options), mesh, pipeline, decided_for)


def check_mesh(function: str, mesh: Any) -> None:
    """Raise ShardpassError (SP140) unless the argument of the public ``function`` is a mesh of devices or None."""
    if mesh is not None and not isinstance(mesh, Mesh):
        raise wrong_argument(function, "mesh", mesh, "a jax.sharding.Mesh")


def over(mesh: Any, **shardings: Any) -> dict[str, Any]:
    """Return the ``shardings`` that are specified, with each ``PartitionSpec`` over ``mesh``, which may be None."""
    given = {name: value for name, value in shardings.items() if value is not UNSPECIFIED}
    if mesh is None:
        return given

    def named(part: Any) -> Any:
        return NamedSharding(mesh, part) if isinstance(part, PartitionSpec) else part

    made: dict[str, Any] = jax.tree.map(
        named, given, is_leaf=lambda part: part is None or isinstance(part, PartitionSpec)
    )
    return made


@contextmanager
def inside(mesh: Any, mode: Mode) -> Iterator[None]:
    """Set ``mesh``, if that is not None, as JAX's mesh, and ``mode`` for the programs in the block."""
    with nullcontext() if mesh is None else jax.set_mesh(mesh), using(mode):
        yield


class Partitioned:
    """A function that shardpass partitions: call it, or ``lower`` it to inspect its program."""

    def __init__(self, jitted: Any, mesh: Any, pipeline: str, machine: str = "") -> None:
        self._jitted = jitted
        self._mode = Mode(True, True, pipeline, machine)
        self._inside = partial(inside, mesh, self._mode)
        update_wrapper(self, jitted)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the partitioned program on arrays of JAX. Raises ShardpassError (SP607) where shardpass cannot partition
        it.
        """
        with self._inside():
            return self._jitted(*args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the program for arguments like these, which may be ``jax.ShapeDtypeStruct``."""
        with self._inside():
            return Lowered(self._jitted.lower(*args, **kwargs), self._mode, self._inside)


class Lowered:
    """A program with the types and shardings of its arguments; each step runs at its first use."""

    def __init__(self, lowered: Any, mode: Mode, inside: Callable[[], Any]) -> None:
        self._lowered = lowered
        self._pipeline = mode.pipeline
        self._machine = mode.machine
        self._inside = inside

    @property
    def stablehlo(self) -> Any:
        """The ``ir.Module`` that JAX lowered, whole arrays with their shardings."""
        return self._lowered.compiler_ir("stablehlo")

    @property
    def machine(self) -> str:
        """The machine for which the program is decided and planned."""
        return self._machine or machine_of_lowered(self._lowered)

    def _whole(self) -> Any:
        """Return a copy of ``stablehlo`` that names the machine."""
        module = copy_module(self.stablehlo)
        set_module_machine(module, self.machine)
        return module

    @cached_property
    def partitioned(self) -> Any:
        """The ``ir.Module`` that each device runs. Raises ShardpassError where the pipeline fails."""
        with collect():
            return run_pipeline(self._whole(), for_jax(self._pipeline))

    @cached_property
    def plan(self) -> ProgramPlan:
        """Return the decision for each op, with bytes; of the named pipeline ``partition``, with its loops."""
        from shardpass.pipeline.plan import plan_module

        with collect():
            steps = [step.own for step in resolve(self._pipeline, make_context())]
            own = next((step for step in steps if isinstance(step, Partition)), Partition())
            decides = next((step for step in steps if isinstance(step, Propagate)), Propagate())
            return plan_module(
                self._whole(),
                matmul_loops=own.matmul_loops,
                matmul_one_way=own.matmul_one_way,
                constraints=decides.constraints,
            )

    def explain(self) -> Explanation:
        """Explain each collective: bytes, axes, the line of the program, and the reason; ``print`` it."""
        from shardpass.report.build import explain_module  # what explains is no part of what every program loads

        with collect():
            return explain_module(self._whole(), UNNAMED, pipeline=for_jax(self._pipeline))

    def check(self) -> tuple[Diagnostic, ...]:
        """List faults of the program's shardings, errors first; empty where there are none."""
        with collect() as collected:
            try:
                run_pipeline(self._whole(), "check")
            except ShardpassError as error:
                return (*error.diagnostics, *collected)
        return tuple(collected)

    def compile(self) -> Any:
        """Compile the partitioned program to JAX's ``Compiled``. Raises ShardpassError (SP607) as the call does."""
        with self._inside():
            return self._lowered.compile()
