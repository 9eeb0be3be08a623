"""Determine the machine of a module: from a pass's options, else from the module, else the default."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.chosen import chosen, machine_text
from shardpass.cost.machine import Machine
from shardpass.diagnostics import report
from shardpass.diagnostics.table_cost import OTHER_MACHINE
from shardpass.ir.annotations import MACHINE, get_text


def machine_for(module: Any, step: str, machine: str) -> str:
    """Return the text of the machine for which ``step`` processes ``module``.

    ``machine``: its option, "" where it is not given. A remark reports that it names another machine than the module
    does.

    Raises ShardpassError where there is no such machine.
    """
    before = get_text(module.operation, MACHINE)
    if not machine:
        return machine_text(before)
    text = machine_text(machine)
    if before is not None and before != text:
        report(OTHER_MACHINE.at(before=before, step=step, machine=text))
    return text


def set_module_machine(module: Any, machine: str) -> None:
    """Record on ``module`` the machine for which its shardings were chosen."""
    module.operation.attributes[MACHINE] = ir.StringAttr.get(machine, module.context)


def module_machine(module: Any) -> str | None:
    """Return the machine that ``module`` names."""
    return get_text(module.operation, MACHINE)


def machine_of(module: Any) -> Machine:
    """Return the machine that ``module`` names, or the default (``cost.chosen``). Raises as ``machine_for``."""
    return chosen(module_machine(module))
