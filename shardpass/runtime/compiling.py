"""Compile modules to executables, through the XLA client of jaxlib."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice
from typing import Any

import jax
from jaxlib.mlir import ir

from shardpass.cost.chosen import machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import ShardpassError, table_runtime
from shardpass.diagnostics.arguments import wrong_argument
from shardpass.ir import jax_private
from shardpass.ir.annotations import Signature as Annotations
from shardpass.ir.annotations import custom_call_target, main_of
from shardpass.ir.context import copy_module, parse_module
from shardpass.ir.doors import LargeFile
from shardpass.ir.inspecting import drop_inspections
from shardpass.ir.locations import first_names, place_of
from shardpass.ir.machines import machine_for, module_machine
from shardpass.ir.walk import OpLists, named
from shardpass.ir.written import bytecode
from shardpass.runtime.executable import Executable, first_line
from shardpass.runtime.manual_computation import over_devices
from shardpass.runtime.partitioned_signature import Signature, read_signature
from shardpass.runtime.processes import agreed, first_of_each
from shardpass.sharding.meaning import MOST_DEVICES

# what JAX says of buffers that XLA may overwrite: a placed array must outlive the run
DONATION = ("tf.aliasing_output", "jax.buffer_donor", "mhlo.layout_mode")

# XLA takes a manual region to HLO and back to StableHLO, which has no words for some ops; without one it does not
NO_WAY_BACK = "Unable to convert MHLO to StableHLO"


def compile(
    module: str | bytes | ir.Module,
    devices: Sequence[jax.Device] | None = None,
    *,
    machine: str | os.PathLike[str] | Machine | None = None,
) -> Executable:
    """Compile a partitioned module (text, bytecode or ``ir.Module``); the module stays unchanged.

    Args:
        module: the module.
        devices: the jax devices, one for each partition, in the program's order. By default the first of
            ``jax.devices()``; in a job of several processes the first of each process. Each of those processes must
            call ``compile``.
        machine: the machine that the devices are. A remark (SP904) reports a module that was decided for another
            machine, which ``Executable.machine`` names.

    Raises:
        ShardpassError: SP101 (not MLIR), SP501-SP507 (not a valid partitioned module), SP508 (calls Python), SP510 (too
            few devices), SP511 (XLA cannot compile it), SP560, SP561, SP563 (errors between processes), SP901 to SP903
            (unknown machine).
    """
    # of a module, in its own context, which keeps the elements of constants once
    if not isinstance(module, str | bytes | LargeFile | ir.Module):
        raise wrong_argument("compile", "module", module, "the text, the bytecode or the ir.Module of a program")
    if devices is not None:
        devices = _devices(devices)
    copy = copy_module(module) if isinstance(module, ir.Module) else own_copy(module)
    refuse_callbacks(copy)
    signature = read_signature(copy)
    decided_for = module_machine(copy)
    if machine is not None:
        machine_for(copy, "compile()", machine_text(machine))
    executable = _compiled(copy, signature, devices)
    executable.machine = decided_for
    return executable


def _compiled(copy: Any, signature: Signature, devices: Sequence[Any] | None) -> Executable:
    chosen = choose_devices(signature.num_devices, devices)
    agreed(copy, chosen, lambda: (copy, signature))
    if signature.num_devices == 1:
        return load(copy, signature, chosen)
    marked = copy_module(copy)
    over_devices(copy, signature.num_devices)
    try:
        return load(copy, signature, chosen, shardy=True)
    except ShardpassError as error:
        if NO_WAY_BACK not in str(error):
            raise
    return load(marked, signature, chosen)


def _devices(given: Any) -> tuple[Any, ...]:
    try:
        chosen = tuple(islice(given, MOST_DEVICES))
    except Exception:  # of the object's own
        chosen = (None,)
    if not all(isinstance(device, jax.Device) for device in chosen):
        raise wrong_argument("compile", "devices", given, "a sequence of jax devices, such as jax.devices()[:4]")
    return chosen


def refuse_callbacks(module: Any) -> None:
    """Raise ShardpassError (SP508) if ``module`` calls a Python function, as its text does not contain that."""
    for op in named(OpLists(module.operation).blocks, ("stablehlo.custom_call",)):
        target = custom_call_target(op)
        if "python" in target and "callback" in target:
            raise table_runtime.CALLS_PYTHON.error(place_of(op.location), target=target)


def load(module: Any, signature: Signature, devices: Sequence[Any], *, shardy: bool = False) -> Executable:
    """Compile ``module`` unchanged, for a known signature."""
    loaded = compile_by_client(module, devices, shardy=shardy)
    return Executable(signature, loaded, devices)


def compile_by_client(module: Any, devices: Sequence[Any], *, shardy: bool = False, donate: bool = False) -> Any:
    """Compile with XLA's client. Raises ShardpassError (SP511) with XLA's message."""
    if not donate:
        drop_donation(module)
    drop_inspections(module)
    with module.context:
        first_names(module.operation)
    try:
        return jax_private.compile_and_load(bytecode(module), devices, spmd=len(devices) > 1, shardy=shardy)
    except RuntimeError as error:
        raise table_runtime.COMPILE_FAILED.error(reason=first_line(error)) from None


def own_copy(module: Any) -> Any:
    """Copy a module into a separate context."""
    if isinstance(module, str | bytes | LargeFile):
        return parse_module(module)
    return parse_module(bytecode(module), trusted=True)


def drop_donation(module: Any) -> None:
    with module.context:
        annotations = Annotations(main_of(module))
        for row in annotations.arguments:
            for name in DONATION:
                row.pop(name, None)
        annotations.write()


def choose_devices(needed: int, devices: Sequence[Any] | None) -> tuple[Any, ...]:
    """Choose the devices to run on.

    Raises ShardpassError: SP510 for too few devices, SP563 if the processes of a job cannot share them equally.
    """
    available = tuple(jax.devices() if devices is None else devices)
    if len(available) < needed:
        platform = available[0].platform if available else "none"
        raise table_runtime.TOO_FEW_DEVICES.error(needed=needed, available=len(available), platform=platform)
    return tuple(first_of_each(available, needed)) if devices is None else available[:needed]
