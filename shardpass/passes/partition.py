"""``shardpass-partition``: rewrites whole arrays to tiles, with ``planning`` and ``partition.emit``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.ir.machines import machine_for, machine_of, set_module_machine
from shardpass.partition.emit import emit
from shardpass.partition.splices import spliced_table
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.planning.plan.loops import with_loops
from shardpass.planning.plan.plan import ProgramPlan
from shardpass.planning.plan.planner import plan_program
from shardpass.planning.price.loops import OFF, LoopTerms
from shardpass.program.table import Table


@register
@dataclass(frozen=True)
class Partition(ModulePass):
    """Rewrites ``main`` to the program of one device: every type becomes the type of a tile.

    Each op is split according to its rule, in the way that moves the fewest bytes. Operands with another split pass
    through ``custom_call @shardpass.redistribute``. Partial sums are completed by ``all_reduce``, or by
    ``reduce_scatter`` if the result is split over the same axes. An op without a rule is computed whole on every
    device, and a remark says so. Arguments and results get attributes for their global type and sharding.

    Options:
        machine: the machine for which the module is decided and planned, as `shardpass-propagate` takes it; "" for the
            one that the module names
        matmul-loops: which products are overlapped with their collective, as in ``shardpass-collective-matmul``: the
            plan lists them, and that pass builds them
        matmul-one-way: as in ``shardpass-collective-matmul``

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.machine = "h100", shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"})
              -> (tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) {
            %0 = stablehlo.negate %x {mhlo.sharding = "{devices=[2,1]<=[2]}"} : tensor<8x4xf32>
            return %0 : tensor<8x4xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.machine = "h100", shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(
              %x: tensor<4x4xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<8x4xf32>,
                shardpass.sharding = "{devices=[2,1]<=[2]}"})
              -> (tensor<4x4xf32> {mhlo.sharding = "{manual}", shardpass.global_type = tensor<8x4xf32>,
                shardpass.sharding = "{devices=[2,1]<=[2]}"}) {
            %0 = stablehlo.negate %x : tensor<4x4xf32>
            return %0 : tensor<4x4xf32>
          }
        }
    """

    name = "shardpass-partition"
    summary = "whole arrays become tiles; changes of sharding are made explicit"

    machine: str = ""
    matmul_loops: str = OFF
    matmul_one_way: bool = False
    shared = frozenset({"machine", "matmul-loops", "matmul-one-way"})

    def run(self, module: Any) -> None:
        table, plan = self.plan(module)
        emit(plan, table.handles)

    def plan(self, module: Any) -> tuple[Table, ProgramPlan]:
        """Plan the per-device program. Returns the plan with the table from which it is built, for the machine named
        by ``module``.
        """
        set_module_machine(module, machine_for(module, self.name, self.machine))
        table = spliced_table(module)
        machine, decided = machine_of(module), table.decided  # by plans of the program before, on whichever machine
        if decided is not None and decided.clock.machine != machine:
            decided = None
        plan: ProgramPlan | None = table.plan
        if plan is None or plan.machine != machine:
            plan = plan_program(table.program, table.all_shardings(), decided, machine=machine)
        return table, with_loops(plan, LoopTerms(self.matmul_loops, self.matmul_one_way))
