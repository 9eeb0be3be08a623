"""``shardpass-check-replication``: reports outputs of manual regions that may not be replicated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NO_MESH
from shardpass.ir.annotations import MESH, main_of, mesh_of, num_devices
from shardpass.ir.locations import place_of
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.replication.check import check_replication


@register
@dataclass(frozen=True)
class CheckReplication(ModulePass):
    """Checks that every output of a manual region (``shard_map``) is replicated where its sharding says so.

    Each value of a region is followed: which devices certainly have the same. Collectives make devices agree, inputs
    that are split and ``partition_id`` make them differ. An output that its out sharding calls replicated over an axis,
    and whose value may differ along it, is an error. Reads an imported module; changes nothing.

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%arg0: tensor<8xf32>) -> tensor<4xf32> {
            %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
            %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
            %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
            ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
              %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
              stablehlo.return %4 : tensor<f32>
            }) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<4xf32>
            %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
            return %3 : tensor<4xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%arg0: tensor<8xf32>) -> tensor<4xf32> {
            %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<8xf32>) -> tensor<8xf32>
            %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xf32>) -> tensor<4xf32>
            %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
            ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
              %4 = stablehlo.add %arg1, %arg2 : tensor<f32>
              stablehlo.return %4 : tensor<f32>
            }) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<4xf32>
            %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
            return %3 : tensor<4xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-check-replication"
    summary = "report outputs of manual regions that claim to be replicated and may not be"

    keeps_table: ClassVar[bool] = True

    def run(self, module: Any) -> bool:
        main = main_of(module)
        devices, mesh = num_devices(module), mesh_of(module)
        if devices is None or mesh is None:
            raise NO_MESH.error(place_of(main.location), attribute=MESH, pipeline="check")
        for finding in check_replication(main, devices, mesh):
            report(finding)
        return False
