"""Compare the collectives of optimised HLO with those of its module, to find any that XLA added.

The rule of ``added_by_xla``: a collective of the HLO is accounted for by one of the module over the same devices, of
the same kind. XLA may merge several into one, drop one that nothing needs, and turn an all_reduce into a
reduce_scatter or back; so those two count as one kind, and the module may have more than the HLO. XLA's partitioner
added any other collective of the HLO.

"The same devices": the same sets, in the same order where the order matters (not for a reduction's sum); of a
permute, the same pairs, but those of a device with itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.cost.collective import FACTS, hlo_name
from shardpass.hlo.groups import Groups, everybody, groups_of_line, moving
from shardpass.ir.annotations import NUM_PARTITIONS
from shardpass.ir.collectives import OPS
from shardpass.ir.tensors import every_op, operation


@dataclass(frozen=True, slots=True)
class HloCollective:
    """A collective: its kind, in StableHLO's names, and the device groups; for a permute, device pairs."""

    kind: str
    groups: Groups

    @property
    def key(self) -> tuple[str, frozenset[Any]]:
        """Return a key to match emitted collectives to XLA's; all_reduce and reduce_scatter have the same key."""
        if self.kind in ("all_reduce", "reduce_scatter"):
            return "reduction", frozenset(map(frozenset, self.groups))
        return self.kind, frozenset(self.groups)

    def __str__(self) -> str:
        return f"{self.kind} {[list(group) for group in self.groups]}"


def added_by_xla(hlo_text: str, module: Any) -> list[HloCollective]:
    """List collectives that the partitioned module does not account for; empty when XLA added none."""
    left = Counter(exchange.key for exchange in emitted(module))
    added = []
    for exchange in collectives_in(hlo_text, module.operation.attributes[NUM_PARTITIONS].value):
        if left[exchange.key] > 0:
            left[exchange.key] -= 1
        else:
            added.append(exchange)
    return added


def emitted(module: Any) -> list[HloCollective]:
    """List the collectives of a partitioned module, in the order of its text."""
    ops = (inner for op in module.body.operations for inner in every_op(operation(op)))
    devices = module.operation.attributes[NUM_PARTITIONS].value
    return [_of_op(op, devices) for op in ops if op.name in OPS]


def _of_op(op: Any, devices: int) -> HloCollective:
    kind = op.name.removeprefix("stablehlo.")
    name = "source_target_pairs" if kind == "collective_permute" else "replica_groups"
    rows = np.array(op.attributes[name]).tolist()
    return HloCollective(kind, moving(kind, rows) or everybody(kind, devices))


# --- HLO's text

_OP = re.compile(
    r"^\s*(?:ROOT )?%?[\w.\-]+ = (?:\(.*?\)|\S+) "
    rf"({'|'.join(map(hlo_name, FACTS))})(?:-start)?\(",
    re.MULTILINE,
)


def collectives_in(hlo_text: str, devices: int) -> Iterator[HloCollective]:
    """List the collectives of optimised HLO, in the order of the text; an asynchronous pair counts once.

    Replica groups are read in the three forms that XLA prints: lists, iota tiles and mesh axes.
    """
    for kind, line in collective_lines(hlo_text):
        yield HloCollective(kind, groups_of_line(kind, line, devices))


def collective_lines(hlo_text: str) -> Iterator[tuple[str, str]]:
    """List (kind, line) for each collective of optimised HLO, counted as in ``collectives_in``."""
    for match in _OP.finditer(hlo_text):
        end = hlo_text.find("\n", match.end())
        yield match[1].replace("-", "_"), hlo_text[match.start() : end if end >= 0 else None]


_APPLIED = re.compile(r"to_apply=%?([\w.\-]+)")
_FLOAT_EXTREME = re.compile(r"= b?f\d\w*\[\]\S* (?:maximum|minimum)\(")


def has_float_extremes(hlo_text: str) -> bool:
    """Return whether collectives of optimised HLO take the max or min of floats."""
    applied = {match[1] for _, line in collective_lines(hlo_text) if (match := _APPLIED.search(line))}
    bodies = (re.search(rf"^%?{re.escape(name)} .*?^\}}", hlo_text, re.MULTILINE | re.DOTALL) for name in applied)
    return any(body is not None and _FLOAT_EXTREME.search(body[0]) for body in bodies)
