"""Wrap a program as a StableHLO module: ``main(tile) -> tile``, as docs/architecture.md describes it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from shardpass.element_types import ElementType
from shardpass.ir.context import make_context
from shardpass.redistribute.program.lower import emit
from shardpass.redistribute.program.ops import DeviceProgram
from shardpass.sharding import Sharding


@dataclass(frozen=True, slots=True)
class LocalTile:
    """An argument or result of ``main``: the tile that each device has of an array under ``sharding``."""

    sharding: Sharding
    tile: tuple[int, ...]


def module_text(
    program: DeviceProgram,
    shape: tuple[int, ...],
    element_type: ElementType,
    num_devices: int,
    source: LocalTile,
    target: LocalTile,
) -> str:
    """Return the text of the module in which ``main`` is ``program``; ``shape``: of the whole array."""
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        i32 = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, num_devices)
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)
        element = ir.Type.parse(element_type.mlir)
        whole = ir.RankedTensorType.get(list(shape), element)
        operand, result = (ir.RankedTensorType.get(list(end.tile), element) for end in (source, target))
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([operand], [result]), visibility="public")
            main.arg_attrs = ir.ArrayAttr.get([_annotation(whole, source.sharding)])
            main.attributes["res_attrs"] = ir.ArrayAttr.get([_annotation(whole, target.sharding)])
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            func.ReturnOp([emit(program, block.arguments[0], itertools.count(1))])
        return str(module)


def _annotation(whole: Any, sharding: Sharding) -> Any:
    return ir.DictAttr.get(
        {
            "mhlo.sharding": ir.StringAttr.get("{manual}"),
            "shardpass.global_type": ir.TypeAttr.get(whole),
            "shardpass.sharding": ir.StringAttr.get(str(sharding)),
        }
    )
