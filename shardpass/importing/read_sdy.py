"""Rewrite the SDY dialect as ``mhlo.sharding`` and custom calls, the only form that other passes read.

Problem. JAX writes shardings in Shardy's dialect: attributes that name the axes of an ``sdy.mesh``, and ops. Each has a
counterpart that names devices:

| SDY | here |
|---|---|
| ``sdy.sharding`` | ``mhlo.sharding``, ``shardpass.unspecified_dims``, ``.priorities``, ``.replicated`` |
| ``sdy.sharding_constraint``, ``sdy.reshard`` | ``custom_call @Sharding`` |
| ``sdy.data_flow_edge``, ``sdy.func_data_flow_edge`` | the same where it has a sharding, else nothing |
| ``sdy.named_computation`` | the body; the shardings of its arguments and results are constraints |
| ``sdy.constant`` | ``stablehlo.constant`` |
| ``sdy.manual_computation`` | ``@SPMDFullToShardShape``, the body, ``@SPMDShardToFullShape`` |
| ``sdy.sharding_group`` | ``custom_call @Sharding`` with ``{unknown shard_as N}`` |
| ``sdy.propagation_barrier`` | ``custom_call @Sharding`` with ``{unknown}`` and ``shardpass.barrier`` |
| ``sdy.propagation_edges``, ``sdy.sharding_origins`` | nothing: notes of Shardy's debugging |
| replica groups by mesh axes | lists of devices |
| ``sdy.mesh`` | ``shardpass.mesh`` on the module, with the user's names |

Example, on ``sdy.mesh @m = <["x"=2, "y"=2]>``: ``#sdy.sharding<@m, [{"y"}, {}]>`` of a matrix becomes
``{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}``, and ``[{"y", ?}, {}]`` also gets
``shardpass.unspecified_dims = [0]``: propagation may split dimension 0 further.

A function that a manual computation calls is read once more for the axes that are manual there (``scoped_calls``): its
shardings name the free axes alone, and whole tensors of it are tiles.

State. ``meshes`` by name; of one without axes, its device. ``inlined``: meshes that an attribute holds. ``read``: each
attribute is read once for each rank and scope that it occurs with. ``manual``: the scope of a region (see
``program.manual_regions``) -> the axes that the region is manual over. ``functions``: a function that stands in a
region -> the scope of that region.

Invariant: ops are visited outer before inner, so that a manual computation has given its body a scope before an
annotation inside of it, which must leave out the manual axes, is read.

Cost: O(ops), two look-ups of an attribute for an op without SDY.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_passes import TOO_MANY_DEVICES
from shardpass.importing.scoped_calls import manual_axes, scoped_calls
from shardpass.ir.annotations import (
    BARRIER,
    CONSTRAINT,
    MANUAL,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    Signature,
    make_custom_call,
    notes_of,
)
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import Within, place_of
from shardpass.ir.replica_groups import GROUPS, list_devices, mesh_parts
from shardpass.ir.walk import OpLists, operation
from shardpass.program.manual_regions import marked_scope, set_scope
from shardpass.program.validate import at_place
from shardpass.sharding import Mesh, Sharding, parse_sdy
from shardpass.sharding.notations.sdy import mesh_or_device

SDY_SHARDING = "sdy.sharding"
LEFT_OVER = ("sdy.propagation_edges", "sdy.sharding_origins")  # beside a sharding, for who debugs Shardy
DIRECTIONS = ("NONE", "FORWARD", "BACKWARD")  # SDY's enumeration; its verifier refuses the next one, BOTH
MOST_DEVICES = 2**20


def import_sdy(module: Any, lists: OpLists | None = None) -> Mesh | None:
    """Rewrite every SDY op and attribute of ``module``. ``lists``: the ops of the module.

    Returns the largest mesh that the module names, if any. Raises ShardpassError: SP202 for an attribute that cannot be
    read, SP219 for a mesh of too many devices.
    """
    return _Import(module).run(lists or OpLists(module.operation))


class _Import:
    def __init__(self, module: Any) -> None:
        self.module = module
        self.mesh_ops = [op for op in module.body.operations if operation(op).name == "sdy.mesh"]
        self.meshes: dict[str, Mesh | int] = {}
        self.inlined: dict[Mesh, None] = {}
        self.read: dict[tuple[Any, int, str | None], dict[str, Any]] = {}
        self.manual: dict[str | None, frozenset[str]] = {None: frozenset()}  # scope -> names of its axes
        self.functions: dict[str, str] = {}
        self.changed = False  # whether ops were made, moved or erased

    def run(self, lists: OpLists) -> Mesh | None:
        for op in self.mesh_ops:
            name = op.attributes["sym_name"].value
            self.meshes[name] = _mesh(op.attributes["mesh"], f"@{name}", op.location)
        if "sdy.manual_computation" in lists.names:
            self._scoped_functions(lists)
        self._annotations(lists)
        for op in self.mesh_ops:
            operation(op).erase()
        if self.changed:
            lists.changed()
        elif self.mesh_ops:
            top = lists.blocks[0]  # the functions and meshes
            top.ops = [op for op, name in zip(top.ops, top.names, strict=True) if name != "sdy.mesh"]
            top.names = [name for name in top.names if name != "sdy.mesh"]
        return max(self._with_axes(), key=lambda mesh: mesh.size, default=None)

    def _with_axes(self) -> list[Mesh]:
        return [mesh for mesh in (*self.meshes.values(), *self.inlined) if isinstance(mesh, Mesh) and mesh.axes]

    def _scoped_functions(self, lists: OpLists) -> None:
        """Copy the functions that manual computations call, and mark the copied ops with the scope of the call."""
        for copy in scoped_calls(lists):
            scope = self._scope_over(copy.manual, self._mesh_of(copy.computation, copy.manual))
            if scope is not None:
                self.functions[copy.function.attributes["sym_name"].value] = scope
                for op in list(copy.function.regions[0].blocks[0].operations)[:-1]:
                    set_scope(operation(op), scope)

    def _annotations(self, lists: OpLists) -> None:
        rewrites: dict[str, Callable[[Any], None]] = {
            "sdy.sharding_constraint": self._constraint,
            "sdy.reshard": self._constraint,
            "sdy.data_flow_edge": self._constraint,
            "sdy.func_data_flow_edge": self._constraint,
            "sdy.named_computation": self._named_computation,
            "sdy.constant": self._constant,
            "sdy.manual_computation": self._manual,
            "sdy.sharding_group": self._group,
            "sdy.propagation_barrier": self._barrier,
        }
        for inside in lists.blocks[1:]:
            if inside.owner_name == "func.func":
                name = inside.owner.attributes["sym_name"].value
                self._signature(inside.owner, inside.block, self.functions.get(name))
            for op, name in zip(inside.ops, inside.names, strict=True):
                if name == "sdy.return":
                    continue  # its region's op was rewritten before, and took it along
                if name in rewrites:
                    rewrites[name](op)
                    self.changed = True
                    continue
                attributes = op.attributes
                if SDY_SHARDING in attributes:
                    self._annotated(op)
                for left in LEFT_OVER:
                    if left in attributes:
                        del attributes[left]
                if name in OPS and GROUPS in attributes:
                    self._replica_groups(op)

    def _attributes(self, attribute: Any, rank: int, location: Any, scope: str | None = None) -> dict[str, Any]:
        """Return the attributes for one ``#sdy.sharding`` of a value in ``scope``."""
        key = (attribute, rank, scope)
        if key not in self.read:
            self.read[key] = self._described(self._parse(str(attribute), location), rank, self.manual[scope])
        return dict(self.read[key])

    def _parse(self, text: str, location: Any) -> Sharding:
        try:
            sharding = parse_sdy(text, self.meshes)
        except ShardpassError as error:
            raise at_place(error, text, place_of(location)) from None
        if sharding.mesh is not None and "sharding<mesh<" in text:
            _refuse_large("the mesh of this sharding", sharding.mesh.size, location)
            self.inlined[sharding.mesh] = None
        return sharding

    def _described(self, sharding: Sharding, rank: int, manual: frozenset[str]) -> dict[str, Any]:
        """Return the attributes for ``sharding``, with its manual axes as a manual subgroup."""
        result = sharding
        if manual and sharding.mesh is not None:
            dims = tuple(tuple(a for a in axes if a.name not in manual) for axes in sharding.dims)
            partial = [a for a in sharding.unreduced if a.name not in manual]
            result = Sharding.tiled(sharding.mesh, dims or ((),) * rank, unreduced=partial, manual=sorted(manual))
        return {SHARDING: ir.StringAttr.get(str(result)), **notes_of(sharding, rank, manual)}

    def _signature(self, function: Any, block: Any, scope: str | None) -> None:
        attributes = function.attributes
        if "arg_attrs" not in attributes and "res_attrs" not in attributes:
            return
        signature = Signature(function)
        kind = ir.TypeAttr(attributes["function_type"]).value
        rows = zip(signature.arguments, kind.inputs, block.arguments, strict=True)
        annotated = [(row, of, argument.location) for row, of, argument in rows if SDY_SHARDING in row]
        results = zip(signature.results, kind.results, strict=True)
        annotated += [(row, of, function.location) for row, of in results if SDY_SHARDING in row]
        for row, of, where in annotated:
            row.update(self._attributes(row.pop(SDY_SHARDING), _rank(of), where, scope))
            for name in LEFT_OVER:
                row.pop(name, None)
        if annotated:
            signature.write()

    def _replica_groups(self, op: Any) -> None:
        """Rewrite replica groups given by axes of an ``sdy.mesh`` (as in newer JAX) as lists of devices."""
        try:
            list_devices(op, self.meshes)
        except ShardpassError as error:
            raise at_place(error, str(op.attributes[GROUPS]), place_of(op.location)) from None

    def _group(self, op: Any) -> None:
        number = ir.IntegerAttr(op.attributes["group_id"]).value
        self._free_constraint(op, f"{{unknown shard_as {number}}}")
        op.erase()

    def _free_constraint(self, op: Any, sharding: str, **more: Any) -> Any:
        """Build a constraint of ``op``'s operand with all dimensions open. ``more``: attributes for propagation."""
        value = op.operands[0]
        attributes = {SHARDING: ir.StringAttr.get(sharding), **more}
        with ir.InsertionPoint(op), op.location:
            result = make_custom_call(CONSTRAINT, value, value.type, attributes)
        self._mark(operation(result.owner), marked_scope(op))
        return result

    def _barrier(self, op: Any) -> None:
        """Rewrite a propagation barrier as an open constraint with the permitted direction as attribute."""
        allowed = DIRECTIONS[ir.IntegerAttr(op.attributes["allowed_direction"]).value]
        if marked_scope(op) == MANUAL:
            result = op.operands[0]
        else:
            result = self._free_constraint(op, "{unknown}", **{BARRIER: ir.StringAttr.get(allowed)})
        op.results[0].replace_all_uses_with(result)
        op.erase()

    def _annotated(self, op: Any) -> None:
        shardings = sdy.TensorShardingPerValueAttr(op.attributes[SDY_SHARDING]).shardings
        del op.attributes[SDY_SHARDING]
        if not len(op.results):  # JAX gives such a call one sharding all the same: the device that makes it
            if len(shardings) and marked_scope(op) is None:
                op.attributes[SHARDING] = self._attributes(shardings[0], 0, op.location, None)[SHARDING]
            return
        if marked_scope(op) == MANUAL:
            return  # every value is a tile there; JAX gives results of callbacks a mesh without axes
        rows = [
            self._attributes(s, _rank(r.type), op.location, marked_scope(op))
            for s, r in zip(shardings, op.results, strict=True)
        ]
        texts = [row[SHARDING].value for row in rows]
        if len(texts) == 1:
            for name, value in rows[0].items():
                op.attributes[name] = value
        elif any(len(row) > 1 for row in rows):
            self._constrained(op, rows)
        elif texts:
            op.attributes[SHARDING] = ir.StringAttr.get("{" + ", ".join(texts) + "}")

    def _constrained(self, op: Any, rows: list[dict[str, Any]]) -> None:
        """Add a constraint after each result, with the attributes of its sharding, such as open dimensions."""
        self.changed = True
        with ir.InsertionPoint.after(op), op.location:
            for result, attributes in zip(op.results, rows, strict=True):
                member = make_custom_call(CONSTRAINT, result, result.type, attributes)
                result.replace_all_uses_except(member, operation(member.owner))
                self._mark(operation(member.owner), marked_scope(op))

    def _constraint(self, op: Any) -> None:
        operand = op.operands[0]
        scope = marked_scope(op)
        if scope == MANUAL or "sharding" not in op.attributes:
            op.results[0].replace_all_uses_with(operand)
        else:
            attributes = self._attributes(op.attributes["sharding"], _rank(operand.type), op.location, scope)
            with ir.InsertionPoint(op), op.location:
                result = make_custom_call(CONSTRAINT, operand, operand.type, attributes)
            self._mark(operation(result.owner), scope)
            op.results[0].replace_all_uses_with(result)
        op.erase()

    def _constant(self, op: Any) -> None:
        made = stablehlo_constant(op)
        if SDY_SHARDING in made.attributes:
            self._annotated(made)

    def _named_computation(self, op: Any) -> None:
        """Replace a named computation by its body, as a call."""
        scope = marked_scope(op)
        with ir.InsertionPoint(op), op.location:
            given = self._constrained_borders(op, "in", op.operands, scope)
            for argument, value in zip(op.regions[0].blocks[0].arguments, given, strict=True):
                argument.replace_all_uses_with(value)
            returned = self._constrained_borders(op, "out", self._move_out(op, scope), scope)
            for result, value in zip(op.results, returned, strict=True):
                result.replace_all_uses_with(value)
        op.erase()

    def _constrained_borders(self, op: Any, side: str, values: Iterable[Any], scope: str | None) -> list[Any]:
        """Constrain each of ``values`` to the sharding that ``op`` gives for ``side``."""
        name, values = f"{side}_shardings", list(values)
        if name not in op.attributes or scope == MANUAL:
            return values
        shardings = sdy.TensorShardingPerValueAttr(op.attributes[name]).shardings
        return [
            self._constrained_border(value, sharding, scope) if isinstance(value.type, ir.RankedTensorType) else value
            for value, sharding in zip(values, shardings, strict=True)
        ]

    def _move_out(self, op: Any, scope: str | None) -> list[Any]:
        """Move the body of ``op`` before it, marked with ``scope``; return the values that the body returns."""
        *body, terminator = [operation(inner) for inner in op.regions[0].blocks[0].operations]
        within = Within(op.location)
        for inner in body:
            inner.move_before(op)
            within.move(inner)
            self._mark(inner, scope)
        returned = list(terminator.operands)
        terminator.erase()
        return returned

    def _mark(self, op: Any, scope: str | None) -> None:
        if scope is not None:
            set_scope(op, scope)

    def _manual(self, op: Any) -> None:
        """Move the body of a manual computation out, between conversions from whole arrays to tiles and back.

        Where no further axis becomes manual, tiles are the same as around the region, and nothing is converted.
        """
        around = marked_scope(op)
        manual = self.manual[around] | manual_axes(op)
        scope = self._scope_over(manual, self._mesh_of(op, manual))
        block = op.regions[0].blocks[0]
        into = sdy.TensorShardingPerValueAttr(op.attributes["in_shardings"]).shardings
        outof = sdy.TensorShardingPerValueAttr(op.attributes["out_shardings"]).shardings
        with ir.InsertionPoint(op), op.location:
            for argument, value, sharding in zip(block.arguments, op.operands, into, strict=True):
                whole = self._constrained_border(value, sharding, around)
                tile = whole if scope == around else self._call(TO_SHARD, whole, argument.type, sharding, scope)
                argument.replace_all_uses_with(tile)
            for result, value, sharding in zip(op.results, self._move_out(op, scope), outof, strict=True):
                tile = self._constrained_border(value, sharding, scope)
                whole = tile if scope == around else self._call(TO_FULL, tile, result.type, sharding, around)
                result.replace_all_uses_with(whole)
        op.erase()

    def _constrained_border(self, value: Any, sharding: Any, scope: str | None) -> Any:
        return self._call(CONSTRAINT, value, value.type, sharding, scope)

    def _call(self, target: str, value: Any, kind: Any, sharding: Any, scope: str | None) -> Any:
        """Build a conversion or constraint; its result is in ``scope``, sharded as ``sharding`` without manual axes."""
        if scope == MANUAL:
            attributes: dict[str, Any] = {SHARDING: ir.StringAttr.get(MANUAL)}
        else:
            attributes = self._attributes(sharding, _rank(kind), ir.Location.current, scope)
        result = make_custom_call(target, value, kind, attributes)
        if scope is not None and scope != MANUAL:
            self._mark(operation(result.owner), scope)
        return result

    def _mesh_of(self, computation: Any, manual: Iterable[str]) -> Mesh | None:
        """Return the mesh of a manual computation's values, or, without values, a mesh of the ``manual`` axes."""
        names = set(manual)
        for side in ("in_shardings", "out_shardings"):
            for sharding in sdy.TensorShardingPerValueAttr(computation.attributes[side]).shardings:
                mesh = self._parse(str(sharding), computation.location).mesh
                if mesh is not None and names <= set(mesh.names):
                    return mesh
        return next((mesh for mesh in self._with_axes() if names <= set(mesh.names)), None)

    def _scope_over(self, manual: frozenset[str], mesh: Mesh | None) -> str | None:
        """Return the mark for ops of a region manual over ``manual``; None if it has no such axis."""
        if not manual:
            return None
        free = set() if mesh is None else {name for name, size in mesh.axes if size > 1} - manual
        scope = MANUAL if mesh is None or not free else str(Sharding.tiled(mesh, (), manual=sorted(manual)))
        self.manual[scope] = manual | self.manual.get(scope, frozenset())
        return scope


def _mesh(attribute: Any, name: str, location: Any) -> Mesh | int:
    """Return the mesh of an ``sdy.mesh``; for a mesh without axes that lists a device, the device."""
    axes, ids = mesh_parts(attribute)
    count = prod(size for _, size in axes)
    _refuse_large(f"the mesh {name}", count, location)
    try:
        return mesh_or_device(axes, ids)
    except ShardpassError as error:
        raise at_place(error, f"{name} = {attribute}", place_of(location)) from None


def _refuse_large(what: str, count: int, location: Any) -> None:
    if count > MOST_DEVICES:
        raise TOO_MANY_DEVICES.error(place_of(location), what=what, count=count, most=MOST_DEVICES)


def stablehlo_constant(op: Any) -> Any:
    """Replace the ``sdy.constant`` ``op`` by a ``stablehlo.constant``."""
    with ir.InsertionPoint(op), op.location:
        try:
            attributes = {name: op.attributes[name] for name in op.attributes}
        except TypeError:  # elements that the bindings have no class for: complex numbers
            text = op.get_asm(print_generic_op_form=True, use_local_scope=True)
            made = ir.Operation.parse(text.replace('"sdy.constant"', '"stablehlo.constant"', 1))
            ir.InsertionPoint.current.insert(made)
            made.location = op.location
        else:
            made = ir.Operation.create("stablehlo.constant", [op.results[0].type], [], attributes)
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
    return made


def _rank(kind: Any) -> int:
    return kind.rank if isinstance(kind, ir.RankedTensorType) else 0
