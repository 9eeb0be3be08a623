"""``shardpass-check``: reports errors and remarks on a module's shardings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from shardpass.diagnostics import Diagnostic, Severity, report
from shardpass.diagnostics.table_passes import NO_MESH, NOT_PROPAGATED
from shardpass.ir.annotations import MESH, SCOPE, get_text, main_of, num_devices
from shardpass.ir.locations import place_of
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.partition.findings import Sends, planned
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.program import Array, Op, Program, constraints_of
from shardpass.program.read import Handles
from shardpass.program.shardings import Shardings
from shardpass.program.table import table_of
from shardpass.program.validate import check, uneven
from shardpass.sharding import Sharding


@register
@dataclass(frozen=True)
class Check(ModulePass):
    """Checks every sharding against its value and reports errors; does not change the module.

    Errors: a value without a sharding, and a sharding that does not fit the rank of its value or the module's devices.
    The options also report the redistributions that partitioning would insert, with their cost; the pass plans the
    module for that.

    Options:
        redistributions: report every redistribution that sends bytes, as a remark
        strict: report every redistribution, as an error
        remarks: report legal shardings that cost memory or time: padding, full gathers, repeated work, whole arguments

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

    keeps_table: ClassVar[bool] = True

    redistributions: bool = False
    strict: bool = False
    remarks: bool = False

    def run(self, module: Any) -> bool:
        devices = num_devices(module)
        if devices is None:
            raise NO_MESH.error(place_of(main_of(module).location), attribute=MESH, pipeline="check")
        table = table_of(module, "check")
        checker = _Checker(table.program, table.handles, table.all_shardings(), devices, self.remarks)
        checker.run()
        if not checker.errors and (self.redistributions or self.strict or self.remarks):
            sends = Sends.ALL if self.strict else Sends.BYTES if self.redistributions else Sends.NONE
            for finding in planned(module, sends=sends, remarks=self.remarks):
                report(finding)
        return False


class _Checker:
    """Checks the sharding of each value. Equal combinations of sharding, type and mesh are checked once."""

    def __init__(self, program: Program, handles: Handles, shardings: Shardings, devices: int, remarks: bool) -> None:
        self.program, self.handles, self.shardings = program, handles, shardings
        self.devices, self.remarks = devices, remarks
        self.constrained = frozenset() if not remarks else constraints_of(program)
        self.fine: set[tuple[Sharding, Array, PrimeMesh]] = set()
        self.errors = 0

    def run(self) -> None:
        of = self.shardings.of
        for index, (value, argument) in enumerate(
            zip(self.program.body.arguments, self.handles.arguments[None], strict=True)
        ):
            self.value(of.get(value), value, argument, f"argument {index}", boundary=True, mesh=self.program.mesh)
        for op in self.program.body.every_op():
            if not op.is_manual:
                self.op(op)
        for index, value in enumerate(self.program.body.returned):
            sharding = self.shardings.results[index]
            self.value(sharding, value, self.handles.main, f"result {index}", boundary=True, mesh=self.program.mesh)

    def op(self, op: Op) -> None:
        for value in op.results:
            array, sharding = self.program.arrays[value], self.shardings.of.get(value)
            boundary = op.number in self.constrained
            fine = sharding is not None and (sharding, array, op.mesh) in self.fine and not boundary
            if array is None or fine:
                continue
            handle = self.handles.ops[op.number]
            if sharding is None:
                self._report(NOT_PROPAGATED.at(place_of(handle.location), op=op.name))
                return
            self.value(sharding, value, handle, op.name, boundary=boundary, mesh=op.mesh)

    def value(
        self,
        sharding: Sharding | None,
        value: int,
        holder: Any,
        where: str,
        *,
        boundary: bool = False,
        mesh: PrimeMesh,
    ) -> None:
        """Report the errors of a value's sharding. ``holder``: the op, main or block argument that has the value."""
        array = self.program.arrays[value]
        if array is None:
            return
        if sharding is None:
            self._report(NOT_PROPAGATED.at(place_of(holder.location), op=where))
            return
        if (sharding, array, mesh) in self.fine and not (self.remarks and boundary):
            return
        place = place_of(holder.location)
        kind = self.handles.types[value]
        scope = get_text(holder, SCOPE) if mesh.manual else None
        findings = list(
            check(sharding, kind, self.devices, place, where=where, source="mhlo.num_partitions", scope=scope)
        )
        if not findings:
            self.fine.add((sharding, array, mesh))
        if self.remarks and boundary:
            findings += uneven(sharding, kind, place)
        for finding in findings:
            self._report(finding)

    def _report(self, finding: Diagnostic) -> None:
        self.errors += finding.severity is Severity.ERROR
        report(finding)
