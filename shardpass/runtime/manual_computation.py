"""Wrap the program of one device in an ``sdy.manual_computation`` over all devices, as Shardy hands it to XLA.

XLA runs a partitioner on every program of several partitions. What is in a ``sdy.manual_computation`` over all axes of
the mesh it leaves alone; what is around are arrays of which each device holds a tile. (It leaves the same program with
``{manual}`` on all arguments and results alone too. But then the partitioner is GSPMD's, and XLA says on stderr that
this one is going to be deprecated.)

``surround`` makes the region, for arrays and a mesh that the caller chose. ``over_devices`` chooses: the tiles of all
devices lie in a row along dimension 0, on a mesh of one axis.

    main(%x: tensor<4xf32>)              main(%x: tensor<8xf32> {[{"devices"}]})
      %0 = negate %x : tensor<4xf32>       manual_computation(%x) in_shardings=[{"devices"}] (%t: tensor<4xf32>) {
      return %0                              %0 = negate %t : tensor<4xf32>
                                             return %0 } : tensor<8xf32>

So it takes the tiles of every array: of one that they do not divide, one in an order of devices that no mesh has, one
that a single device holds. A tile of rank 0 has no dimension to lie along, and of one without elements XLA forgets that
it is split: both are marked as replicated, and only the region reads them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from shardpass.ir import annotations as names
from shardpass.ir.blocks import terminator
from shardpass.ir.constraints import mesh_attribute
from shardpass.ir.locations import first_names, named
from shardpass.ir.tensors import every_op, operation
from shardpass.ir.walk import CONTROL_FLOW
from shardpass.sharding import AxisRef, Mesh, Sharding, sdy_text
from shardpass.sharding.quoting import mlir_quoted

AXIS = "devices"
_READ_BY_XLA = re.compile(r"[ !#-&(-\[\]-~]*")  # printable ASCII without quotes and a backslash
MESH_NAME = "shardpass_mesh"


@dataclass(frozen=True, slots=True)
class Around:
    """An argument or result of the program outside the region: its ``ir.Type`` and its sharding in SDY's text."""

    type: Any
    sharding: str


def over_devices(module: Any, devices: int) -> None:
    """Wrap main of a partitioned ``ir.Module`` in a region manual over ``devices`` devices, in place."""
    mesh = Mesh(((AXIS, devices),))
    with module.context, ir.Location.unknown():
        first_names(module.operation)
        signature = names.Signature(names.main_of(module))
        kind = signature.function.attributes["function_type"].value
        arguments, results = ([_in_a_row(tile, mesh) for tile in side] for side in (kind.inputs, kind.results))
        signature.function = surround(module, mesh, arguments, results)
        for row, around in zip((*signature.arguments, *signature.results), (*arguments, *results), strict=True):
            for name in [name for name in row if name == names.SHARDING or name.startswith("shardpass.")]:
                del row[name]
            row["sdy.sharding"] = ir.Attribute.parse(around.sharding)
        signature.write()


def for_xla(mesh: Mesh) -> Mesh:
    """Rename the axes of ``mesh`` if XLA cannot read their names.

    XLA prints names without escapes, and cannot read a name with a quote again (jaxlib 0.12). A backslash, or a letter
    beyond ASCII, which MLIR escapes with backslashes, ends the process (0.10).
    """
    if all(_READ_BY_XLA.fullmatch(name) for name in mesh.names):
        return mesh
    return Mesh(((f"axis_{k}", size) for k, (_, size) in enumerate(mesh.axes)), mesh.device_ids)


def _in_a_row(tile: Any, mesh: Mesh) -> Around:
    in_a_row = math.prod(tile.shape) > 0 and tile.rank > 0
    sharding = Sharding.tiled(mesh, [(AxisRef(AXIS),), *[()] * (tile.rank - 1)] if in_a_row else [()] * tile.rank)
    shape = [tile.shape[0] * mesh.size, *tile.shape[1:]] if in_a_row else tile.shape
    return Around(ir.RankedTensorType.get(shape, tile.element_type), sdy_text(sharding, MESH_NAME))


def surround(
    module: Any,
    mesh: Mesh,
    arguments: Sequence[Around],
    results: Sequence[Around],
    enter: Callable[[Any, int], Any] = lambda value, index: value,
) -> Any:
    """Move main's body into a region that is manual over all axes of ``mesh``, in place; return the new main.

    ``enter``: the region's operand for argument ``index`` of the new main, whose rows of attributes are empty.
    """
    program = names.main_of(module)
    with ir.InsertionPoint.at_block_begin(module.body):
        sdy.MeshOp(MESH_NAME, mesh_attribute(mesh))
    types = [[around.type for around in side] for side in (arguments, results)]
    with ir.InsertionPoint(program):
        main = func.FuncOp("main", ir.FunctionType.get(*types), visibility="public")
    block = main.add_entry_block([argument.location for argument in program.arguments])
    with ir.InsertionPoint(block):
        region = sdy.ManualComputationOp(
            types[1],
            [enter(value, index) for index, value in enumerate(block.arguments)],
            _per_value(arguments),
            _per_value(results),
            ir.Attribute.parse(f"#sdy<manual_axes{{{', '.join(mlir_quoted(name) for name, _ in mesh.axes)}}}>"),
        )
        func.ReturnOp(region.results)
    _unmark(module)
    (body,) = operation(program).regions[0].blocks
    body.append_to(operation(region).regions[0])
    last = terminator(body)
    with ir.InsertionPoint(last), last.location:
        sdy.ReturnOp(list(last.operands))
    last.erase()
    _name_region(operation(region))
    operation(program).erase()
    return main


def _unmark(module: Any) -> None:
    """Remove ``{manual}`` from ops and functions: the region implies it, and Shardy of jaxlib 0.12 aborts on it."""
    for top in map(operation, module.body.operations):
        if top.name == "func.func":
            signature = names.Signature(top)
            for row in (*signature.arguments, *signature.results):
                row.pop(names.SHARDING, None)
            signature.write()
        for op in every_op(top):
            if names.SHARDING in op.attributes:
                del op.attributes[names.SHARDING]


def _per_value(side: Sequence[Around]) -> Any:
    shardings = ", ".join(around.sharding.removeprefix("#sdy.sharding") for around in side)
    return ir.Attribute.parse(f"#sdy.sharding_per_value<[{shardings}]>")


def _name_region(region: Any) -> None:
    """Name ``region`` after the program that most ops inside it come from, and strip that prefix from their names.

    XLA adds the prefix again when it inlines the region.
    """
    todo = [operation(op) for op in region.regions[0].blocks[0].operations]
    places = []
    while todo:
        op = todo.pop()
        places.append((op, op.location))
        if op.name in CONTROL_FLOW:
            todo += [operation(inner) for part in op.regions for block in part for inner in block.operations]
    first = Counter(named(location)[0].partition("/")[0] for _, location in places)
    del first[""]
    if not first:
        return
    program = first.most_common(1)[0][0]
    region.location = ir.Location.name(program)
    relative: dict[Any, Any] = {}
    for op, location in places:
        key = location.attr
        if key not in relative:
            name, stack = named(location)
            top, _, rest = name.partition("/")
            relative[key] = None if top != program else ir.Location.name(rest, stack) if rest else stack
        if relative[key] is not None:
            op.location = relative[key]
