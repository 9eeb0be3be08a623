"""Replace products and their collectives by loops, in every block of a module."""

from __future__ import annotations

from typing import Any

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import MATMUL_LEFT, MATMUL_LOOP, MATMUL_NOT_BUILT, MATMUL_PEAK
from shardpass.ir.annotations import CAUSE, IN_TURN, get_text, main_of, text
from shardpass.ir.for_xla import mark_manual
from shardpass.ir.locations import place_of
from shardpass.ir.machines import machine_of
from shardpass.ir.order import Order
from shardpass.ir.reductions import channels
from shardpass.ir.walk import OpList, OpLists, named, read_block, read_blocks
from shardpass.partition.matmul_loops.build import build
from shardpass.partition.matmul_loops.find import DOT, Candidate, candidates
from shardpass.planning.price.loops import LoopTerms, Pair, Price, price, resident_bytes
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.sharding import Mesh


class Loops:
    """Builds the loops of one module. ``planned``: partitioning marked the collectives that become loops."""

    def __init__(self, terms: LoopTerms, unroll: int, module: Any, mesh: Mesh, planned: bool) -> None:
        self.terms, self.machine = terms, terms.machine(machine_of(module))
        self.unroll = unroll
        self.module = module
        self.planned = planned
        self.channels = channels(module)
        self.sub_axes = sub_axes_of(mesh)

    def build(self, devices: int) -> bool:
        """Build the loops of every block; returns whether there were any."""
        changed = [inside for inside in read_blocks(main_of(self.module)) if self._block(inside, devices)]
        if changed:
            mark_manual(OpLists(self.module.operation))
        return bool(changed)

    def forget_marks(self) -> None:
        """Remove partitioning's marks, and report each marked product whose loop was not built."""
        del self.module.operation.attributes[IN_TURN]
        for op in named(OpLists(self.module.operation).blocks, (DOT,)):
            if IN_TURN in op.attributes:
                report(MATMUL_NOT_BUILT.at(place_of(op.location), kind=text(op.attributes[IN_TURN]).split()[0]))
                del op.attributes[IN_TURN]

    def _is_chosen(self, candidate: Candidate, pair: Pair, cost: Price) -> bool:
        if not self.planned or get_text(candidate.collective, CAUSE) is None:  # the user's own: no plan knows it
            return self.terms.take(pair, cost)
        kind = candidate.collective.name.removeprefix("stablehlo.")
        expected = [f"{kind} {part.blocks.side}" if pair.is_gather else kind for part in candidate.parts]
        return [get_text(part.op, IN_TURN) for part in candidate.parts] == expected

    def _block(self, inside: OpList, devices: int) -> bool:
        """Build the loops of one block; returns whether there were any."""
        used: set[Any] = set()
        chosen = []
        for candidate in candidates(inside, devices):
            ops = {part.op for part in candidate.parts}
            if ops & used:
                continue
            pair = candidate.pair
            cost = price(pair, self.machine, self.sub_axes, self.terms.both_ways(pair))
            if self._is_chosen(candidate, pair, cost):
                used |= ops
                chosen.append((candidate, pair, cost))
            else:
                place = place_of(candidate.collective.location)
                report(MATMUL_LEFT.at(place, **self._said(candidate, pair, cost)))
        if not chosen:
            return False
        before = Order(inside.block).peak
        for candidate, pair, cost in chosen:
            place = place_of(candidate.collective.location)
            report(MATMUL_LOOP.at(place, **self._said(candidate, pair, cost)))
            with candidate.collective.context:
                build(candidate, self.channels, self.terms.both_ways(pair), self.unroll)
        after = Order(read_block(inside.block, inside.owner).block).peak
        report(MATMUL_PEAK.at(place_of(inside.owner.location), count=len(chosen), before=before, after=after))
        return True

    def _said(self, candidate: Candidate, pair: Pair, cost: Price) -> dict[str, Any]:
        return {
            "kind": candidate.collective.name.removeprefix("stablehlo."),
            "type": candidate.whole.type,
            "products": "a product" if len(candidate.parts) == 1 else f"{len(candidate.parts)} products",
            "count": candidate.count,
            "whole": candidate.bytes,
            "held": resident_bytes(pair, self.terms.both_ways(pair)),
            "apart": f"{cost.apart * 1e6:.1f}",
            "in_turn": f"{cost.in_turn * 1e6:.1f}",
            "profile": self.machine.name,
        }
