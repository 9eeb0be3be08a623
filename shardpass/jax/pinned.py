"""Pin programs while JAX compiles them: recognize marked programs, and make the module for XLA.

State: what was pinned in this process, by the module, the options and the machine; and in JAX's compilation cache on
disk, where the user has one, so that later processes need not compile the variants again.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import get_text
from shardpass.ir.context import parse_module
from shardpass.ir.walk import operation
from shardpass.ir.written import bytecode
from shardpass.jax.cache import Entry
from shardpass.jax.scope import Pinning

if TYPE_CHECKING:
    from shardpass.advise.pin.pin import Pins

PINS = "shardpass.pins"  # on a module that is kept: what was pinned, as JSON
_MARK = re.compile(r"shardpass_pin_([0-9a-f]{12})")

_marks: dict[str, Pinning] = {}
_known: dict[str, tuple[bytes, Pins]] = {}


def mark_of(pinning: Pinning) -> str:
    """Return a function name that tells ``marked`` to pin the program, and with which options."""
    digest = hashlib.sha256(repr(pinning).encode()).hexdigest()[:12]
    _marks[digest] = pinning
    return f"shardpass_pin_{digest}"


def marked(module: Any) -> Pinning | None:
    """Return the options of the first mark in ``module``; None without a mark."""
    if not _marks:
        return None
    for op in module.body.operations:
        mark = _MARK.search(get_text(operation(op), "sym_name") or "")
        if mark and mark[1] in _marks:
            return _marks[mark[1]]
    return None


def pins_of(
    module: Any, pinning: Pinning, machine: str, entry: Entry | None = None, pipeline: str = "propagate"
) -> tuple[Any, Pins]:
    """Pin ``module``, once for each module. Returns the pinned module in the same context, with its ``Pins``.

    ``entry``: its place on disk. Raises as ``pin_module``.
    """
    from shardpass.advise.pin import pin  # what pins is no part of what every program loads

    text = module.operation.get_asm(binary=True, enable_debug_info=False)
    key = hashlib.sha256(repr((pinning, machine)).encode() + text).hexdigest()
    if key not in _known:
        result = None if entry is None else _on_disk(entry, module.context)
        if result is None:
            made, pins = pin.pin_module(
                module, machine=machine, verify=pinning.verify, most=pinning.trials, pipeline=pipeline
            )
            result = bytecode(made), pins
            if entry is not None:
                with made.context:
                    made.operation.attributes[PINS] = ir.StringAttr.get(pins.json())
                entry.take(made)
        _known[key] = result
    data, pins = _known[key]
    return parse_module(data, context=module.context, trusted=True), pins


def _on_disk(entry: Entry, context: Any) -> tuple[bytes, Pins] | None:
    module = entry.find(context)
    if module is None:
        return None
    from shardpass.advise.pin.pin import Pins

    try:
        with context:
            pins = Pins.from_json(get_text(module.operation, PINS) or "")
            del module.operation.attributes[PINS]
    except (ValueError, KeyError, TypeError):  # of another version
        entry.spoil()
        return None
    return bytecode(module), pins
