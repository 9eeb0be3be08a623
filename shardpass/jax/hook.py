"""Hook into JAX's compiles: shardpass partitions multi-device programs before XLA compiles them.

State: whether the hook is installed; the counts; and whether it is active, for the whole process (``install``) or
inside ``use()`` (``scope``). The latter is part of JAX's cache key, so a function compiled outside is compiled again
inside. ``_reasons`` counts, by code and function, the programs left to XLA.

Invariants: if anything fails here, the program is compiled as JAX would have compiled it, with a warning that gives
the reason; the module that JAX lowered is never changed. If XLA fails then, or a function of the user that is called
during the compile, the user sees only JAX's own error.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
from jaxlib.mlir import ir

from shardpass.cost.chosen import content_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import Diagnostic, ShardpassError, collect, report, table_jax
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.diagnostics.internal import internal_error
from shardpass.diagnostics.table_runtime import Disagreement
from shardpass.ir import annotations as names
from shardpass.ir import jax_private
from shardpass.ir.context import copy_module
from shardpass.ir.for_xla import free_layouts
from shardpass.ir.machines import set_module_machine
from shardpass.jax.cache import Entry, entry_of
from shardpass.jax.here import machine_here
from shardpass.jax.manual_region import wrap
from shardpass.jax.pinned import marked, pins_of
from shardpass.jax.scope import PIPELINE, Mode, Pinning, current, entered
from shardpass.passes.propagate import Propagate
from shardpass.passes.prove import Prove
from shardpass.passes.whole_axes import WholeAxes
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.resolve import Step, resolve
from shardpass.pipeline.run import run_steps
from shardpass.runtime.partitioned_signature import Signature
from shardpass.runtime.processes import agreed
from shardpass.sharding import parse_sharding


class FallbackWarning(UserWarning):
    """Warn that XLA, not shardpass, partitions a program; the message gives the reason."""


OURS = "shardpass"
COUNTS = ("partitioned", "passed_through", "fallback")
# frames of these are none of the user's
_OURS = os.path.dirname(os.path.dirname(__file__))  # the package shardpass
_NOT_THE_USERS = (os.path.dirname(str(jax.__file__)) + os.sep, _OURS + os.sep)

_lock = threading.Lock()
_counts: Counter[str] = Counter()
_original: jax_private.Compile | None = None
_everywhere = False
_reasons: dict[str, Counter[str]] = {}


@contextmanager
def use(
    *,
    strict: bool = False,
    machine: str | os.PathLike[str] | Machine | None = None,
    constraints: str = names.EXACT,
    pipeline: str = PIPELINE,
    partitioner: str = OURS,
    prove: bool = False,
) -> Iterator[None]:
    """Partition each multi-device ``jax.jit`` with shardpass inside the block.

    Applies to the thread, and to the asyncio task, that enters the block.

    Args:
        strict: raise ShardpassError (SP607) for a program that shardpass cannot partition. By default XLA partitions
            such a program, with a ``FallbackWarning``.
        machine: the machine for which programs are decided and planned: a name in docs/reference/machines.md, the path
            of a file NAME.toml, or a ``Machine``. The default is the environment variable SHARDPASS_MACHINE, else the
            machine of the devices.
        constraints: "exact": results of ``with_sharding_constraint`` have that sharding. "free": ignore constraints, to
            see the cost of the program without them (``shardpass-propagate``).
        pipeline: the passes that partition a program: a named pipeline with options, such as ``partition{nan=exact}``,
            or a textual pipeline, whose own options determine ``constraints``.
        partitioner: "shardpass"; or "xla", to let XLA partition programs into which shardpass has written constraints,
            as ``pin`` does. This helps with training loops that call ``jax.jit`` themselves. ``pipeline`` does not
            apply.
        prove: prove that each partitioned program computes what JAX lowered (docs/proving.md). Without a proof the
            program is left to XLA with a ``FallbackWarning``, or is an error under ``strict``.

    Raises:
        ShardpassError: if ``pipeline`` is invalid; SP901 to SP903 for an unknown machine; SP107 for other
            ``constraints``; SP613 for "free" with a pipeline other than ``partition``.
    """
    Propagate(constraints=constraints).refuse_unknown()
    if constraints != names.EXACT:
        if pipeline != PIPELINE:
            raise table_jax.CONSTRAINTS_OF_PIPELINE.error(pipeline=pipeline, value=constraints)
        pipeline = f"{PIPELINE}{{constraints={constraints}}}"
    if pipeline != PIPELINE:
        for_jax(pipeline)
    if partitioner not in (OURS, "xla"):
        raise wrong_argument("use", "partitioner", partitioner, "shardpass or xla")
    if prove and partitioner != OURS:
        raise wrong_argument("use", "prove", prove, 'False beside partitioner="xla", as XLA partitions there')
    text = "" if machine is None else content_text(machine)
    with using(Mode(True, strict, pipeline, text, None if partitioner == OURS else Pinning(text), bool(prove))):
        yield


@contextmanager
def using(mode: Mode) -> Iterator[None]:
    """Set the mode of programs that are compiled inside the block."""
    put_in_place()
    with entered(mode):
        yield


@functools.lru_cache(maxsize=64)
def for_jax(pipeline: str, prove: bool = False) -> str:
    """Return ``pipeline``, named (with or without options) or textual, with the passes that programs on JAX arrays
    need.

    Open arguments and results are split over whole axes, evenly, after propagation; results that follow from a
    constraint keep its sharding. With ``prove``, a program without a proof is an error.
    """
    steps = resolve(pipeline, ir.Context())
    if prove:
        steps = (*(step for step in steps if not isinstance(step.own, Prove)), Step(Prove.name, Prove(True, True)))
    passes = ",".join(str(_settling(step.own) or step) for step in steps)
    return re.sub(r"(?=shardpass-(?:check|partition)\b)", f"{WholeAxes.name},", passes, count=1)


@functools.lru_cache(maxsize=64)
def _steps_for_jax(pipeline: str, prove: bool) -> tuple[Step, ...]:
    """Return the steps of ``for_jax``, ready to run. One list serves all programs, as passes keep no state."""
    return resolve(for_jax(pipeline, prove), ir.Context())


def _settling(own: ModulePass | None) -> ModulePass | None:
    return replace(own, settle_results=True) if isinstance(own, Propagate) else own


def install() -> None:
    """Partition as ``use()`` does, in the whole process, until ``uninstall()``. Clears JAX's caches."""
    global _everywhere
    put_in_place()
    if not _everywhere:
        _everywhere = True
        jax.clear_caches()


def uninstall() -> None:
    """Undo ``install()``, and clear JAX's caches."""
    global _everywhere
    if _everywhere:
        _everywhere = False
        jax.clear_caches()


def stats() -> dict[str, Any]:
    """Count the programs of this process that were partitioned, passed through (one device), or left to XLA (fallback).

    ``reasons`` maps the code of each reason to the functions that were left to XLA, with their counts.
    """
    with _lock:
        reasons = {code: dict(names) for code, names in _reasons.items()}
        return {**{name: _counts[name] for name in COUNTS}, "reasons": reasons}


def _count(what: str) -> None:
    with _lock:
        _counts[what] += 1


def put_in_place() -> None:
    """Make JAX compile through ``_compile``, which leaves programs alone while no scope is active."""
    global _original
    with _lock:
        if _original is None:
            _original = jax_private.compile_hook()
            # seen from outside it is JAX's own: the same name, the same signature
            jax_private.set_compile_hook(functools.update_wrapper(_compile, _original))


def _active() -> bool:
    return _everywhere or current().active


def _compile(backend: Any, computation: Any, devices: Any, options: Any, *rest: Any, **more: Any) -> Any:
    """Stand in for JAX's own function; see ``jax_private.compile_hook``."""
    assert _original is not None
    pinning = current().pin or marked(computation)
    if pinning is not None and options.num_partitions > 1:
        return _compile_pinned(pinning, backend, computation, devices, options, *rest, **more)
    if not _active():
        return _original(backend, computation, devices, options, *rest, **more)
    if options.num_partitions == 1:
        _count("passed_through")
        return _original(backend, computation, devices, options, *rest, **more)
    begun = time.monotonic()
    with jax_private.failing_once():
        try:
            shardy = options.executable_build_options.use_shardy_partitioner
            pipeline, prove = current().pipeline, current().prove
            machine = current().machine or machine_here(devices.flat)
            known = pipeline == PIPELINE  # an error of another one arises where the processes agree
            entry = entry_of(backend, computation, for_jax(pipeline, prove), machine) if known else None
            make = functools.partial(partitioned, computation, shardy=shardy, machine=machine, entry=entry)
            ours, (signature, in_shardy) = agreed(computation, devices.flat, make)
            if devices.flat[0].platform == "tpu":
                free_layouts(ours)
            with jax_private.read_as_shardy(options, in_shardy):
                loaded = _original(backend, ours, devices, options, *rest, **more)
            _refuse_other_shardings(loaded, signature)
        except Disagreement:  # between processes: XLA in this one alone would be no better
            raise
        except ShardpassError as error:
            message = _fall_back(computation, error)
            loaded = _original(backend, computation, devices, options, *rest, **more)
        except Exception as error:
            if jax_private.raised_while_inspecting(error):
                raise
            loaded = _original(backend, computation, devices, options, *rest, **more)  # raises what JAX would raise,
            message = _fall_back(computation, error)  # as for compiler options that there are not: that is no fallback
        else:
            _count("partitioned")
            if entry is not None:
                entry.keep(time.monotonic() - begun)
            return loaded
        warnings.warn(message, FallbackWarning, stacklevel=_users_level())
        return loaded


def _compile_pinned(
    pinning: Pinning, backend: Any, computation: Any, devices: Any, options: Any, *rest: Any, **more: Any
) -> Any:
    """Compile a program as ``_compile``, but by XLA's partitioner, with shardpass's decisions as constraints."""
    assert _original is not None
    begun = time.monotonic()
    name = (names.get_text(computation.operation, "sym_name") or "a program").removeprefix("jit_")
    entry = None
    try:
        machine = pinning.machine or machine_here(devices.flat)
        entry = entry_of(backend, computation, f"pin {pinning}", machine)

        def make() -> tuple[Any, Any]:
            with collect():
                made: tuple[Any, Any] = pins_of(computation, pinning, machine, entry, for_jax("propagate"))
                return made

        module, pins = agreed(computation, devices.flat, make)
    except Disagreement:
        raise
    except Exception as error:
        known = error if isinstance(error, ShardpassError) else internal_error("shardpass.jax.pin", error)
        reason = known.diagnostics[0]
        why, remedy = f"{reason.message} [{reason.code}]", reason.remedy or "see docs/pin.md"
        if current().strict:
            raise table_jax.STRICT.error(reason.place, name=name, reason=why, remedy=remedy) from error
        message = str(table_jax.NOT_PINNED.at(reason.place, name=name, reason=why, remedy=remedy))
        warnings.warn(message.replace("warning: ", "", 1), FallbackWarning, stacklevel=_users_level())
        return _original(backend, computation, devices, options, *rest, **more)
    if not pins.constraints:
        report(table_jax.NOTHING_TO_PIN.at(name=name))
        module = computation
    loaded = _original(backend, module, devices, options, *rest, **more)
    if entry is not None:
        entry.keep(time.monotonic() - begun)
    return loaded


def partitioned(
    computation: Any, *, shardy: bool, machine: str, entry: Entry | None = None
) -> tuple[Any, tuple[Signature, bool]]:
    """Partition the module that JAX lowered.

    Args:
        computation: the module, which stays unchanged.
        shardy: whether XLA reads Shardy's annotations.
        machine: the machine for which the program is decided.
        entry: the cache entry in which an earlier process may have stored the partitioned module.

    Returns the partitioned module as one manual region over whole arrays, in the context of ``computation``; the
    arguments and results of main, tiled; and whether the annotations are Shardy's.

    Raises:
        ShardpassError: SP604, SP605, or what the pipeline raises.
    """
    if entry is not None and (module := entry.find(computation.context)) is not None:
        try:
            return module, wrap(module, computation, shardy=shardy)
        except Exception:  # whatever a module raises that is no partitioned one
            entry.spoil()
    module = copy_module(computation)
    set_module_machine(module, machine)
    with collect():  # remarks of passes are for those who ask, not for every compile
        run_steps(module, _steps_for_jax(current().pipeline, current().prove))
    if entry is not None:
        entry.take(module)
    return module, wrap(module, computation, shardy=shardy)


def _refuse_other_shardings(loaded: Any, signature: Signature) -> None:
    """Compare the shardings that XLA reports with those that it was given; JAX would raise later, at the call.

    Of an array without elements XLA makes a constant, and reports ``{replicated}``; plain JAX takes it so as well.

    Raises ShardpassError (SP606) at the first that differs.
    """
    rows = zip(jax_private.boundary_shardings(loaded), (signature.arguments, signature.results), strict=True)
    for reported, boundaries in rows:
        if len(reported) != len(boundaries):
            continue  # XLA says nothing of them
        for text, boundary in zip(reported, boundaries, strict=True):
            if text == str(boundary.sharding) or 0 in boundary.shape:
                continue
            if parse_sharding(text) != boundary.sharding:
                wanted = str(boundary.sharding)
                raise table_jax.OTHER_SHARDING.error(where=boundary.where, found=text, wanted=wanted)


def _fall_back(computation: Any, error: Exception) -> str:
    """Count the program as left to XLA and return the warning. Raises ShardpassError (SP607) under ``strict``."""
    known = error if isinstance(error, ShardpassError) else internal_error("shardpass.jax", error)
    reason: Diagnostic = known.diagnostics[0]
    name = (names.get_text(computation.operation, "sym_name") or "a program").removeprefix("jit_")
    why, remedy = f"{reason.message} [{reason.code}]", reason.remedy or "see docs/jax.md"
    if current().strict:
        raise table_jax.STRICT.error(reason.place, name=name, reason=why, remedy=remedy) from error
    with _lock:
        _counts["fallback"] += 1
        _reasons.setdefault(reason.code, Counter())[name] += 1
    message = str(table_jax.FALLBACK.at(reason.place, name=name, reason=why, remedy=remedy))
    return message.replace("warning: ", "", 1)


def _users_level() -> int:
    """Return the ``stacklevel`` of the caller's innermost frame that is neither JAX's nor shardpass's."""
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_NOT_THE_USERS):
        frame, level = frame.f_back, level + 1
    return level
