"""``shardpass-collective-matmul``: a product in turn with the all_gather before it, or the reduce_scatter behind it.

Of the collectives that partitioning made, its plan says which become loops (``planning/loops.py``), and has said so on
the products (``shardpass.in_turn``). Of those that the user wrote, and in a module that was partitioned without a word
of loops, this pass decides by the same terms (``planning/loop_price.py``). The pairs are found by
``partition/matmul_loops/find.py`` and built by ``build.py``, which also says why its rounds are a loop.

Cost: nothing where it is off. Else one walk; for each candidate a walk over the ops between its collective and its
products; where a loop is built, what is alive in its block is counted before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import MATMUL_LEFT, MATMUL_LOOP, MATMUL_NOT_BUILT, MATMUL_PEAK
from shardpass.ir.annotations import CAUSE, IN_TURN, get_text, main_of, mesh_of, num_devices, text
from shardpass.ir.for_xla import mark_manual
from shardpass.ir.locations import place_of
from shardpass.ir.order import Order
from shardpass.ir.reductions import channels
from shardpass.ir.walk import OpList, OpLists, named, read_block, read_blocks
from shardpass.partition.matmul_loops.build import build
from shardpass.partition.matmul_loops.find import DOT, Candidate, candidates
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.planning.loop_price import OFF, LoopTerms, Pair, Price, held, price
from shardpass.redistribute.problem.sub_axes import sub_axes_of
from shardpass.sharding import Mesh


@register
@dataclass(frozen=True)
class CollectiveMatmul(ModulePass):
    """Does matrix products in turn with the collective beside them, in loops of collective_permutes.

    An all_gather whose result only products take becomes a loop: tiles go round the ring of devices, and each device
    multiplies the tile that it holds while the next one comes. So the gathered array is never made. A product whose
    result is scattered as a sum becomes a loop in which the sums go round, so that the whole product is not made either.
    Off by default. A remark says what each loop holds and how long it takes under the profile.

    Options:
        matmul-loops: "off"; "all": every such pair; "memory": where the loop holds less than the array that is not
            made; or the machine for which loops are built where they take less modelled time: "default", "cpu", "a100", "h100", "v5p", "ethernet", "pod", or a file NAME.json
        matmul-one-way: tiles go round the ring in one direction; by default half of them go each way, among more than
            4 devices
        matmul-unroll: up to so many tiles the rounds are written out; more are a ``stablehlo.while``, which needs less
            memory

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>) -> tensor<8x5xf32> {
            %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4x3xf32>) -> tensor<8x3xf32>
            %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x3xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
            return %1 : tensor<8x5xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
          func.func @main(%arg0: tensor<4x3xf32>, %arg1: tensor<3x5xf32>) -> tensor<8x5xf32> {
            %0 = "stablehlo.collective_permute"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[1, 0], [0, 1]]> : tensor<2x2xi64>}> : (tensor<4x3xf32>) -> tensor<4x3xf32>
            %1 = stablehlo.partition_id {mhlo.sharding = "{manual}"} : tensor<ui32>
            %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
            %3 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
            %cst = stablehlo.constant dense<0.000000e+00> : tensor<8x5xf32>
            %c = stablehlo.constant dense<0> : tensor<i32>
            %c_0 = stablehlo.constant dense<4> : tensor<i32>
            %4 = stablehlo.multiply %2, %c_0 : tensor<i32>
            %5 = stablehlo.dynamic_update_slice %cst, %3, %4, %c : (tensor<8x5xf32>, tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x5xf32>
            %c_1 = stablehlo.constant dense<1> : tensor<i32>
            %6 = stablehlo.add %2, %c_1 : tensor<i32>
            %c_2 = stablehlo.constant dense<2> : tensor<i32>
            %7 = stablehlo.remainder %6, %c_2 : tensor<i32>
            %8 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x5xf32>) -> tensor<4x5xf32>
            %c_3 = stablehlo.constant dense<0> : tensor<i32>
            %c_4 = stablehlo.constant dense<4> : tensor<i32>
            %9 = stablehlo.multiply %7, %c_4 : tensor<i32>
            %10 = stablehlo.dynamic_update_slice %5, %8, %9, %c_3 : (tensor<8x5xf32>, tensor<4x5xf32>, tensor<i32>, tensor<i32>) -> tensor<8x5xf32>
            return %10 : tensor<8x5xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-collective-matmul"
    example = "{matmul-loops=all}"
    summary = "products in turn with all_gathers and reduce_scatters (off unless asked for)"

    matmul_loops: str = OFF
    matmul_one_way: bool = False
    matmul_unroll: int = 2

    shared = frozenset({"matmul-loops", "matmul-one-way"})

    def run(self, module: Any) -> bool:
        planned = IN_TURN in module.operation.attributes
        if self.matmul_loops == OFF and not planned:
            return False
        devices = num_devices(module)
        if devices is None:
            return False
        work = _Work(self, module, mesh_of(module) or Mesh((("devices", devices),)), planned)
        changed = [inside for inside in read_blocks(main_of(module)) if work.block(inside, devices)]
        if changed:
            mark_manual(OpLists(module.operation))
        if planned:
            _forget_marks(module)
        return bool(changed) or planned


class _Work:
    """What is done in one module. ``planned``: partitioning has said which of its own collectives become loops."""

    def __init__(self, options: CollectiveMatmul, module: Any, mesh: Mesh, planned: bool) -> None:
        self.terms = LoopTerms(options.matmul_loops, options.matmul_one_way)
        self.unroll = options.matmul_unroll
        self.planned = planned
        self.channels = channels(module)
        self.sub_axes = sub_axes_of(mesh)

    def _is_taken(self, candidate: Candidate, pair: Pair, cost: Price) -> bool:
        if not self.planned or get_text(candidate.collective, CAUSE) is None:  # the user's own: no plan knows it
            return self.terms.take(pair, cost)
        kind = candidate.collective.name.removeprefix("stablehlo.")
        said = [f"{kind} {part.blocks.side}" if pair.is_gather else kind for part in candidate.parts]
        return [get_text(part.op, IN_TURN) for part in candidate.parts] == said

    def block(self, inside: OpList, devices: int) -> bool:
        """Builds the loops of one block; whether there was one."""
        taken: set[Any] = set()
        chosen = []
        profile = self.terms.profile
        for candidate in candidates(inside, devices):
            ops = {part.op for part in candidate.parts}
            if ops & taken:
                continue
            pair = candidate.pair
            cost = price(pair, profile, self.sub_axes, self.terms.both_ways(pair))
            if self._is_taken(candidate, pair, cost):
                taken |= ops
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
            "held": held(pair, self.terms.both_ways(pair)),
            "apart": f"{cost.apart * 1e6:.1f}",
            "in_turn": f"{cost.in_turn * 1e6:.1f}",
            "profile": self.terms.profile.name,
        }


def _forget_marks(module: Any) -> None:
    """Takes away what partitioning said; what is said of a product that is still there was not built."""
    del module.operation.attributes[IN_TURN]
    for op in named(OpLists(module.operation).blocks, (DOT,)):
        if IN_TURN in op.attributes:
            report(MATMUL_NOT_BUILT.at(place_of(op.location), kind=text(op.attributes[IN_TURN]).split()[0]))
            del op.attributes[IN_TURN]
