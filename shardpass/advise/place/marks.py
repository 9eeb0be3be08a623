"""Numbers of a module's ops in the names of their locations, by which an imported copy's ops are known in the module.

Import keeps locations on whatever it makes of an op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.locations import named
from shardpass.ir.tensors import operation
from shardpass.ir.walk import every_op

_MARKS = re.compile(r"/?op@(\d+)")


def numbered_ops(module: Any) -> Iterator[tuple[int, Any]]:
    """Yield the ops of all functions with their numbers, which are equal in all copies of a module."""
    return enumerate(every_op(module.operation))


def marked_ops(module: Any) -> Iterator[tuple[int, Any]]:
    """Yield each op with its number, and then marks its location with the number."""
    for number, op in numbered_ops(module):
        yield number, op
        name, stack = named(op.location)
        op.location = ir.Location.name(f"{name}/op@{number}" if name else f"op@{number}", stack)


def without_marks(ops: Iterable[Any]) -> tuple[dict[int, int], list[str]]:
    """Remove the marks of ``ops``. Returns the number of each marked op by its place in ``ops``, and the text of every
    location.
    """
    numbers, locations = {}, []
    for place, op in enumerate(map(operation, ops)):
        name, stack = named(op.location)
        marks = _MARKS.findall(name)
        if marks:
            numbers[place] = int(marks[-1])
            name = _MARKS.sub("", name)
            op.location = ir.Location.name(name, stack) if name else stack
        locations.append(str(op.location))
    return numbers, locations
