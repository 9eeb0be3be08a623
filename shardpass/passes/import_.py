"""``shardpass-import``: one annotation, one mesh, one flat function.

Problem. Programs come with shardings in three notations (XLA's strings, SDY, ``@Sharding`` custom calls), with calls,
with manual regions, and without a common mesh. The passes behind this one read a single form: ``main`` alone, flat,
with ``mhlo.sharding`` in canonical text on values, and one mesh in whose axes all of it can be said.

The order of the steps matters. Each says which others it must follow:

1. Refuse a module that was partitioned already: its shardings mean tiles, and every later message would mislead.
2. ``refuse_types``: no later step is prepared for dynamic shapes or strange types.
3. Read the mesh that the module names. (Before 4, which erases ``sdy.mesh``.)
4. ``import_sdy``: SDY becomes ``mhlo.sharding`` and custom calls. Before 5, since a callee's ``sdy.sharding`` must
   become a constraint at each call, and since the ops of a manual computation get their scope here, which 5 hands on to
   the bodies of calls in it.
5. ``inline_calls``. From here on only ``main`` is read.
6. ``split_variadic``. After 5, since each new collective needs a channel of its own: two copies of a body that was
   split before would share channels.
7. Drop the constraints of a reducer's scalars, which say nothing. After 4, which makes such constraints.
8. Read ``unspecified_dims``, which a constraint's ``backend_config`` holds. After 4 and 5, which make constraints.
9. ``expand_ops``: ops that are defined by others are written out. Before 10, so that what is written out is marked too.
10. ``mark_manual``: the ops of manual regions. After 5: a region's ops are found by following values from its entry to
    its exit, which must not hide in a callee.
11. ``erase_unused_and_copy_constants``. After 10: an op that feeds a region and the program around it has been copied.
12. Read all annotations. After 11: no sharding of an op that is erased may choose the mesh.
13. Count the devices: ``mhlo.num_partitions``, else the SDY mesh, else the first sharding. After 12.
14. Check each sharding against its value. After 13: the check compares with the count.
15. ``refuse_ops``: ops that mean something on one device alone. After 10, since in manual regions they are taken, and
    after 13, since on one device all are taken.
16. Find the mesh, and write it and every sharding in canonical text. Last: where anything is wrong, nothing of this is
    needed.

State: ``OpLists``, the ops of the module (to step 5) and of ``main`` (from then on), which are read again only where a
step changed them. A step that looks for certain ops does nothing where the lists hold none.

Example: see ``Import``. Cost: O(ops of the inlined program).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Diagnostic, Place, Severity, ShardpassError, report
from shardpass.diagnostics.table_passes import (
    BAD_UNSPECIFIED,
    NO_DEVICE_COUNT,
    OWN_ORDER,
    PARTITIONED_ALREADY,
    TOO_MANY_DEVICES,
)
from shardpass.importing.erase_and_copy import erase_unused_and_copy_constants
from shardpass.importing.inline_calls import inline_calls
from shardpass.importing.read_sdy import MOST_DEVICES, import_sdy
from shardpass.importing.refuse_unsupported import refuse_ops, refuse_types
from shardpass.importing.split_variadic import VARIADIC, split_variadic
from shardpass.importing.write_out import expand_ops
from shardpass.ir.annotations import (
    CONSTRAINT,
    GLOBAL_TYPE,
    MANUAL,
    NUM_PARTITIONS,
    REPLICATED,
    SCOPE,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    UNSPECIFIED,
    Signature,
    custom_call_target,
    get_text,
    main_of,
    mesh_of,
    notes_of,
    num_devices,
    set_mesh,
    set_num_devices,
    text,
)
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import i64_array
from shardpass.ir.walk import CONTROL_FLOW, OpLists, named
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.manual_regions import mark_manual
from shardpass.program.validate import check, read_for
from shardpass.sharding import Mesh, Sharding, TupleSharding, common_mesh, parse_sharding

CUSTOM_CALL = "stablehlo.custom_call"
HOLDS_OPS = CONTROL_FLOW | {"func.func"}  # ops whose regions hold a program, not a reducer


@dataclass(frozen=True, slots=True)
class Annotation:
    """One sharding string of the module, read: where it stands and what it says."""

    holder: Any  # a dict of attributes, or an op
    text: str  # as it stands in the module
    types: tuple[Any, ...]
    shardings: tuple[Sharding, ...]
    location: Any
    where: str  # for people
    scope: str | None = None  # of the manual region that the value is in

    @property
    def place(self) -> Place:
        """Read when a finding needs it: a location is printed to be read, and a stack of calls is long."""
        return place_of(self.location)

    def write(self) -> None:
        """Writes the shardings back in canonical text, and on a single value what they say to propagation alone."""
        said = [str(s) for s in self.shardings]
        attributes = self.holder if isinstance(self.holder, dict) else self.holder.attributes
        joined = said[0] if len(said) == 1 else "{" + ", ".join(said) + "}"
        if joined != self.text:
            attributes[SHARDING] = ir.StringAttr.get(joined)
        if len(said) == 1:
            notes = notes_of(self.shardings[0], len(self.shardings[0].dims))
            for name in [name for name in notes if name not in attributes]:
                attributes[name] = notes[name]


@register
@dataclass(frozen=True)
class Import(ModulePass):
    """Brings a module from JAX, or written by hand, to the one form that the other passes read.

    Reads ``mhlo.sharding`` strings in all of XLA's forms, ``sdy.sharding`` attributes and ops, and ``@Sharding`` custom
    calls; calls are inlined, ops that nothing uses erased, constants copied for each use; manual regions become
    ``@SPMDFullToShardShape`` ... ``@SPMDShardToFullShape`` with their ops marked ``{manual}``. Writes ``mhlo.sharding`` in canonical text, and on the module ``mhlo.num_partitions`` and
    ``shardpass.mesh``: the coarsest mesh in whose axes every sharding can be said. A ``shardpass.mesh`` that
    is already there, or an ``sdy.mesh``, gives the axes their names. Every sharding is checked against its value.

    Input:

        func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]0,1}"}) -> tensor<8x4xf32> {
          %0 = call @f(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }
        func.func private @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
          %0 = stablehlo.negate %x : tensor<8x4xf32>
          return %0 : tensor<8x4xf32>
        }

    Output:

        module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32, shardpass.mesh = "mesh['axis_0'=2]"} {
          func.func @main(%x: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1]0,1}"}) -> tensor<8x4xf32> {
            %0 = stablehlo.negate %x : tensor<8x4xf32>
            return %0 : tensor<8x4xf32>
          }
        }
    """  # noqa: E501  IR is not wrapped

    name = "shardpass-import"
    summary = "one annotation, one mesh, calls inlined"

    def run(self, module: Any) -> None:
        main = main_of(module)
        _refuse_partitioned(main, Signature(main))
        lists = OpLists(module.operation)
        refuse_types(lists, main)
        prefer = mesh_of(module)
        sdy_mesh = import_sdy(module, lists)
        inline_calls(module, lists)
        lists = _of_main(main, lists)
        if not lists.names.isdisjoint(VARIADIC):
            split_variadic(module)
            lists.changed()
        _drop_constraints_in_reducers(lists)
        _read_unspecified_dims(lists)
        expand_ops(lists)
        _mark_manual(main, lists)
        erase_unused_and_copy_constants(lists)
        signature = Signature(main)
        found, barred = _annotations(main, signature, lists)
        count = _device_count(module, found, sdy_mesh)
        if count > MOST_DEVICES:
            raise TOO_MANY_DEVICES.error(place_of(main.location), what="the program", count=count, most=MOST_DEVICES)
        _fail_if_wrong(found, count, NUM_PARTITIONS if num_devices(module) else "as its first sharding says")
        refuse_ops(lists, count)
        set_num_devices(module, count)
        mesh = _common_mesh(found, barred, count, prefer or sdy_mesh)
        set_mesh(module, mesh)
        for annotation in found:
            annotation.write()
        signature.write()


def _refuse_partitioned(main: Any, signature: Signature) -> None:
    for role, rows in (("argument", signature.arguments), ("result", signature.results)):
        for index, row in enumerate(rows):
            if GLOBAL_TYPE in row:
                where, whole = f"{role} {index}", ir.TypeAttr(row[GLOBAL_TYPE]).value
                raise PARTITIONED_ALREADY.error(place_of(main.location), where=where, whole=whole)


def _of_main(main: Any, lists: OpLists) -> OpLists:
    """The lists of ``main`` alone; those of the module serve where it holds nothing else."""
    alone = OpLists(main)
    if lists.is_read and len(lists.blocks[0].ops) == 1:
        alone.take(lists.blocks[1:])
    return alone


def _drop_constraints_in_reducers(lists: OpLists) -> None:
    """JAX constrains the scalars of a reducer inside a shard_map, which says nothing."""
    if CUSTOM_CALL not in lists.names:
        return
    reducers = [inside for inside in lists.blocks if inside.owner_name not in HOLDS_OPS]
    found = [op for op in named(reducers, (CUSTOM_CALL,)) if custom_call_target(op) == CONSTRAINT]
    for op in found:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    if found:
        lists.changed()


def _read_unspecified_dims(lists: OpLists) -> None:
    """``backend_config = "unspecified_dims=[1]"`` on a constraint becomes the attribute that propagation reads."""
    for op in named(lists.blocks[:1], (CUSTOM_CALL,)):
        if custom_call_target(op) in (CONSTRAINT, TO_SHARD, TO_FULL) and "backend_config" in op.attributes:
            said = text(op.attributes["backend_config"])
            if not said.strip().startswith("unspecified_dims"):
                continue
            op.attributes[UNSPECIFIED] = i64_array(_unspecified(said, op))
            op.attributes["backend_config"] = ir.StringAttr.get("")


def _mark_manual(main: Any, lists: OpLists) -> None:
    """Marks the ops of manual regions, where ``main`` holds an entry or an exit of one."""
    if any(custom_call_target(op) in (TO_SHARD, TO_FULL) for op in named(lists.blocks[:1], (CUSTOM_CALL,))):
        mark_manual(main)
        lists.changed()  # ops that stand on both sides of a border are copied


def _unspecified(said: str, op: Any) -> list[int]:
    kind = op.results[0].type
    found = re.fullmatch(r"unspecified_dims=\[((\d+(,\d+)*)?)\]", "".join(said.split()))
    dims = [int(d) for d in found[1].split(",") if d] if found else None
    if dims is None or any(d >= kind.rank for d in dims):
        raise BAD_UNSPECIFIED.error(place_of(op.location), text=said, type=kind, last=kind.rank - 1)
    return dims


def _annotations(main: Any, signature: Signature, lists: OpLists) -> tuple[list[Annotation], list[Sharding]]:
    """Every sharding in ``main``, in order, and those that say which axes propagation must leave alone.

    Raises ShardpassError with all that cannot be read.
    """
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    block = main.regions[0].blocks[0]
    reader = _Reader()
    for index, (row, of, argument) in enumerate(zip(signature.arguments, kind.inputs, block.arguments, strict=True)):
        reader.row(row, of, argument.location, f"argument {index}")
    for inside in lists.blocks:
        for op, name in zip(inside.ops, inside.names, strict=True):
            attributes = op.attributes
            if SHARDING in attributes or REPLICATED in attributes:
                reader.op(op, attributes, name)
    for index, (row, of) in enumerate(zip(signature.results, kind.results, strict=True)):
        reader.row(row, of, main.location, f"result {index}")
    if reader.problems:
        raise ShardpassError(*reader.problems)
    return reader.found, [sharding for sharding in reader.barred if isinstance(sharding, Sharding)]


class _Reader:
    def __init__(self) -> None:
        self.found: list[Annotation] = []
        self.barred: list[Sharding | TupleSharding] = []
        self.problems: list[Diagnostic] = []

    def row(self, row: dict[str, Any], kind: Any, location: Any, where: str) -> None:
        """The attributes of an argument or a result."""
        if SHARDING in row:
            self._read(row, text(row[SHARDING]), (kind,), location, where, None)
        if REPLICATED in row:
            self.barred.append(parse_sharding(text(row[REPLICATED])))

    def op(self, op: Any, attributes: Any, name: str) -> None:
        if SHARDING in attributes:
            said = text(attributes[SHARDING])
            if said != MANUAL:
                types = tuple(result.type for result in op.results)
                self._read(op, said, types, op.location, name, get_text(op, SCOPE))
        if REPLICATED in attributes:
            self.barred.append(parse_sharding(text(attributes[REPLICATED])))

    def _read(
        self, holder: Any, said: str, types: tuple[Any, ...], location: Any, where: str, scope: str | None
    ) -> None:
        try:
            shardings = tuple(read_for(said, list(types)))
        except ShardpassError as error:
            place = place_of(location)
            self.problems += [dataclasses.replace(problem, place=place) for problem in error.diagnostics]
        else:
            self.found.append(Annotation(holder, said, types, shardings, location, where, scope))


def _device_count(module: Any, found: list[Annotation], sdy_mesh: Mesh | None) -> int:
    said = num_devices(module)
    if said is not None:
        return said
    if sdy_mesh is not None:
        return sdy_mesh.size
    for annotation in found:
        for sharding in annotation.shardings:
            if sharding.num_devices:
                return int(sharding.num_devices)
    report(NO_DEVICE_COUNT.at(place_of(module.operation.location)))
    return 1


def _fail_if_wrong(found: list[Annotation], count: int, source: str) -> None:
    """Each sharding is checked once for each type and scope that it occurs with."""
    fine: set[tuple[Any, ...]] = set()
    errors: list[Diagnostic] = []
    for annotation in found:
        key = (annotation.shardings, annotation.types, annotation.scope)
        if key in fine:
            continue
        problems = [
            problem
            for sharding, kind in zip(annotation.shardings, annotation.types, strict=True)
            for problem in check(
                sharding, kind, count, NOWHERE, where=annotation.where, source=source, scope=annotation.scope
            )
            if problem.severity is Severity.ERROR
        ]
        if problems:
            errors += [dataclasses.replace(problem, place=annotation.place) for problem in problems]
        else:
            fine.add(key)
    if errors:
        raise ShardpassError(*errors)


def _common_mesh(found: list[Annotation], barred: list[Sharding], count: int, prefer: Mesh | None) -> Mesh:
    """The coarsest mesh for all; orders that fit none of the more frequent ones are left out, with a remark."""
    if prefer is not None and prefer.size != count:
        prefer = None
    uses: Counter[Sharding] = Counter()
    first: dict[Sharding, Annotation] = {}
    for annotation in found:
        for sharding in annotation.shardings:
            if sharding.is_tiled:
                uses[sharding] += 1
                first.setdefault(sharding, annotation)
    chosen = [s for s, _ in uses.most_common()]
    chosen += [s for s in dict.fromkeys(barred) if s not in uses]
    mesh = common_mesh(chosen, prefer=prefer)
    if mesh is None:
        fitting: list[Sharding] = []
        alien: list[Sharding] = []
        for sharding in chosen:
            fits = common_mesh([*fitting, sharding], prefer=prefer) is not None
            (fitting if fits else alien).append(sharding)
        mesh = common_mesh(fitting, prefer=prefer)
        for sharding in filter(first.__contains__, alien):
            report(OWN_ORDER.at(first[sharding].place, text=str(sharding), mesh=str(mesh)))
    if mesh is None or mesh.size != count:
        mesh = prefer or Mesh((("axis_0", count),))
    return mesh
