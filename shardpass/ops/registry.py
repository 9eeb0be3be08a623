"""The table of ops: name -> how it may be split, and how it becomes local.

A family's file (``elementwise.py``, ``dot.py``, ...) registers both sides of each of its ops with ``define``. An op
that is in no family takes the default: every operand replicated, computed on every device, results sliced.
Third parties add ops through the entry-point group ``shardpass.ops``: a module that calls ``define``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from shardpass.ops.factors import DimAxes, Rule
from shardpass.ops.mesh import PrimeMesh

FAMILIES = ("elementwise", "source", "shape", "dot", "reduce", "indexing")


@dataclass(frozen=True, slots=True)
class Local:
    """What a local rewrite knows: the op (operands are tiles already) and the sharding of each side."""

    op: Any
    mesh: PrimeMesh
    operand_dims: tuple[DimAxes, ...]
    result_dims: tuple[DimAxes, ...]
    result_shapes: tuple[tuple[int, ...], ...]  # global
    next: Any  # the op that follows in the block: the place for what a rewrite builds after ``op``

    def tile(self, index: int) -> tuple[int, ...]:
        """Shape of result ``index`` on one device."""
        return self.mesh.tile(self.result_shapes[index], self.result_dims[index])


RuleOf = Callable[[Any], Rule | None]
Rewrite = Callable[[Local], list[Any] | None]


@dataclass(frozen=True, slots=True)
class OpDef:
    """One op: ``rule(op)`` gives its factors (None: replicated).

    ``rewrite`` makes the op local, before its results get the types of tiles; the values that it returns, if any,
    take the place of the results.
    """

    name: str
    family: str
    rule: RuleOf
    rewrite: Rewrite | None = None
    note: str = ""


_table: dict[str, OpDef] = {}


def define(
    names: str | Iterable[str], family: str, rule: RuleOf, rewrite: Rewrite | None = None, note: str = ""
) -> None:
    """Registers ops under ``names``; a later definition of a name replaces the earlier one."""
    for name in [names] if isinstance(names, str) else names:
        _table[name] = OpDef(name, family, rule, rewrite, note)


@lru_cache(maxsize=1)
def table() -> dict[str, OpDef]:
    """All ops, own and third-party, loaded once."""
    for family in FAMILIES:
        importlib.import_module(f"shardpass.ops.{family}")
    for entry in entry_points(group="shardpass.ops"):
        entry.load()
    return _table


def find(name: str) -> OpDef | None:
    return table().get(name)
