"""What a collective and its products cost one after the other, and in turn.

A product takes as long as its multiplications, or as reading its operands and writing its result: the longer. In turn,
the first block is computed while nothing is sent; in each later round a device computes the blocks that it holds while
it sends what comes next: the longer of the two counts. Blocks that go both ways round travel together.

Example, 4 devices: 3 tiles are received in 52 us, one in 24, and the product takes 100 us: 152 us. In turn there are 4
blocks of 25 us: 25 + 3 * max(24, 25) = 100 us.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shardpass.ir.order import bytes_of
from shardpass.partition.matmul_loops.find import Candidate, Part
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.redistribute.program.steps import Step, StepKind
from shardpass.redistribute.terms.costs import Profile, step_seconds, tiers


@dataclass(frozen=True, slots=True)
class Price:
    """Modelled seconds: the collective and then its products, and the loops."""

    apart: float
    in_turn: float

    @property
    def pays(self) -> bool:
        return self.in_turn < self.apart


def rounds(count: int, both_ways: bool) -> list[int]:
    """How many blocks are computed in each round after the first, of ``count``: ``[2, 1]`` for 4, both ways."""
    return [2] * ((count - 1) // 2) + [1] * ((count - 1) % 2) if both_ways else [1] * (count - 1)


def price(candidate: Candidate, profile: Profile, sub_axes: SubAxes, both_ways: bool) -> Price:
    count, groups = candidate.count, candidate.groups
    network = tiers(profile, sub_axes)
    whole = candidate.bytes
    kind = StepKind.ALL_GATHER if candidate.is_gather else StepKind.REDUCE_SCATTER
    collective = step_seconds(Step(kind, (), groups, (), (), whole * (count - 1) // count, 0), network)
    pairs = np.stack([groups.ravel(), np.roll(groups, 1, axis=1).ravel()], axis=1)
    hop = step_seconds(Step(StepKind.COLLECTIVE_PERMUTE, (), pairs, (), (), whole // count, 0), network)
    apart, in_turn = collective, 0.0
    for part in candidate.parts:
        apart += _seconds(part, 1, profile)
        each = _seconds(part, count, profile)
        in_turn += each + sum(max(hop, blocks * each) for blocks in rounds(count, both_ways))
    return Price(apart, in_turn)


def _seconds(part: Part, count: int, profile: Profile) -> float:
    """One of ``count`` blocks of the product."""
    blocks, product = part.blocks, part.product
    cut = {blocks.side: blocks.dim}
    if blocks.other is not None:
        cut[1 - blocks.side] = blocks.other
    touched = sum(_cut_bytes(operand.type, cut.get(side), count) for side, operand in enumerate(part.op.operands))
    touched += _cut_bytes(part.op.results[0].type, blocks.result, count)
    return max(product.points / count / profile.products, touched / profile.copies)


def _cut_bytes(kind: Any, dim: int | None, count: int) -> int:
    whole = bytes_of(kind)
    return whole if dim is None else whole // count


def held(candidate: Candidate, both_ways: bool) -> int:
    """Bytes that a loop holds in place of the array that is not made.

    The tile at hand and the one that comes, each way; where blocks are terms of a sum, the term beside the sum too.
    """
    tiles = min(4 if both_ways else 2, candidate.count - 1)
    terms = [bytes_of(part.op.results[0].type) for part in candidate.parts if part.blocks.result is None]
    return tiles * (candidate.bytes // candidate.count) + max(terms, default=0)


def goes_both_ways(candidate: Candidate, allowed: bool) -> bool:
    """Among 4 devices or fewer, both ways together hold as many tiles as there are."""
    return allowed and candidate.count > 4
