"""The machine for which a module was decided, as the module says it: ``shardpass.machine``."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from shardpass.cost.machine import IDEAL, Machine
from shardpass.cost.profiles import find_profile
from shardpass.ir.annotations import MACHINE, get_text


def machine_of(module: Any) -> Machine:
    """The machine that ``module`` names; "ideal" where it names none.

    Raises ShardpassError: SP411, SP414 where the name is that of no machine.
    """
    named = get_text(module.operation, MACHINE)
    return find_profile(named) if named else IDEAL


def say_machine(module: Any, named: str) -> None:
    """Writes ``named``, a name or a file, on ``module``."""
    module.operation.attributes[MACHINE] = ir.StringAttr.get(named, module.context)
