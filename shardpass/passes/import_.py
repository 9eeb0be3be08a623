"""``shardpass-import``: one annotation, one mesh, one flat function."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Diagnostic, Place, Severity, ShardpassError, report
from shardpass.diagnostics.table_passes import (
    BAD_UNSPECIFIED,
    NO_DEVICE_COUNT,
    OWN_ORDER,
    PARTITIONED_ALREADY,
    TOO_MANY_DEVICES,
)
from shardpass.importing.inline_calls import inline_calls
from shardpass.importing.read_sdy import MOST_DEVICES, import_sdy
from shardpass.importing.refuse_unsupported import admit, admit_ops
from shardpass.importing.split_variadic import split_variadic
from shardpass.importing.tidy import tidy
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
from shardpass.ir.tensors import i64_array, operation, walk_blocks
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.manual_regions import CONTROL_FLOW, mark_manual
from shardpass.program.validate import check, read_for
from shardpass.sharding import Mesh, Sharding, common_mesh, parse_sharding

HOLDS_OPS = CONTROL_FLOW | {"func.func"}  # ops whose regions hold a program, not a reducer


@dataclass(frozen=True)
class Annotation:
    """One sharding string of the module, read: where it stands and what it says."""

    holder: Any  # a dict of attributes, or an op
    types: tuple[Any, ...]
    shardings: tuple[Sharding, ...]
    place: Place
    where: str  # for people
    scope: str | None = None  # of the manual region that the value is in

    def write(self) -> None:
        said = [str(s) for s in self.shardings]
        attributes = self.holder if isinstance(self.holder, dict) else self.holder.attributes
        joined = said[0] if len(said) == 1 else "{" + ", ".join(said) + "}"
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
        _refuse_partitioned(main)
        admit(module, main)
        prefer = mesh_of(module)
        sdy_mesh = import_sdy(module)
        inline_calls(module)
        split_variadic(module)
        _drop_constraints_in_reducers(operation(main))
        _open_dims(main)
        expand_ops(main)
        mark_manual(main)
        tidy(main)
        signature = Signature(main)
        found = list(_annotations(main, signature))
        count = _device_count(module, found, sdy_mesh)
        if count > MOST_DEVICES:
            raise TOO_MANY_DEVICES.error(place_of(main.location), what="the program", count=count, most=MOST_DEVICES)
        _fail_if_wrong(found, count, NUM_PARTITIONS if num_devices(module) else "as its first sharding says")
        admit_ops(main, count)
        set_num_devices(module, count)
        mesh = _common_mesh(found, _barred(main, signature), count, prefer or sdy_mesh)
        set_mesh(module, mesh)
        for annotation in found:
            annotation.write()
        signature.write()


def _refuse_partitioned(main: Any) -> None:
    signature = Signature(main)
    for role, rows in (("argument", signature.arguments), ("result", signature.results)):
        for index, row in enumerate(rows):
            if GLOBAL_TYPE in row:
                where, whole = f"{role} {index}", ir.TypeAttr(row[GLOBAL_TYPE]).value
                raise PARTITIONED_ALREADY.error(place_of(main.location), where=where, whole=whole)


def _drop_constraints_in_reducers(op: Any) -> None:
    """JAX constrains the scalars of a reducer inside a shard_map, which says nothing."""
    for region in op.regions:
        for block in region.blocks:
            for inner in [operation(o) for o in block.operations]:
                if op.name not in HOLDS_OPS and custom_call_target(inner) == CONSTRAINT:
                    inner.results[0].replace_all_uses_with(inner.operands[0])
                    inner.erase()
                elif len(inner.regions):
                    _drop_constraints_in_reducers(inner)


def _open_dims(main: Any) -> None:
    """``backend_config = "unspecified_dims=[1]"`` on a constraint becomes the attribute that propagation reads."""
    for op in map(operation, main.regions[0].blocks[0].operations):
        if custom_call_target(op) in (CONSTRAINT, TO_SHARD, TO_FULL) and "backend_config" in op.attributes:
            said = text(op.attributes["backend_config"])
            if not said.strip().startswith("unspecified_dims"):
                continue
            op.attributes[UNSPECIFIED] = i64_array(_unspecified(said, op))
            op.attributes["backend_config"] = ir.StringAttr.get("")


def _unspecified(said: str, op: Any) -> list[int]:
    kind = op.results[0].type
    found = re.fullmatch(r"unspecified_dims=\[((\d+(,\d+)*)?)\]", "".join(said.split()))
    dims = [int(d) for d in found[1].split(",") if d] if found else None
    if dims is None or any(d >= kind.rank for d in dims):
        raise BAD_UNSPECIFIED.error(place_of(op.location), text=said, type=kind, last=kind.rank - 1)
    return dims


def _annotations(main: Any, signature: Signature) -> Iterator[Annotation]:
    """Every sharding in ``main``, in order. Raises ShardpassError with all that cannot be read."""
    problems: list[Diagnostic] = []
    block = main.regions[0].blocks[0]
    kind = ir.TypeAttr(main.attributes["function_type"]).value
    rows: list[tuple[Any, Any, tuple[Any, ...], Place, str]] = []
    for index, row in enumerate(signature.arguments):
        place = place_of(block.arguments[index].location)
        rows.append((row, row, (kind.inputs[index],), place, f"argument {index}"))
    for inner in walk_blocks(operation(main)):
        for op in map(operation, inner.operations):
            types = tuple(result.type for result in op.results)
            rows.append((op, op.attributes, types, place_of(op.location), op.name))
    for index, row in enumerate(signature.results):
        rows.append((row, row, (kind.results[index],), place_of(main.location), f"result {index}"))
    for holder, attributes, types, place, where in rows:
        if SHARDING not in attributes:
            continue
        said = text(attributes[SHARDING])
        if said == MANUAL and not isinstance(holder, dict):
            continue
        try:
            shardings = tuple(read_for(said, list(types), place))
            scope = None if isinstance(holder, dict) else get_text(holder, SCOPE)
            yield Annotation(holder, types, shardings, place, where, scope)
        except ShardpassError as error:
            problems += error.diagnostics
    if problems:
        raise ShardpassError(*problems)


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
    problems = [
        problem
        for a in found
        for sharding, kind in zip(a.shardings, a.types, strict=True)
        for problem in check(sharding, kind, count, a.place, where=a.where, source=source, scope=a.scope)
    ]
    errors = [p for p in problems if p.severity == Severity.ERROR]
    if errors:
        raise ShardpassError(*errors)


def _barred(main: Any, signature: Signature) -> list[Sharding]:
    """What says which axes propagation must leave alone: the mesh must be able to say it too."""
    rows: list[Any] = [*signature.arguments, *signature.results]
    rows += [operation(op).attributes for block in walk_blocks(operation(main)) for op in block.operations]
    said = [parse_sharding(text(row[REPLICATED])) for row in rows if REPLICATED in row]
    return [sharding for sharding in said if isinstance(sharding, Sharding)]


def _common_mesh(found: list[Annotation], barred: list[Sharding], count: int, prefer: Mesh | None) -> Mesh:
    """The coarsest mesh for all; orders that fit none of the more frequent ones are left out, with a remark."""
    if prefer is not None and prefer.size != count:
        prefer = None
    uses: Counter[Sharding] = Counter()
    first: dict[Sharding, Place] = {}
    for annotation in found:
        for sharding in annotation.shardings:
            if sharding.is_tiled:
                uses[sharding] += 1
                first.setdefault(sharding, annotation.place)
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
            report(OWN_ORDER.at(first[sharding], text=str(sharding), mesh=str(mesh)))
    if mesh is None or mesh.size != count:
        mesh = prefer or Mesh((("axis_0", count),))
    return mesh
