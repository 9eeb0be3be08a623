"""The rules for each op: which devices agree on its results.

| op | devices hold equal results where |
|---|---|
| any op that has no row below | they hold equal operands, and equal values that its regions take from outside |
| all_reduce, all_gather | their groups hold equal operands, place by place |
| all_to_all, reduce_scatter | the same, and they stand at the same place of their groups |
| collective_broadcast | the first devices of their groups hold equal operands |
| collective_permute | their sources hold equal operands; those without a source hold zeros |
| partition_id | nowhere |
| rng, infeed, recv, calls with side effects | nowhere: devices may draw or receive different values |
| select | with a scalar predicate that is known on each device: where they choose an equal operand |
| optimization_barrier | result by result, as the operand |

The rule of a collective holds where all devices of a group execute it. In a branch or a loop whose predicate differs
within a group they do not, and then nothing is known of the received values.

Groups are read as StableHLO says. A collective without a channel is over replicas, of which a partitioned program has
one: its result is as its operand. With a channel and without ``use_global_device_ids``, all_reduce, all_gather and
reduce_scatter join the partitions of all the replicas that a group names, so all devices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.collectives import OPS_BY_GLOBAL_IDS
from shardpass.ir.known_integers import Known, compute
from shardpass.replication.agreement import NOBODY, Agreement, Agreements, Ints


@dataclass(frozen=True, slots=True)
class Fact:
    """The facts about a value: the devices that have equal values and, if known, the value on each device."""

    agreement: Agreement
    known: Known | None = None


@dataclass(frozen=True, slots=True)
class Site:
    """An op with the facts of its operands. ``together``: the devices that execute it together."""

    op: Any
    operands: Sequence[Fact]
    captured: Sequence[Fact]
    together: Agreement
    all: Agreements


def facts_of(site: Site) -> list[Fact]:
    """Compute the facts of the op's results."""
    rule = RULES.get(site.op.name)
    if rule is not None:
        return rule(site)
    known = compute(site.op, [fact.known for fact in site.operands], site.all.devices)
    if known is not None:
        return [Fact(site.all.of(known), known)]
    return _as_operands(site)


def _as_operands(site: Site) -> list[Fact]:
    agreement = site.all.all_of(fact.agreement for fact in (*site.operands, *site.captured))
    return [Fact(agreement) for _ in site.op.results]


def _nowhere(site: Site) -> list[Fact]:
    return [Fact(site.all.nowhere) for _ in site.op.results]


def _custom_call(site: Site) -> list[Fact]:
    attributes = site.op.attributes
    if "has_side_effect" in attributes and ir.BoolAttr(attributes["has_side_effect"]).value:
        return _nowhere(site)
    return _as_operands(site)


def _barrier(site: Site) -> list[Fact]:
    return list(site.operands)


def _select(site: Site) -> list[Fact]:
    which, *values = site.operands
    known = compute(site.op, [fact.known for fact in site.operands], site.all.devices)
    if known is not None:
        return [Fact(site.all.of(known), known)]
    if which.known is None or which.known.ndim != 1:
        return _as_operands(site)
    # stablehlo.select takes its second operand where the predicate is true
    choice = np.broadcast_to(np.where(which.known, 0, 1), (site.all.devices,)).astype(np.int64)
    return [Fact(site.all.chosen(choice, [fact.agreement for fact in values]))]


# ------------------------------------------------------------------------------------- collectives


def _received(site: Site, rows: Ints, *, placed: bool = False) -> list[Fact]:
    """Compute the facts of a collective in which device d receives from the devices ``rows[d]``."""
    facts = []
    for fact in site.operands[: len(site.op.results)]:
        agreement = site.all.of_rows(fact.agreement, rows, placed=placed)
        facts.append(Fact(site.all.all_of((agreement, _complete(site, rows)))))
    return facts


def _complete(site: Site, rows: Ints) -> Agreement:
    """Return the relation of devices whose senders run the op together with them; others agree with no device."""
    labels = np.append(site.together.labels, NOBODY)
    own = site.together.labels[:, None]
    alone = ((labels[rows] != own) & (rows != NOBODY)).any(axis=1)
    return site.all.of(np.where(alone, 1 + np.arange(site.all.devices), 0))


def senders(op: Any, devices: int) -> Ints | None:
    """Return rows of devices: device d receives from row d, in order; None if the op joins no partitions."""
    if "channel_handle" not in op.attributes:
        return None
    if op.name == "stablehlo.collective_permute":
        pairs = np.array(op.attributes["source_target_pairs"], dtype=np.int64).reshape(-1, 2)
        rows = np.full((devices, 1), NOBODY, dtype=np.int64)
        rows[pairs[:, 1], 0] = pairs[:, 0]
        return rows
    groups = np.array(op.attributes["replica_groups"], dtype=np.int64)
    if not groups.size or (op.name in OPS_BY_GLOBAL_IDS and "use_global_device_ids" not in op.attributes):
        groups = np.arange(devices, dtype=np.int64).reshape(1, -1)
    rows = np.full((devices, groups.shape[1]), NOBODY, dtype=np.int64)
    for place in range(groups.shape[1]):
        named = groups[:, place] != NOBODY
        rows[groups[named, place]] = groups[named]
    return rows[:, :1] if op.name == "stablehlo.collective_broadcast" else rows


def _collective(placed: bool) -> Callable[[Site], list[Fact]]:
    def rule(site: Site) -> list[Fact]:
        try:
            rows = senders(site.op, site.all.devices)
        except IndexError:  # it names devices that the program does not have
            return _nowhere(site)
        return _as_operands(site) if rows is None else _received(site, rows, placed=placed)

    return rule


RULES: Mapping[str, Callable[[Site], list[Fact]]] = {
    "stablehlo.all_reduce": _collective(False),
    "stablehlo.all_gather": _collective(False),
    "stablehlo.collective_broadcast": _collective(False),
    "stablehlo.collective_permute": _collective(False),
    "stablehlo.all_to_all": _collective(True),
    "stablehlo.reduce_scatter": _collective(True),
    "stablehlo.rng": _nowhere,
    "stablehlo.infeed": _nowhere,
    "stablehlo.recv": _nowhere,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.select": _select,
}
