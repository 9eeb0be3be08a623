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

from shardpass.ops.local import Local
from shardpass.ops.splits.factors import Axes, Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh

FAMILIES = (
    "replicated",
    "elementwise",
    "collectives",
    "constant_iota",
    "batch_norm",
    "written_out",
    "ragged_dot",
    "broadcast_transpose",
    "reshape",
    "slice_pad_reverse",
    "concatenate",
    "dot_general",
    "convolution",
    "reduce_window",
    "select_and_scatter",
    "dynamic_slice",
    "gather",
    "scatter",
    "sort",
    "reduce",
    "rng",
    "map",
    "custom_call",
    "fft_cholesky",
    "triangular_solve",
)


RuleOf = Callable[[Any], Rule | None]
Rewrite = Callable[[Local], list[Any] | None]
Extra = Callable[[Any, Rule, dict[int, Axes], PrimeMesh], int]
Expand = Callable[[Any], list[Any] | None]


@dataclass(frozen=True, slots=True)
class OpDef:
    """One op: ``rule(op)`` gives its factors (None: replicated).

    ``rewrite`` makes the op local, before its results get the types of tiles; the values that it returns, if any,
    take the place of the results. ``extra`` is the bytes that a device receives in what ``rewrite`` builds (halos).
    ``expand`` writes the op in others before propagation, at the current insertion point and location: it returns
    the values that take the place of the results, or None where the op stays.
    """

    name: str
    family: str
    rule: RuleOf
    rewrite: Rewrite | None = None
    extra: Extra | None = None
    note: str = ""
    expand: Expand | None = None


_table: dict[str, OpDef] = {}


def define(
    names: str | Iterable[str],
    family: str,
    rule: RuleOf,
    rewrite: Rewrite | None = None,
    extra: Extra | None = None,
    note: str = "",
    expand: Expand | None = None,
) -> None:
    """Registers ops under ``names``; a later definition of a name replaces the earlier one."""
    for name in [names] if isinstance(names, str) else names:
        _table[name] = OpDef(name, family, rule, rewrite, extra, note, expand)


@lru_cache(maxsize=1)
def table() -> dict[str, OpDef]:
    """All ops, own and third-party, loaded once."""
    for family in FAMILIES:
        importlib.import_module(f"shardpass.ops.families.{family}")
    for entry in entry_points(group="shardpass.ops"):
        entry.load()
    return _table


def find(name: str) -> OpDef | None:
    return table().get(name)
