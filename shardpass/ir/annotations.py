"""Names of shardpass's attributes, with helpers that read and write them.

A value's sharding is annotated once: ``mhlo.sharding``, canonical text, on the op (a tuple for several results) or on
the argument or result of the function. The mesh and the number of devices are attributes of the module.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import BAD_NUM_PARTITIONS, MAIN_FORM, NO_MAIN, REPLICAS
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import entries, i64_array, ints, operation
from shardpass.sharding import AxisRef, Mesh, Sharding, parse_mesh

SHARDING = "mhlo.sharding"
NUM_PARTITIONS = "mhlo.num_partitions"
NUM_REPLICAS = "mhlo.num_replicas"
MESH = "shardpass.mesh"
UNSPECIFIED = "shardpass.unspecified_dims"  # dimensions that propagation may split further
SCOPE = "shardpass.manual"  # on an op in a region that is manual over some axes: see ``program.manual_regions``
CONFLICT = "shardpass.conflict"  # on an op where two splits disagreed: the chosen one, and why
SPLIT = "shardpass.split"  # on an op: the split of its loop nest, where values alone would suggest another
WAITS = "shardpass.waits"  # on an op: a vector's sharding; over the axes that split it the op's result is partial
COPY = "shardpass.copy"  # on an argument or op: the sharding of a copy that several users of the value start from
PRIORITIES = "shardpass.priorities"  # of each dimension: the lowest number propagates first
REPLICATED = "shardpass.replicated"  # a vector's sharding; propagation leaves the axes that split it alone
BARRIER = "shardpass.barrier"  # on a constraint: the direction in which shardings may pass, FORWARD, BACKWARD or NONE
PINNED = "shardpass.pinned"  # on an op that the user annotated: its results are there as annotated
CONSTRAINTS = "shardpass.constraints"  # on the module: "free" where users of a constraint may start from any copy
FIT = "shardpass.fit"  # on the module: the limit of bytes alive on a device for which cheaper shardings were left
MACHINE = "shardpass.machine"  # on the module: for which it was decided (``cost.chosen``)
EXACT, FREE = "exact", "free"  # whether constraints hold
ANNOTATIONS = (SHARDING, UNSPECIFIED, PRIORITIES, REPLICATED)  # all annotations of a value's sharding
DECIDED = (CONFLICT, SPLIT, WAITS, COPY)  # what propagation writes beside shardings
FROM, TO, GLOBAL_TYPE = "shardpass.from", "shardpass.to", "shardpass.global_type"
TILED_SHARDING = "shardpass.sharding"  # of a partitioned module's arguments and results
PARTIAL = "shardpass.partial"  # of an argument or result that holds summands: the sharding of the sum (see importing)
MANUAL = "{manual}"
TOKENS = "shardpass.tokens"  # on the module: the places of main's arguments and results that were tokens
INSPECTED = "shardpass.inspected"  # on the module: shardings that JAX reports to the user
ORDER = "shardpass.order"  # on a call of the host: those of its results that only order calls
ONCE = "shardpass.once"  # on a call of the host: the one device that makes it
# on a product that the plan overlaps with a collective: "all_gather 1", which operand, or "reduce_scatter"; on the
# module: how many such loops the plan has
IN_TURN = "shardpass.in_turn"
CAUSE, AXES = "shardpass.cause", "shardpass.axes"  # on a collective: why it is there, and over which axes
BESIDE = "; in turn with the product"  # how the cause of a permute ends that passes beside a product

CONSTRAINT = "Sharding"  # targets of custom calls
TO_SHARD, TO_FULL = "SPMDFullToShardShape", "SPMDShardToFullShape"
REDISTRIBUTE = "shardpass.redistribute"


def main_of(module: Any) -> Any:
    """Return the function ``main``. Raises ShardpassError: SP201 without ``main``, SP222 unless it has one block."""
    functions = [op for op in module.body.operations if operation(op).name == "func.func"]
    for function in functions:
        if function.attributes["sym_name"].value == "main":
            blocks = len(function.regions[0].blocks)
            if blocks != 1:
                raise MAIN_FORM.error(place_of(function.location), count=blocks or "no")
            return function
    names = ", ".join("@" + f.attributes["sym_name"].value for f in functions) or "none"
    raise NO_MAIN.error(place_of(module.operation.location), functions=names)


class Signature:
    """The attributes of a function's arguments and results as lists of dicts; ``write`` stores them."""

    def __init__(self, function: Any) -> None:
        self.function = function
        kind = function.attributes["function_type"].value
        self.arguments = self._read("arg_attrs", len(kind.inputs))
        self.results = self._read("res_attrs", len(kind.results))

    def _read(self, name: str, count: int) -> list[dict[str, Any]]:
        if name not in self.function.attributes:
            return [{} for _ in range(count)]
        place = place_of(self.function.location)
        return [entries(row, place) for row in self.function.attributes[name]]

    def write(self) -> None:
        for name, rows in (("arg_attrs", self.arguments), ("res_attrs", self.results)):
            if any(rows):
                self.function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])
            elif name in self.function.attributes:
                del self.function.attributes[name]


def text(attribute: Any) -> str:
    """Return the value of a string attribute; of other attributes, the printed form."""
    return attribute.value if isinstance(attribute, ir.StringAttr) else str(attribute)


def get_text(op: Any, name: str) -> str | None:
    return text(op.attributes[name]) if name in op.attributes else None


def custom_call_target(op: Any) -> str:
    """Return the target of a custom call, "" for other ops."""
    if op.name != "stablehlo.custom_call":
        return ""
    return text(op.attributes["call_target_name"])


def replicated_over(mesh: Mesh, axes: tuple[AxisRef, ...]) -> Any:
    """Return the attribute ``REPLICATED``: propagation must not split the value over ``axes``."""
    from shardpass.sharding.notations.named import named_text  # for what few programs say

    return ir.StringAttr.get(named_text(Sharding.tiled(mesh, (axes,))))


def notes_of(sharding: Sharding, rank: int, manual: Collection[str] = ()) -> dict[str, Any]:
    """Return the attributes that ``sharding`` has for propagation only. ``manual``: axes of the value's region."""
    notes = {}
    replicated_along = [a for a in sharding.notes.replicated if a.name not in manual]
    if replicated_along and sharding.mesh is not None:
        notes[REPLICATED] = replicated_over(sharding.mesh, tuple(replicated_along))
    if sharding.notes.open:
        notes[UNSPECIFIED] = i64_array(sharding.notes.open)
    if sharding.notes.priorities:
        given = dict(sharding.notes.priorities)
        notes[PRIORITIES] = i64_array([given.get(dim, 0) for dim in range(rank)])
    return notes


def priorities(attributes: Any) -> tuple[int, ...]:
    return ints(attributes[PRIORITIES]) if PRIORITIES in attributes else ()


def unspecified_dims(attributes: Any) -> tuple[int, ...]:
    return ints(attributes[UNSPECIFIED]) if UNSPECIFIED in attributes else ()


def num_devices(module: Any) -> int | None:
    """Read the module's number of devices.

    Raises ShardpassError: SP221 for an invalid number, SP235 where there are several replicas.
    """
    attributes = module.operation.attributes
    if NUM_REPLICAS in attributes:
        replicas = attributes[NUM_REPLICAS]
        if not isinstance(replicas, ir.IntegerAttr) or int(replicas.value) != 1:
            raise REPLICAS.error(place_of(module.operation.location), value=replicas)
    if NUM_PARTITIONS not in attributes:
        return None
    value = attributes[NUM_PARTITIONS]
    count = int(value.value) if isinstance(value, ir.IntegerAttr) else 0
    if count < 1:
        raise BAD_NUM_PARTITIONS.error(place_of(module.operation.location), value=value)
    return count


def set_num_devices(module: Any, count: int) -> None:
    i32 = ir.IntegerType.get_signless(32)
    module.operation.attributes[NUM_PARTITIONS] = ir.IntegerAttr.get(i32, count)
    if NUM_REPLICAS not in module.operation.attributes:
        module.operation.attributes[NUM_REPLICAS] = ir.IntegerAttr.get(i32, 1)


def mesh_of(module: Any) -> Mesh | None:
    """Read the common mesh that ``shardpass-import`` or the user wrote."""
    mesh = get_text(module.operation, MESH)
    return None if mesh is None else parse_mesh(mesh)


def set_mesh(module: Any, mesh: Mesh) -> None:
    module.operation.attributes[MESH] = ir.StringAttr.get(str(mesh))


def make_custom_call(target: str, operand: Any, result_type: Any, attributes: dict[str, Any]) -> Any:
    """Build a custom call of one operand and one result at the current insertion point; returns its result."""
    return ir.Operation.create(
        "stablehlo.custom_call",
        results=[result_type],
        operands=[operand],
        attributes={"call_target_name": ir.StringAttr.get(target), **attributes},
    ).results[0]
