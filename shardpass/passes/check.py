"""``shardpass-check``: the module unchanged, findings reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NO_MESH, NOT_PROPAGATED
from shardpass.ir.annotations import MESH, SCOPE, SHARDING, Signature, get_text, main_of, mesh_of, num_devices
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import is_ranked
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.program import Block, Program
from shardpass.program.validate import check, uneven
from shardpass.sharding import Sharding


@register
@dataclass(frozen=True)
class Check(ModulePass):
    """Checks every sharding against its value and reports what is wrong; changes nothing.

    Errors: a value without a sharding, one that does not fit its rank or the module's devices. Remarks: dimensions
    of arguments and results that do not divide and are padded.

    Options:
        remarks: report what is legal but costs memory or time

    Input:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
            return %x : tensor<8xf32>
          }
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, shardpass.mesh = "mesh['x'=2]"} {
          func.func @main(%x: tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<8xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
            return %x : tensor<8xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-check"
    summary = "report shardings that are missing, do not fit, or waste memory"

    remarks: bool = False

    def run(self, module: Any) -> None:
        main = main_of(module)
        devices = num_devices(module)
        if devices is None or mesh_of(module) is None:
            raise NO_MESH.error(place_of(main.location), attribute=MESH, pipeline="check")
        program = Program(module, "check", rules=False)
        checker = _Checker(program, devices, self.remarks)
        signature = Signature(main)
        kind = ir.TypeAttr(main.attributes["function_type"]).value
        for index, (argument, row) in enumerate(zip(program.body.arguments, signature.arguments, strict=True)):
            checker.value(row, [argument.type], argument.location, f"argument {index}", boundary=True)
        checker.block(program.body)
        for index, (result, row) in enumerate(zip(kind.results, signature.results, strict=True)):
            checker.value(row, [result], main.location, f"result {index}", boundary=True)


class _Checker:
    def __init__(self, program: Program, devices: int, remarks: bool) -> None:
        self.program, self.devices, self.remarks = program, devices, remarks

    def block(self, block: Block) -> None:
        for node in block.nodes:
            op = node.op
            if not node.manual and any(map(is_ranked, op.results)):
                self.value(op.attributes, [r.type for r in op.results], op.location, op.name, scope=get_text(op, SCOPE))
            for inner in node.blocks:
                self.block(inner)

    def value(
        self,
        attributes: Any,
        types: list[Any],
        location: Any,
        where: str,
        *,
        boundary: bool = False,
        scope: str | None = None,
    ) -> None:
        place = place_of(location)
        if SHARDING not in attributes:
            if any(isinstance(kind, ir.RankedTensorType) for kind in types):
                report(NOT_PROPAGATED.at(place, op=where))
            return
        shardings: list[Sharding] = self.program.shardings(attributes, types, location) or []
        for sharding, kind in zip(shardings, types, strict=True):
            for found in check(
                sharding, kind, self.devices, place, where=where, source="mhlo.num_partitions", scope=scope
            ):
                report(found)
            if self.remarks and boundary:
                for found in uneven(sharding, kind, place):
                    report(found)
