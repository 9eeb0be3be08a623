"""``shardpass-combine``: fewer and smaller all_reduces in a per-device program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.annotations import AXES, CAUSE, SHARDING, get_text, main_of
from shardpass.ir.reductions import all_reduce, channels
from shardpass.ir.tensors import operation, walk_blocks
from shardpass.ops.reducers import combiner_of, is_identity
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register

# Linear whatever the device holds: they move elements, or change sign.
MOVES = frozenset({"stablehlo.transpose", "stablehlo.reshape", "stablehlo.slice", "stablehlo.reverse"})


@register
@dataclass(frozen=True)
class Combine(ModulePass):
    """Lets an all_reduce wait where that makes collectives fewer or smaller.

    An all_reduce whose result has one use moves past that use where the two commute and nothing grows: past a transpose,
    reshape, slice, reverse, (for sums) negate, and past a reduce with the same combiner. Where both operands of an op
    that is the combiner itself (an ``add`` of two sums) are all_reduces over the same groups, one serves for both. So
    partial sums stay unreduced through linear ops, as in gradients of weights that are used more than once.

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
          %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %2 = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %2 : tensor<f32>
          }) : (tensor<8xf32>) -> tensor<8xf32>
          return %1 : tensor<8xf32>
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-combine"
    summary = "fewer and smaller all_reduces: sums wait past linear ops and join"

    def run(self, module: Any) -> None:
        with ir.Location.unknown(module.context):
            work = _Work(module)
            for block in list(walk_blocks(operation(main_of(module)))):
                work.block(block)
            for op in work.dead:  # now, not before: the address of an erased op may be given to a new one
                op.erase()


class _Work:
    """One pass over each block, in order; an all_reduce that has moved on is looked at again. O(ops + moves)."""

    def __init__(self, module: Any) -> None:
        self.channels = channels(module)
        self.dead: list[Any] = []
        self.uses: Counter[Any] = Counter()
        self.user: dict[Any, Any] = {}
        for block in walk_blocks(operation(main_of(module))):
            for op in map(operation, block.operations):
                for value in op.operands:
                    self.uses[value] += 1
                    self.user[value] = op

    def block(self, block: Any) -> None:
        ops = [operation(op) for op in block.operations]
        here = {result for op in ops for result in op.results}
        waiting = [op for op in ops if _is_plain(op)]
        for reduction in waiting:  # grows while it is walked
            moved = self._move(reduction, here)
            if moved is not None:
                waiting.append(moved)

    def _move(self, reduction: Any, here: set[Any]) -> Any:
        """The all_reduce that replaces ``reduction`` further on; None where it stays. ``here``: values of the block."""
        result = reduction.results[0]
        if result not in here or self.uses[result] != 1:
            return None
        user = self.user[result]
        if len(user.results) != 1 or user.results[0] not in here:
            return None
        replaced = self._past(reduction, user, here)
        return self._rebuild(replaced, user, here) if replaced else None

    def _past(self, reduction: Any, user: Any, here: set[Any]) -> list[Any]:
        """The all_reduces that one after ``user`` can replace; none where they do not commute."""
        combiner = combiner_of(reduction)
        joins = user.name == f"stablehlo.{combiner}" or (user.name == "stablehlo.subtract" and combiner == "add")
        if joins:
            return self._both_operands(user, combiner, here)
        if user.name in MOVES or (user.name == "stablehlo.negate" and combiner == "add"):
            return [reduction]
        if user.name == "stablehlo.reduce" and len(user.operands) == 2 and user.operands[0] == reduction.results[0]:
            same = combiner_of(user) == combiner and is_identity(user.operands[1], combiner)
            return [reduction] if same else []
        return []

    def _both_operands(self, user: Any, combiner: str, here: set[Any]) -> list[Any]:
        """The all_reduces that make the two operands of ``user``, where they are over the same groups."""
        pair = [operation(value.owner) for value in user.operands if not isinstance(value.owner, ir.Block)]
        if len(pair) != 2 or pair[0] == pair[1]:
            return []
        alike = all(
            op.results[0] in here and self.uses[op.results[0]] == 1 and _is_plain(op) and combiner_of(op) == combiner
            for op in pair
        )
        return pair if alike and _groups(pair[0]) == _groups(pair[1]) else []

    def _rebuild(self, replaced: list[Any], user: Any, here: set[Any]) -> Any:
        """One all_reduce behind ``user`` instead of those in ``replaced`` before it."""
        first = replaced[0]
        sources = {op.results[0]: op.operands[0] for op in replaced}
        for index, value in enumerate(user.operands):
            if value in sources:
                user.operands[index] = sources[value]
                self.user[sources[value]] = user
        result = user.results[0]
        with ir.InsertionPoint.after(user), first.location:
            new = all_reduce(result, _groups(first), combiner_of(first), next(self.channels))
        for name in (CAUSE, AXES, SHARDING):
            said = dict.fromkeys(text for op in replaced if (text := get_text(op, name)))
            if said:
                new.attributes[name] = ir.StringAttr.get("; ".join(said) if name == CAUSE else next(iter(said)))
        result.replace_all_uses_except(new.results[0], new)
        self.uses[new.results[0]], self.uses[result] = self.uses[result], 1
        if result in self.user:
            self.user[new.results[0]] = self.user[result]
        self.user[result] = new
        here.add(new.results[0])
        here -= sources.keys()
        self.dead += replaced
        return new


def _is_plain(op: Any) -> bool:
    """An all_reduce of one operand with a combiner that is one op."""
    return bool(op.name == "stablehlo.all_reduce" and len(op.operands) == 1 and combiner_of(op))


def _groups(op: Any) -> list[list[int]]:
    found: list[list[int]] = np.asarray(ir.DenseElementsAttr(op.attributes["replica_groups"])).tolist()
    return found
