"""``shardpass-collective-matmul``: overlaps a product with its all_gather or reduce_scatter.

Of the collectives that partitioning made, its plan says which become loops (``planning/plan/loops.py``) and has marked
their products (``shardpass.in_turn``). Of those that the user wrote, and in a module that was partitioned without a
word of loops, this pass decides by the same terms (``planning/price/loops.py``). The pairs come from
``partition/matmul_loops/find.py`` and built by ``build.py``, which also says why its rounds are a loop; ``replace.py``
does both for a module.

Cost: nothing where it is off. Else one walk; for each candidate a walk over the ops between its collective and its
products; where a loop is built, what is alive in its block is counted before and after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.ir.annotations import IN_TURN, mesh_of, num_devices
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.planning.price.loops import OFF, LoopTerms
from shardpass.sharding import Mesh


@register
@dataclass(frozen=True)
class CollectiveMatmul(ModulePass):
    """Overlaps matrix products with their collectives, in loops of collective_permutes.

    An all_gather whose result is used by products alone becomes a loop: tiles are sent around the ring of devices, and
    each device multiplies its current tile while it receives the next. The gathered array is never built. A product
    whose result is reduce_scattered becomes a loop in which partial sums are sent around, so the whole product is never
    built either. Off by default. A remark states the memory of each loop and its modelled time.

    Options:
        matmul-loops: "off"; "all": every such pair; "memory": pairs whose loop needs less memory than the avoided
            array; or the machine, on which a loop must take less modelled time: "cpu", "a100", "h100", "v5p", or a file
            NAME.toml
        matmul-one-way: send tiles around the ring in one direction; by default half of them go each way, among more
            than 4 devices
        matmul-unroll: up to so many tiles the rounds are unrolled; more are a ``stablehlo.while``, which needs less
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
        from shardpass.partition.matmul_loops.replace import Loops  # off unless asked for

        terms = LoopTerms(self.matmul_loops, self.matmul_one_way)
        loops = Loops(terms, self.matmul_unroll, module, mesh_of(module) or Mesh((("devices", devices),)), planned)
        changed = loops.build(devices)
        if planned:
            loops.forget_marks()
        return changed or planned
