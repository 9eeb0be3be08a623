"""Find collectives without partners, at which devices would wait for one another forever.

A collective ends once every device of its group meets it, so all devices must meet the same collectives in the same
order. The rules of branches and loops prove that for the ops that they enter: all devices choose alike where a branch
has a collective, and a loop runs as often as one of the whole program, or for a known number of trips. The walks list
the other ops (``stuck``), and all ops inside of an op that they did not get through. Here are collectives whose groups
leave a device alone.

Example: ``if partition_id == 1 { all_reduce }`` is listed, whether or not anything uses the sum, and so is a call of a
function with the all_reduce in that branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from shardpass.ir.collectives import OPS
from shardpass.proving.relations.evaluate import Loss, Unknown
from shardpass.proving.rules.collectives import groups_of, pairs_of


def without_partners(ops: Sequence[Any], devices: int) -> Loss | None:
    """Return the first collective of ``ops`` whose groups leave a device without partners; None if there is none."""
    for op in ops:
        if op.name in OPS:
            site = SimpleNamespace(op=op, devices=devices)
            try:
                (pairs_of if op.name == "stablehlo.collective_permute" else groups_of)(site)
            except Unknown as error:
                return Loss(op, str(error))
    return None
