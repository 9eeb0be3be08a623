"""``shardpass-combine``: merges all_reduces of a per-device program, and makes them smaller.

Problem. After partitioning each partial sum is reduced where it is made. An all_reduce commutes with linear ops, so it
may wait: after a ``slice`` it sends less, and of two sums that are added one all_reduce serves for both.

State. ``waiting``: the all_reduces of a block that may move, in order; one that moved is looked at again where it is
now. ``dead``: those that were replaced. They are erased when the walk is over, since the address of an erased op may be
given to a new one, and until then they still count among the uses of their operands (``_live_uses`` leaves them out).

Invariants. An all_reduce moves only past its one live use, which is in the same block, so no collective is done twice
or on another path. What moves is never larger than before.

Case 0, of all collectives: one that sends what another of its block sends goes (``partition.equal_collectives``).

Cases, for ``%s = all_reduce(%x)`` and the one op that uses ``%s``; on 2 devices ``%x`` is ``[1,2]`` and ``[3,4]``:

1. It moves elements or changes their sign (transpose, reshape, slice, reverse; negate, of a sum): ``slice(%s)[0:1]`` is
   ``all_reduce([1] | [3])``, which sends one element for two.
2. It is a ``reduce`` with the same combiner, from that combiner's identity: ``reduce(%s)`` is ``all_reduce(3 | 7)``.
3. It is the combiner itself, and its other operand ``%t`` is an all_reduce over the same groups that has no other use:
   ``%s + %t`` is ``all_reduce(%x + %y)``. Of sums also ``%s - %t``.

Cost: one walk that finds the all_reduces; where there is none, nothing more. Then O(moves).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo
from numpy.typing import NDArray

from shardpass.ir.annotations import AXES, CAUSE, SHARDING, get_text, main_of
from shardpass.ir.reductions import all_reduce, channels
from shardpass.ir.walk import CONTROL_FLOW, OpList, named, operation, read_blocks
from shardpass.ops.linear import MOVES
from shardpass.ops.reducers import combiner_of, is_identity
from shardpass.partition.equal_collectives import merge_equal
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register

ALL_REDUCE, GROUPS, CHANNEL = "stablehlo.all_reduce", "replica_groups", "channel_handle"
HOLD_COLLECTIVES = CONTROL_FLOW | {"func.func"}  # other regions are reducers


@register
@dataclass(frozen=True)
class Combine(ModulePass):
    """Combines equal collectives, and delays an all_reduce if that makes collectives fewer or smaller.

    Collectives of one block that differ only in their channel become one collective. Ops that use their results, and
    are then equal, become one op too.

    An all_reduce whose result has one use moves past that use if the two ops commute and the array does not grow: past
    a transpose, reshape, slice or reverse, for sums past a negate, and past a reduce with the same combiner. If both
    operands of an op that is itself the combiner (an ``add`` of two sums) are all_reduces over the same groups, one
    all_reduce of its result replaces both. Partial sums thus stay unreduced through linear ops, as in gradients of
    weights that are used more than once.

    Input:

        func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
          %0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }) : (tensor<8xf32>) -> tensor<8xf32>
          %1 = "stablehlo.all_reduce"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
          }) : (tensor<8xf32>) -> tensor<8xf32>
          %2 = stablehlo.add %0, %1 : tensor<8xf32>
          return %2 : tensor<8xf32>
        }

    Output:

        func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
          %0 = stablehlo.add %x, %y : tensor<8xf32>
          %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-combine"
    summary = "fewer and smaller all_reduces: sums wait past linear ops and join"

    def run(self, module: Any) -> bool:
        blocks = read_blocks(main_of(module))
        merged = _merge_equal(blocks)
        if merged:
            blocks = read_blocks(main_of(module))
        with_sums = [inside for inside in blocks if ALL_REDUCE in inside.names]
        if not with_sums:
            return merged
        with ir.Location.unknown(module.context):
            work = _Work(module)
            for inside in with_sums:
                work.block(inside)
            for op in work.dead:
                op.erase()
        return merged or bool(work.dead)


def _merge_equal(blocks: list[OpList]) -> bool:
    """Merge equal collectives in every block (case 0). Returns whether the module changed."""
    dead = [op for inside in blocks if inside.owner_name in HOLD_COLLECTIVES for op in merge_equal(inside)]
    for op in dead:
        op.erase()
    return bool(dead)


class _Work:
    """Combines the collectives of one module, as the head of this file describes."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.dead: dict[Any, None] = {}
        self.plain: dict[Any, str] = {}  # all_reduce -> its combiner; "" for one that cannot move

    @cached_property
    def channels(self) -> Iterator[int]:
        """Unused channel numbers; the first access walks over the whole module."""
        return channels(self.module)

    def block(self, inside: OpList) -> None:
        waiting = [op for op in named([inside], (ALL_REDUCE,)) if self._combiner(op)]
        for reduction in waiting:  # grows while it is walked
            if reduction not in self.dead:
                moved = self._move(reduction)
                if moved is not None:
                    waiting.append(moved)

    def _combiner(self, op: Any) -> str:
        """Return the combiner of an all_reduce of one operand; "" if its region is not a single op."""
        if op not in self.plain:
            self.plain[op] = combiner_of(op) if len(op.operands) == 1 else ""
        return self.plain[op]

    def _live_uses(self, value: Any) -> list[Any]:
        """Return the ops that use ``value``, without replaced ops; an op with two uses is listed twice."""
        users = [operation(use.owner) for use in value.uses]
        return users if len(users) < 2 else [user for user in users if user not in self.dead]

    def _move(self, reduction: Any) -> Any:
        """Move ``reduction`` past its only user; return the new all_reduce, or None if nothing moved."""
        users = self._live_uses(reduction.results[0])
        if len(users) != 1 or len(users[0].results) != 1 or users[0].block != reduction.block:
            return None
        replaced = self._past(reduction, users[0])
        return self._rebuild(replaced, users[0]) if replaced else None

    def _past(self, reduction: Any, user: Any) -> list[Any]:
        """Return the all_reduces that an all_reduce after ``user`` can replace; [] if they do not commute."""
        combiner, name = self._combiner(reduction), user.name
        if name == f"stablehlo.{combiner}" or (name == "stablehlo.subtract" and combiner == "add"):
            return self._both_operands(user, combiner)
        if name in MOVES or (name == "stablehlo.negate" and combiner == "add"):
            return [reduction]
        if name == "stablehlo.reduce" and len(user.operands) == 2 and user.operands[0] == reduction.results[0]:
            same = combiner_of(user) == combiner and is_identity(user.operands[1], combiner)
            return [reduction] if same else []
        return []

    def _both_operands(self, user: Any, combiner: str) -> list[Any]:
        """Return the all_reduces that compute both operands of ``user``, if they are over the same groups."""
        pair = [operation(value.owner) for value in user.operands if not isinstance(value.owner, ir.Block)]
        if len(pair) != 2 or pair[0] == pair[1]:
            return []
        alike = all(
            op.name == ALL_REDUCE
            and op.block == user.block
            and self._combiner(op) == combiner
            and len(self._live_uses(op.results[0])) == 1
            for op in pair
        )
        return pair if alike and pair[0].attributes[GROUPS] == pair[1].attributes[GROUPS] else []

    def _channel(self, replaced: Any) -> int:
        """Return the channel number of a replaced all_reduce, for its replacement."""
        if CHANNEL in replaced.attributes:
            return int(hlo.ChannelHandle(replaced.attributes[CHANNEL]).handle)
        return next(self.channels)

    def _rebuild(self, replaced: list[Any], user: Any) -> Any:
        """Build one all_reduce after ``user`` instead of those in ``replaced`` before it."""
        first = replaced[0]
        sources = {op.results[0]: op.operands[0] for op in replaced}
        for index, value in enumerate(user.operands):
            if value in sources:
                user.operands[index] = sources[value]
        result = user.results[0]
        with ir.InsertionPoint.after(user), first.location:
            new = all_reduce(result, _groups(first), self._combiner(first), self._channel(first))
        for name in (CAUSE, AXES, SHARDING):
            texts = dict.fromkeys(text for op in replaced if (text := get_text(op, name)))
            if texts:
                new.attributes[name] = ir.StringAttr.get("; ".join(texts) if name == CAUSE else next(iter(texts)))
        result.replace_all_uses_except(new.results[0], new)
        self.dead.update(dict.fromkeys(replaced))
        self.plain[new] = self._combiner(first)
        return new


def _groups(op: Any) -> NDArray[np.int64]:
    return np.asarray(ir.DenseElementsAttr(op.attributes[GROUPS]), np.int64)
