"""``pin(f, ...)``: ``f`` with shardpass's decisions as sharding constraints, for XLA's own partitioner.

    step = jax.jit(pin(train_step), donate_argnums=0)       # as a decorator
    step = pin(train_step, mesh=mesh, in_shardings=(P(), P("data")))
    print(step.report(params, batch))                       # the constraints, to be pasted, and what they save

Problem. What is decided depends on where arguments are, and JAX knows that when it compiles, after it has traced,
differentiated and batched. So nothing is done while ``f`` is traced but to mark it; the hook (``jax.hook``) decides
about the whole program in which a mark is, and puts the constraints into the module that XLA gets. What runs is XLA's.

State: the options of marks, by their text, which is part of the name of the function that JAX lowers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial, update_wrapper
from typing import Any

import jax

from shardpass.cost.chosen import content_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import collect
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.ir.jax_private import tracing
from shardpass.jax.here import machine_of_lowered
from shardpass.jax.hook import for_jax, put_in_place
from shardpass.jax.partition import UNSPECIFIED, check_mesh, inside, over
from shardpass.jax.pinned import mark_of, pins_of
from shardpass.jax.scope import TRIALS, Mode, Pinning


def pin(
    f: Callable[..., Any],
    *,
    mesh: Any = None,
    in_shardings: Any = UNSPECIFIED,
    out_shardings: Any = UNSPECIFIED,
    machine: str | os.PathLike[str] | Machine | None = None,
    verify: bool = True,
    trials: int = TRIALS,
    **options: Any,
) -> Pinned:
    """Compile ``f`` with XLA, with shardpass's decisions as sharding constraints in each of its programs.

    Call the result like ``f``. Inside ``jax.jit``, ``jax.grad`` and other transformations, the whole program that
    contains ``f`` is pinned. Otherwise the result compiles as ``jax.jit(f, ...)`` would.

    Args:
        f: a function, or the result of ``jax.jit``.
        mesh: the ``jax.sharding.Mesh`` of each ``PartitionSpec``, here and in ``f``, also under ``jax.jit``.
        in_shardings, out_shardings: the shardings of calls outside of ``jax.jit``, as for ``jax.jit``, or trees of
            ``PartitionSpec``.
        machine: the machine for which the program is decided, as in ``use``.
        verify: compile the program with and without constraints in a child process, for virtual CPU devices, and keep
            the constraints with which XLA's program is cheapest. The program never exceeds the plain one in bytes,
            memory or modeled time. With False, write all constraints without comparing.
        trials: the maximum number of variants to compile.
        options: other options of ``jax.jit``, for calls outside of it.

    Raises:
        ShardpassError: SP140 for an argument of another type; SP901 to SP903 for an unknown machine.
    """
    if not callable(f):
        raise wrong_argument("pin", "f", f, "a function")
    if type(verify) is not bool:
        raise wrong_argument("pin", "verify", verify, "True or False")
    if type(trials) is not int or trials < 1:
        raise wrong_argument("pin", "trials", trials, "a positive integer")
    check_mesh("pin", mesh)
    options |= over(mesh, in_shardings=in_shardings, out_shardings=out_shardings)
    pinning = Pinning("" if machine is None else content_text(machine), verify, trials)
    return Pinned(f, options, mesh, pinning)


class Pinned:
    """A jitted function with shardpass's decisions pinned, the result of ``pin``."""

    def __init__(self, f: Any, options: dict[str, Any], mesh: Any, pinning: Pinning) -> None:
        self._f, self._mesh, self._pinning = f, mesh, pinning
        self._jitted = f if hasattr(f, "lower") and not options else jax.jit(f, **options)
        self._inside = partial(inside, mesh, Mode(True, pin=pinning))
        update_wrapper(self, f, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if tracing():
            return self._marked(args, kwargs)
        with self._inside():
            return self._jitted(*args, **kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the function as a method, which takes the object first."""
        return (
            self if instance is None else update_wrapper(lambda *a, **k: self(instance, *a, **k), self._f, updated=())
        )

    def lower(self, *args: Any, **kwargs: Any) -> PinnedLowered:
        """Lower the program for arguments like these, which may be ``jax.ShapeDtypeStruct``."""
        with self._inside():
            return PinnedLowered(self._jitted.lower(*args, **kwargs), self._pinning, self._inside)

    def report(self, *args: Any, **kwargs: Any) -> Any:
        """Report the constraints for such arguments as JAX code, with their savings; ``print`` the result.

        Raises ShardpassError where shardpass cannot decide about the program, or XLA refuses it (SP553).
        """
        return self.lower(*args, **kwargs).pins

    def _marked(self, args: Any, kwargs: Any) -> Any:
        """Call ``f`` on traced arguments, in a jitted function with the mark's name; keep all other arguments."""
        put_in_place()
        leaves, tree = jax.tree.flatten((args, kwargs))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        made: list[Any] = []

        def marked(*arrays: Any) -> list[Any]:
            given = list(leaves)
            for place, array in zip(places, arrays, strict=True):
                given[place] = array
            args, kwargs = jax.tree.unflatten(tree, given)
            results, out = jax.tree.flatten(self._f(*args, **kwargs))
            kept = [isinstance(result, jax.Array) for result in results]
            made[:] = [out, [None if array else result for array, result in zip(kept, results, strict=True)], kept]
            return [result for array, result in zip(kept, results, strict=True) if array]

        marked.__name__ = marked.__qualname__ = mark_of(self._pinning)
        mesh = nullcontext() if self._mesh is None else jax.sharding.use_abstract_mesh(self._mesh.abstract_mesh)
        with mesh:
            arrays = iter(jax.jit(marked)(*[leaves[place] for place in places]))
        out, others, kept = made
        return jax.tree.unflatten(
            out, [next(arrays) if array else other for array, other in zip(kept, others, strict=True)]
        )


class PinnedLowered:
    """A program with the types and shardings of its arguments. ``lowered``: as the jitted function lowers it."""

    def __init__(self, lowered: Any, pinning: Pinning, inside: Callable[[], Any]) -> None:
        self.lowered, self._pinning, self._inside = lowered, pinning, inside

    def _made(self) -> tuple[Any, Any]:
        lowered = self.lowered
        while not hasattr(lowered, "compiler_ir"):  # equinox and ``pin`` wrap what JAX lowers
            lowered = lowered.lowered
        machine = self._pinning.machine or machine_of_lowered(lowered)
        with collect():
            module = lowered.compiler_ir("stablehlo")
            return pins_of(module, self._pinning, machine, pipeline=for_jax("propagate"))

    @property
    def pins(self) -> Any:
        """The pins of the program, which ``print`` shows."""
        return self._made()[1]

    @property
    def stablehlo(self) -> Any:
        """The ``ir.Module`` with the constraints."""
        return self._made()[0]

    def as_text(self) -> str:
        """Return the pinned program as StableHLO text."""
        return str(self.stablehlo)

    def compile(self) -> Any:
        """Compile the pinned program to JAX's own ``Compiled``."""
        with self._inside():
            return self.lowered.compile()
