"""``main`` as the passes see it: its values with shapes, bytes and shardings, its ops with their rules.

Facts cost about a microsecond each through the bindings, so they are read once, here, before anything changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import NO_MESH
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import is_ranked, operation
from shardpass.ops.factors import DimAxes, Rule
from shardpass.ops.mesh import PrimeMesh, prime_mesh
from shardpass.ops.registry import find
from shardpass.passes.annotations import MANUAL, MESH, SHARDING, main_of, mesh_of, text
from shardpass.passes.manual import inputs_of
from shardpass.passes.validate import read_for
from shardpass.sharding import Sharding


def element_bits(kind: Any) -> int:
    """Bits of one element; i1 and the smaller types take a byte, as they do on devices."""
    element = kind.element_type
    if isinstance(element, ir.ComplexType):
        return 2 * element_bits_of(element.element_type)
    return element_bits_of(element)


def element_bits_of(element: Any) -> int:
    width = getattr(element, "width", 0) or 32
    return max(8, int(width))


def tensor_bytes(kind: Any) -> int:
    """Bytes of a whole tensor."""
    return int(prod(kind.shape)) * element_bits(kind) // 8


@dataclass(slots=True)
class Node:
    """One op, with what is read of it before anything changes: its rule, and its blocks if it is control flow."""

    op: Any
    rule: Rule | None
    manual: bool
    blocks: list[Block]

    @property
    def kind(self) -> str:
        return str(self.op.name).removeprefix("stablehlo.")


@dataclass(slots=True)
class Block:
    """The ops of a block in order; ``end`` is its terminator."""

    arguments: list[Any]
    nodes: list[Node]
    end: Any


CONTROL_FLOW = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case"})


class Program:
    """``main`` as a tree of blocks, and the module's mesh in prime sub-axes.

    Raises ShardpassError: SP201 without @main, SP214 for a module that was not imported.
    """

    def __init__(self, module: Any, pipeline: str, *, rules: bool = True) -> None:
        self.module = module
        self.main = main_of(module)
        mesh = mesh_of(module)
        if mesh is None:
            raise NO_MESH.error(place_of(self.main.location), attribute=MESH, pipeline=pipeline)
        self.mesh: PrimeMesh = prime_mesh(mesh)
        self.body = _block(self.main.regions[0].blocks[0], rules)

    def shardings(self, attributes: Any, types: list[Any], location: Any) -> list[Sharding] | None:
        """What ``mhlo.sharding`` says for each of ``types``; None where it is absent."""
        if SHARDING not in attributes:
            return None
        return read_for(text(attributes[SHARDING]), types, place_of(location))

    def dims(self, sharding: Sharding, rank: int) -> DimAxes | None:
        """``sharding`` over the module's mesh; None where it has an order of its own or is maximal."""
        return self.mesh.dims(sharding, rank)


def _block(block: Any, rules: bool) -> Block:
    *ops, end = [operation(op) for op in block.operations]
    return Block(list(block.arguments), [_node(op, rules) for op in ops], end)


def _node(op: Any, rules: bool) -> Node:
    manual = is_manual(op)
    blocks = []
    if op.name in CONTROL_FLOW and not manual and all(map(is_ranked, [*op.operands, *op.results])):
        blocks = [_block(block, rules) for region in op.regions for block in region.blocks]
    return Node(op, _rule(op) if rules and not manual and not blocks else None, manual, blocks)


def _rule(op: Any) -> Rule | None:
    """The op's rule. Rules see tensors only, and no values that a region takes from outside."""
    entry = find(op.name)
    if entry is None or not all(map(is_ranked, [*op.operands, *op.results])):
        return None
    if len(op.regions) and len(inputs_of(op)) > len(op.operands):
        return None
    return entry.rule(op)


def is_manual(op: Any) -> bool:
    """Whether ``op`` is inside a manual region (see ``passes.manual``)."""
    return SHARDING in op.attributes and text(op.attributes[SHARDING]) == MANUAL
