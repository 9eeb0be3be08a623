"""The table of ops: from StableHLO's name to the function that reads an op of that name into an ``OpModel``.

A family's file (``families/elementwise.py``, ``families/dot_general.py``, ...) registers its ops with ``define``; it is
loaded when one of its ops is first asked for (``owners``). An op that is in no family takes the default: every operand
replicated, computed on every device, results sliced.
Third parties add ops through the entry-point group ``shardpass.ops``: a module that calls ``define``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from shardpass.diagnostics.table_passes import OPS_CANNOT_BE_LOADED
from shardpass.ops.model import Read
from shardpass.ops.owners import FAMILY_OF_OP, FAMILY_OF_TARGET
from shardpass.ops.splits.factors import Rule

Expand = Callable[[Any], list[Any] | None]


@dataclass(frozen=True, slots=True)
class OpDef:
    """The treatment of ops of one name.

    Attributes:
        read: returns the op's model; None where this form of the op is computed whole on every device.
        family: the file that defines it, for the pages.
        note: what may be split, for people; of an op that no rule splits, why.
        sends: what its per-device form sends beside redistributions and the completion of partial sums, for the pages.
        expand: writes the op in others before propagation, at the current insertion point and location: it returns the
            values that take the place of the results, or None where the op stays.
        cheap: the op is computed again under another split, rather than its result moved, where that receives less.
        context_free: ``read`` looks at nothing but the op's own attributes, types and regions, so that equal ops share
            one model. Otherwise it also looks at the ops that make its operands.
        whole: no form of the op is ever split.
    """

    name: str
    read: Read
    family: str
    note: str = ""
    sends: str = ""
    expand: Expand | None = None
    cheap: bool = False
    context_free: bool = True
    whole: bool = False

    def rule(self, op: Any) -> Rule | None:
        """Read how ``op`` may be split; None where it is computed whole."""
        model = self.read(op)
        return None if model is None else model.rule


_table: dict[str, OpDef] = {}
_of_others: set[str] = set()


def define(
    names: str | Iterable[str],
    read: Read,
    *,
    note: str = "",
    sends: str = "",
    expand: Expand | None = None,
    cheap: bool = False,
    context_free: bool = True,
    whole: bool = False,
) -> None:
    """Register ops under ``names``; a later definition of a name replaces the earlier one. See ``OpDef``."""
    family = (expand or read).__module__.rpartition(".")[2]
    for name in [names] if isinstance(names, str) else names:
        load(FAMILY_OF_OP.get(name))  # a definition of ours is the earlier one, whenever another comes
        if name in _table or name not in FAMILY_OF_OP:
            _of_others.add(name)
        _table[name] = OpDef(name, read, family, note, sends, expand, cheap, context_free, whole)


def ops_of_others() -> frozenset[str]:
    """List the names that a third party defined or redefined. Raises ShardpassError (SP305) as ``find``."""
    _load_third_parties()
    return frozenset(_of_others)


def load(family: str | None) -> None:
    """Load the file of a family; does nothing for None, and while the file itself is being loaded."""
    if family is not None:
        importlib.import_module(f"shardpass.ops.families.{family}")


@lru_cache(maxsize=1)
def _load_third_parties() -> None:
    """Load third parties' modules once; their definitions replace ours."""
    for entry in entry_points(group="shardpass.ops"):
        _load_entry(entry)


def _load_entry(entry: EntryPoint) -> None:
    """Load a third party's module, which calls ``define``. Raises ShardpassError (SP305) where that fails."""
    try:
        entry.load()
    except Exception as error:  # the module is another's: whatever it raises is a failure to load
        reason = f"{type(error).__name__}: {error}"
        raise OPS_CANNOT_BE_LOADED.error(name=entry.name, target=entry.value, reason=reason) from error


def table() -> Mapping[str, OpDef]:
    """Return all ops, own and third-party. Loads every family: for pages and tests."""
    for family in dict.fromkeys((*FAMILY_OF_OP.values(), *FAMILY_OF_TARGET.values())):
        load(family)
    _load_third_parties()
    return _table


def find(name: str) -> OpDef | None:
    """Return how ops of ``name`` are treated; None for an undefined name. Loads only the family of ``name``."""
    _load_third_parties()
    if name not in _table:
        load(FAMILY_OF_OP.get(name))
    return _table.get(name)
