"""``shardpass-import``: converts a module to one form of annotations, one mesh and one function.

Problem. Programs come with shardings in three notations (XLA's strings, SDY, ``@Sharding`` custom calls), with calls,
with manual regions, and without a common mesh. The passes after this one read a single form: ``main`` alone, flat,
with ``mhlo.sharding`` in canonical text on values, and one mesh whose axes express all of it.

The order of the steps matters. Each says which others it must follow:

1. Refuse a module that was partitioned already: its shardings mean tiles, and every later message would mislead.
2. ``number_tokens`` and ``begin_at_once``, then ``refuse_types``: no later step is prepared for dynamic shapes or
   strange types.
3. Read the mesh that the module names. (Before 4, which erases ``sdy.mesh``.)
4. ``import_sdy``: SDY becomes ``mhlo.sharding`` and custom calls. Before 5, since a callee's ``sdy.sharding`` must
   become a constraint at each call, and since the ops of a manual computation get their scope here, which 5 hands on to
   the bodies of calls in it.
5. ``inline_calls``. From here on only ``main`` is read.
   ``take_apart_tuples`` then, since a callee may take and return tuples: no later step meets one.
   ``hold_resources`` then: constants whose elements stand beside the module get them.
6. ``split_variadic``. After 5, since each new collective needs a channel of its own: two copies of a body that was
   split before would share channels. ``type_channels`` follows: exported programs leave the type of channels open.
   ``drop_groups_of_one`` then, which reads the single operand of each.
7. Drop the constraints of a reducer's scalars, which say nothing. After 4, which makes such constraints.
8. Read ``unspecified_dims`` of a constraint's ``backend_config``. After 4 and 5, which make constraints.
   ``stack_partial_sums`` follows, which says partial sums at borders in whole arrays, and then the dimensions of
   constraints that leave partial sums are opened.
9. ``expand_ops``: ops that are defined by others are written out. Before 10, so that what is written out is marked too.
10. ``mark_manual``: the ops of manual regions. After 5: a region's ops are reached by following values from its entry
    to its exit, which must not hide in a callee.
    ``mark_host_calls`` follows: a callback in such a region runs on every device, and outside on one.
11. ``erase_unused_and_copy_constants``. After 10: an op that feeds a region and the program around it has been copied.
12. Read all annotations. After 11: no sharding of an op that is erased may choose the mesh.
13. Count the devices: ``mhlo.num_partitions``, else the SDY mesh, else the first sharding. After 12.
14. Check each sharding against its value. After 13: the check compares with the count.
15. ``refuse_ops``: ops that mean something on one device alone. After 10, since in manual regions they are allowed, and
    after 13, since on one device all are allowed.
16. Find the mesh, and write it and every sharding in canonical text; mark the ops that the user annotated. Last: where
    anything is wrong, nothing of this is needed.

State: ``OpLists``, the ops of the module (to step 5) and of ``main`` (from then on), which are read again only where a
step changed them. A step that looks for certain ops does nothing where the lists have none.

Example: see ``Import``. Cost: O(ops of the inlined program).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import PARTITIONED_ALREADY, TOO_MANY_DEVICES
from shardpass.importing.channel_types import type_channels
from shardpass.importing.constraints import (
    CUSTOM_CALL,
    drop_constraints_in_reducers,
    open_unreduced_constraints,
    read_unspecified_dims,
)
from shardpass.importing.erase_and_copy import erase_unused_and_copy_constants
from shardpass.importing.find_mesh import device_count, find_mesh
from shardpass.importing.futures import begin_at_once
from shardpass.importing.groups_of_one import drop_groups_of_one
from shardpass.importing.host_calls import mark_host_calls
from shardpass.importing.inline_calls import inline_calls
from shardpass.importing.partial_sums import stack_partial_sums
from shardpass.importing.read_annotations import is_propagated, pin, read_annotations, refuse_wrong_shardings
from shardpass.importing.read_sdy import MOST_DEVICES, import_sdy
from shardpass.importing.refuse_unsupported import refuse_ops, refuse_types
from shardpass.importing.resource_constants import hold_resources
from shardpass.importing.split_variadic import VARIADIC, split_variadic
from shardpass.importing.tokens import number_tokens
from shardpass.importing.tuples import take_apart_tuples
from shardpass.importing.write_out import expand_ops
from shardpass.ir.annotations import (
    GLOBAL_TYPE,
    NUM_PARTITIONS,
    TO_FULL,
    TO_SHARD,
    Signature,
    custom_call_target,
    main_of,
    mesh_of,
    num_devices,
    set_mesh,
    set_num_devices,
)
from shardpass.ir.locations import place_of
from shardpass.ir.walk import OpLists, named
from shardpass.pipeline.base import ModulePass
from shardpass.pipeline.registry import register
from shardpass.program.manual_regions import mark_manual

CONSTANT = "stablehlo.constant"


@register
@dataclass(frozen=True)
class Import(ModulePass):
    """Converts a module from JAX, or written by hand, to the form that the other passes read.

    Reads ``mhlo.sharding`` strings in all of XLA's forms, ``sdy.sharding`` attributes and ops, and ``@Sharding`` custom
    calls. Calls are inlined, unused ops are erased, and constants are copied for each use. Manual regions become
    ``@SPMDFullToShardShape`` ... ``@SPMDShardToFullShape`` with their ops marked ``{manual}``. Writes ``mhlo.sharding``
    in canonical text, and on the module ``mhlo.num_partitions`` and ``shardpass.mesh``: the coarsest mesh whose axes
    express every sharding. The names of the axes come from an existing ``shardpass.mesh`` or ``sdy.mesh``. Every
    sharding is checked against its value.

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
        number_tokens(module, main, lists)
        begin_at_once(lists)
        refuse_types(lists, main)
        prefer = mesh_of(module)
        sdy_mesh = import_sdy(module, lists)
        inline_calls(module, lists)
        lists = _of_main(main, lists)
        take_apart_tuples(lists)
        hold_resources(module, named(lists.blocks, (CONSTANT,)))
        if not lists.names.isdisjoint(VARIADIC):
            split_variadic(module)
            lists.changed()
        type_channels(lists)
        signature = Signature(main)
        devices = num_devices(module) or (sdy_mesh.size if sdy_mesh else None)
        drop_groups_of_one(lists, devices)
        drop_constraints_in_reducers(lists)
        read_unspecified_dims(lists)
        stack_partial_sums(main, signature, lists, devices, prefer or sdy_mesh)
        open_unreduced_constraints(lists)
        expand_ops(lists)
        _mark_manual(main, lists)
        mark_host_calls(lists)
        erase_unused_and_copy_constants(lists)
        propagated = prefer is not None and is_propagated(lists)
        annotations, replicated_along = read_annotations(main, signature, lists)
        count = device_count(module, annotations, sdy_mesh)
        if count > MOST_DEVICES:
            raise TOO_MANY_DEVICES.error(place_of(main.location), what="the program", count=count, most=MOST_DEVICES)
        refuse_wrong_shardings(
            annotations, count, NUM_PARTITIONS if num_devices(module) else "as its first sharding says"
        )
        refuse_ops(lists, count)
        set_num_devices(module, count)
        mesh = find_mesh(annotations, replicated_along, count, prefer or sdy_mesh)
        set_mesh(module, mesh)
        for annotation in annotations:
            annotation.write()
        if not propagated:
            pin(annotations)
        signature.write()


def _refuse_partitioned(main: Any, signature: Signature) -> None:
    for role, rows in (("argument", signature.arguments), ("result", signature.results)):
        for index, row in enumerate(rows):
            if GLOBAL_TYPE in row:
                where, whole = f"{role} {index}", ir.TypeAttr(row[GLOBAL_TYPE]).value
                raise PARTITIONED_ALREADY.error(place_of(main.location), where=where, whole=whole)


def _of_main(main: Any, lists: OpLists) -> OpLists:
    """Return the op lists of ``main``; the module's lists if it contains nothing else."""
    alone = OpLists(main)
    if lists.is_read and len(lists.blocks[0].ops) == 1:
        alone.take(lists.blocks[1:])
    return alone


def _mark_manual(main: Any, lists: OpLists) -> None:
    """Mark the ops of manual regions in ``main``, if it has any."""
    if any(custom_call_target(op) in (TO_SHARD, TO_FULL) for op in named(lists.blocks, (CUSTOM_CALL,))):
        mark_manual(main)
        lists.changed()  # ops that stand on both sides of a border are copied
