"""``shardpass-check``: the module unchanged, findings reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NO_MESH, NOT_PROPAGATED
from shardpass.ir.annotations import MESH, SCOPE, get_text, main_of, num_devices
from shardpass.ir.locations import place_of
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.program import NOTHING_SAID, Array, Op, OpKind, Program, Said
from shardpass.program.read import Handles, read_program
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
        devices = num_devices(module)
        if devices is None:
            raise NO_MESH.error(place_of(main_of(module).location), attribute=MESH, pipeline="check")
        program, handles = read_program(module, "check")
        _Checker(program, handles, devices, self.remarks).run()


class _Checker:
    """Each value with what is said of it. Equal findings of equal shardings and types are looked for once."""

    def __init__(self, program: Program, handles: Handles, devices: int, remarks: bool) -> None:
        self.program, self.handles, self.devices, self.remarks = program, handles, devices, remarks
        self.fine: set[tuple[Sharding, Array | None, str | None]] = set()

    def run(self) -> None:
        arguments = zip(self.program.body.arguments, self.handles.arguments[None], strict=True)
        for index, (value, argument) in enumerate(arguments):
            self.value(value, argument.location, f"argument {index}", boundary=True)
        for op in self.program.body.every_op():
            if op.kind is not OpKind.UNTOUCHED:
                handle = self.handles.ops[op.number]
                scope = get_text(handle, SCOPE) if op.mesh.manual else None
                self.op(op, handle, scope)
        location = self.handles.main.location
        for index, (value, said) in enumerate(zip(self.program.body.returned, self.program.results_said, strict=True)):
            self.said(said, value, location, f"result {index}", boundary=True)

    def op(self, op: Op, handle: Any, scope: str | None) -> None:
        for value in op.results:
            if self.program.arrays[value] is None:
                continue
            if value not in self.program.said:
                report(NOT_PROPAGATED.at(place_of(handle.location), op=op.name))
                return
            self.value(value, handle.location, op.name, scope=scope)

    def value(self, value: int, location: Any, where: str, *, boundary: bool = False, scope: str | None = None) -> None:
        said = self.program.said.get(value, NOTHING_SAID)
        self.said(said, value, location, where, boundary=boundary, scope=scope)

    def said(
        self,
        said: Said,
        value: int,
        location: Any,
        where: str,
        *,
        boundary: bool = False,
        scope: str | None = None,
    ) -> None:
        array = self.program.arrays[value]
        if said.sharding is None:
            if array is not None:
                report(NOT_PROPAGATED.at(place_of(location), op=where))
            return
        key = (said.sharding, array, scope)
        if key in self.fine and not (self.remarks and boundary):
            return
        place, kind = place_of(location), self.handles.values[value].type
        found = list(
            check(said.sharding, kind, self.devices, place, where=where, source="mhlo.num_partitions", scope=scope)
        )
        if self.remarks and boundary:
            found += uneven(said.sharding, kind, place)
        if not found:
            self.fine.add(key)
        for finding in found:
            report(finding)
