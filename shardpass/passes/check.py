"""``shardpass-check``: the module unchanged, findings reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import report
from shardpass.diagnostics.table_passes import NO_MESH, NOT_PROPAGATED, SCOPE_OFF_MESH
from shardpass.ir.annotations import MANUAL, MESH, SCOPE, SHARDING, Signature, main_of, mesh_of, num_devices, text
from shardpass.ir.locations import place_of
from shardpass.ir.walk import CONTROL_FLOW, read_block
from shardpass.ops.splits.prime_mesh import prime_mesh
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.validate import check, read_for, uneven
from shardpass.sharding import Mesh, Sharding, parse_sharding


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

    def run(self, module: Any) -> bool:
        main = main_of(module)
        devices, mesh = num_devices(module), mesh_of(module)
        if devices is None or mesh is None:
            raise NO_MESH.error(place_of(main.location), attribute=MESH, pipeline="check")
        checker = _Checker(devices, mesh, self.remarks)
        signature = Signature(main)
        kind = ir.TypeAttr(main.attributes["function_type"]).value
        block = main.regions[0].blocks[0]
        for index, (argument, row) in enumerate(zip(block.arguments, signature.arguments, strict=True)):
            checker.boundary(row, argument.type, argument.location, f"argument {index}")
        checker.blocks(main, block)
        for index, (result, row) in enumerate(zip(kind.results, signature.results, strict=True)):
            checker.boundary(row, result, main.location, f"result {index}")
        return False


@dataclass(slots=True)
class _Checker:
    """``fine``: what was found without fault, so that each sharding is looked at once for each type and scope."""

    devices: int
    mesh: Mesh
    remarks: bool
    fine: set[tuple[Any, ...]] = field(default_factory=set)
    scopes: set[str] = field(default_factory=set)
    ranked: dict[Any, bool] = field(default_factory=dict)

    def boundary(self, attributes: Any, kind: Any, location: Any, where: str) -> None:
        """An argument or a result of ``main``."""
        if SHARDING not in attributes:
            if self._is_ranked(kind):
                report(NOT_PROPAGATED.at(place_of(location), op=where))
            return
        key = (attributes[SHARDING], (kind,), None)
        if self.remarks or key not in self.fine:
            shardings = self._value(key, location, where)
            for found in uneven(shardings[0], kind, place_of(location)) if self.remarks else ():
                report(found)

    def blocks(self, main: Any, block: Any) -> None:
        """The ops of ``main`` in order, and behind control flow those inside of it, save where all axes are manual."""
        todo = [iter(read_block(block, main).ops)]
        while todo:
            op = next(todo[-1], None)
            if op is None:
                todo.pop()
                continue
            manual = self._op(op)
            if len(op.regions) and op.name in CONTROL_FLOW and not manual and self._is_split(op):
                inner = [read_block(block, op).ops for region in op.regions for block in region.blocks]
                todo.append(iter([inside for ops in inner for inside in ops]))

    def _op(self, op: Any) -> bool:
        """Checks one op; whether it is in a region that is manual over all axes."""
        attributes = op.attributes
        said, scope = attributes.get(SHARDING, None), attributes.get(SCOPE, None)
        results = op.results
        types = (results[0].type,) if len(results) == 1 else tuple([value.type for value in results])
        key = (said, types, scope)
        if key in self.fine:
            return False
        if said is not None and text(said) == MANUAL:
            return True
        if scope is not None:
            self._scope(text(scope), op.location)
        if not any(map(self._is_ranked, types)):
            self.fine.add(key)
        elif said is None:
            report(NOT_PROPAGATED.at(place_of(op.location), op=op.name))
        else:
            self._value(key, op.location, op.name)
        return False

    def _value(self, key: tuple[Any, ...], location: Any, where: str) -> list[Sharding]:
        """Reports all that is wrong with the sharding of a value; the sharding of each result."""
        said, types, scope = key
        place = place_of(location)
        shardings = read_for(text(said), list(types), place)
        inside = None if scope is None else text(scope)
        wrong = [
            found
            for sharding, kind in zip(shardings, types, strict=True)
            for found in check(
                sharding, kind, self.devices, place, where=where, source="mhlo.num_partitions", scope=inside
            )
        ]
        for found in wrong:
            report(found)
        if not wrong:
            self.fine.add(key)
        return shardings

    def _scope(self, said: str, location: Any) -> None:
        """The axes of a manual region must be axes of the mesh. Raises ShardpassError (SP209)."""
        if said not in self.scopes:
            sharding = parse_sharding(said)
            on = sharding.on(self.mesh) if isinstance(sharding, Sharding) else None
            if on is None or prime_mesh(self.mesh).numbered(on.manual) is None:
                raise SCOPE_OFF_MESH.error(place_of(location), scope=said, mesh=self.mesh)
            self.scopes.add(said)

    def _is_ranked(self, kind: Any) -> bool:
        if kind not in self.ranked:
            self.ranked[kind] = isinstance(kind, ir.RankedTensorType)
        return self.ranked[kind]

    def _is_split(self, op: Any) -> bool:
        """Whether the regions of control flow were partitioned: all that goes in and comes out is an array."""
        return all(self._is_ranked(value.type) for value in (*op.operands, *op.results))
