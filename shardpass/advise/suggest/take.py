"""Reads the arguments of ``suggest`` and ``explain``: programs in any form, meshes, machines and options."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from shardpass.advise.place.sites import Reading, reading_of
from shardpass.cost.chosen import machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.diagnostics.arguments import has, shown, text_of, whole, wrong_argument
from shardpass.diagnostics.table_driver import CANNOT_READ
from shardpass.diagnostics.table_suggest import MESH_SIZE, NO_MESH, NOT_A_PROGRAM, OPTION_OF_JIT, SHARDINGS_OF_WHAT
from shardpass.ir.annotations import mesh_of, num_devices, set_mesh, set_num_devices
from shardpass.ir.context import UNNAMED, is_bytecode, parse_module
from shardpass.ir.doors import Given
from shardpass.ir.machines import module_machine, set_module_machine
from shardpass.report.naming import Sources
from shardpass.runtime.peers import OURS, WAYS, XLA
from shardpass.sharding import Mesh
from shardpass.targets.machine import machine_of as machine_for
from shardpass.targets.target import Target, parse_target


class GivenProgram(NamedTuple):
    """A program. ``machine``: of the devices for which JAX lowered it; None for any other program."""

    data: str | bytes
    file: str = UNNAMED
    machine: str | None = None


class _Unspecified:
    """The default of shardings, for which None has a meaning of its own."""

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


def jitted(f: Any, mesh: Any, **shardings: Any) -> Any:
    """Wrap a function in ``jax.jit`` with the ``shardings`` that are specified; return any other ``f`` unchanged.

    Raises ShardpassError (SP806) for shardings of anything but a function that is not jitted.
    """
    shardings = {name: value for name, value in shardings.items() if value is not UNSPECIFIED}
    if not callable(f) or hasattr(f, "lower") or hasattr(f, "as_text"):
        if shardings:
            raise SHARDINGS_OF_WHAT.error(given=f"an object of class {type(f).__name__}", names=" and ".join(shardings))
        return f
    import jax

    from shardpass.jax.partition import over

    return jax.jit(f, **over(mesh, **shardings))


def take(given: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], platform: str | None = None) -> GivenProgram:
    """Read the program of a function, of the result of ``jax.jit`` or ``lower``, or of a module.

    A string is MLIR text, or the path of a file with a module. ``platform``: the platform for which a function is
    lowered; by default that of its devices. Raises ShardpassError (SP801) for anything else.
    """
    if isinstance(given, os.PathLike) or (isinstance(given, str) and "\n" not in given and os.path.exists(given)):
        try:
            path = Path(given)
            return GivenProgram(path.read_bytes(), str(path))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CANNOT_READ.error(Place(shown(given)), reason=reason, hint="name a file that may be read") from None
        except Exception:  # of the object's own
            raise _no_program(given) from None
    if isinstance(given, str) or (isinstance(given, bytes) and (is_bytecode(given) or b"\n" in given)):
        return GivenProgram(given)
    if has(given, "body") and has(given, "operation"):
        return GivenProgram(_text(given, lambda: given.operation.get_asm(enable_debug_info=True)))
    if not has(given, "as_text") and callable(given):
        import jax

        from shardpass.jax.lowering import lowered

        _refuse_options_of_jit(given, keywords)
        given = lowered(given if has(given, "lower") else jax.jit(given), arguments, keywords, platform)
    if has(given, "lowered") and has(given.lowered, "as_text"):  # of equinox and flax.nnx, which have JAX's own inside
        given = given.lowered
    if has(given, "stablehlo"):  # of ``shardpass.jax.partition``
        text = _text(given, lambda: given.stablehlo.operation.get_asm(enable_debug_info=True))
        return GivenProgram(text, machine=given.machine if has(given, "machine") else None)
    text = _text(given, lambda: given.as_text(debug_info=True))
    return GivenProgram(text, machine=_machine_of_lowered(given))


def _refuse_options_of_jit(function: Callable[..., Any], keywords: dict[str, Any]) -> None:
    """Raise ShardpassError (SP808) where a keyword is an option of ``jax.jit`` and no argument of ``function``."""
    import jax

    options = keywords.keys() & inspect.signature(jax.jit).parameters.keys()
    if not options:
        return
    try:
        accepted = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    refused = sorted(options - accepted.keys())
    if refused and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in accepted.values()):
        raise OPTION_OF_JIT.error(name=refused[0], function=getattr(function, "__name__", "f"))


def _machine_of_lowered(lowered: Any) -> str | None:
    if not isinstance(lowered, sys.modules["jax"].stages.Lowered if "jax" in sys.modules else ()):
        return None
    from shardpass.jax.here import machine_of_lowered

    return machine_of_lowered(lowered)


def _text(given: Any, ask: Callable[[], Any]) -> str:
    """Return the text that ``ask`` gives of ``given``. Raises ShardpassError (SP801) if the result is not text."""
    try:
        text = ask()
    except (AttributeError, TypeError):
        text = None
    if not isinstance(text, str):
        raise _no_program(given)
    return text


def _no_program(given: Any) -> ShardpassError:
    return NOT_A_PROGRAM.error(given=f"an object of class {type(given).__name__}")


class Options(NamedTuple):
    """The options of ``explain`` and ``suggest``. ``machine``: None for the machine of the program."""

    mesh: Mesh | None
    machine: str | None
    target: Target | None
    partitioner: str
    effort: int


def read_options(
    function: str, mesh: Any, machine: Any, target: Any, partitioner: Any, effort: Any, least: int
) -> Options:
    """Check the options of ``function``, and complete those that follow from others.

    ``least``: of ``effort``. With a target, the partitioner is XLA, and the machine that of the target, unless others
    are given. Raises ShardpassError: SP140, SP901 to SP903, SP908.
    """
    over = _mesh(mesh, function)
    if machine is not None and not isinstance(machine, str | os.PathLike | Machine):
        wanted = "the name of a machine, the path of a file NAME.toml that describes one, or a Machine"
        raise wrong_argument(function, "machine", machine, wanted)
    named = None if machine is None else machine_text(machine)
    built_for = target if target is None or isinstance(target, Target) else parse_target(target)
    number = whole(effort)
    if number is None or number < least:
        raise wrong_argument(function, "effort", effort, "1, or 2 to look longer" if least else "0, 1 or 2")
    if built_for is not None:
        named = named or machine_text(machine_for(built_for))
    usual = OURS if built_for is None else XLA
    by = partitioner_of(function, usual if partitioner is None else partitioner)
    return Options(over, named, built_for, by, number)


def _mesh(given: Any, function: str) -> Mesh | None:
    """Convert a jax Mesh or AbstractMesh to a mesh of this package."""
    if given is None or isinstance(given, Mesh):
        return given
    try:
        return Mesh([(str(name), int(size)) for name, size in dict(given.shape).items()])
    except Exception:  # of the object's own
        raise wrong_argument(function, "mesh", given, "a jax Mesh or AbstractMesh, or a shardpass.Mesh") from None


def is_abstract(mesh: Any) -> bool:
    """Return whether ``mesh`` has no devices, so that the machine does not follow from those that are present."""
    jax = sys.modules.get("jax")
    return isinstance(mesh, Mesh) or (jax is not None and isinstance(mesh, jax.sharding.AbstractMesh))


def partitioner_of(function: str, given: Any) -> str:
    """Check the name of a partitioner. Raises ShardpassError (SP140) for any other."""
    wanted = f"one of {', '.join((OURS, *WAYS))}"
    name = text_of(function, "partitioner", given, wanted)
    if name not in (OURS, *WAYS):
        raise wrong_argument(function, "partitioner", name, wanted)
    return name


def put_mesh(module: Any, mesh: Mesh | None, file: str) -> None:
    """Set the mesh of ``module``, unless ``mesh`` is None. Raises ShardpassError (SP803) for other device counts."""
    if mesh is None:
        return
    with module.context:
        count = num_devices(module)
        if count not in (None, 1, mesh.size):
            where = NOWHERE if file == UNNAMED else Place(file)
            raise MESH_SIZE.error(where, mesh=str(mesh), size=mesh.size, count=count)
        if count is None or count == 1:
            set_num_devices(module, mesh.size)
            set_mesh(module, mesh)


def imported(data: Given, file: str, mesh: Mesh | None) -> Reading:
    """Return the program ``data``, imported. ``mesh``: over which to split it; by default the one that it names.

    Raises ShardpassError: as the import pass; SP802 if no mesh is known, SP803 if ``mesh`` has another number of
    devices than the module.
    """
    module = parse_module(data, file)
    put_mesh(module, mesh, file)

    def check(module: Any) -> None:
        with module.context:
            known = mesh_of(module)
        if known is None or known.size == 1:
            raise NO_MESH.error(NOWHERE if file == UNNAMED else Place(file))

    return reading_of(module, Sources(), check)


def decide_for(module: Any, machine: str | None, usual: str | None) -> None:
    """Set the machine for which ``module`` is decided: ``machine``, else the one that it names, else ``usual``."""
    name = machine or module_machine(module) or usual
    if name is not None:
        set_module_machine(module, name)
