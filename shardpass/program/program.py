"""``main`` as the passes see it: its values with shapes, bytes and shardings, its ops with their rules.

Facts cost about a microsecond each through the bindings, so they are read once, here, before anything changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_passes import NO_MESH, SCOPE_OFF_MESH
from shardpass.ir.annotations import MANUAL, MESH, SCOPE, SHARDING, get_text, main_of, mesh_of, text
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import inputs_of, is_ranked, operation
from shardpass.ops.model import OpModel
from shardpass.ops.registry import find
from shardpass.ops.splits.factors import Rule
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.program.manual_regions import CONTROL_FLOW
from shardpass.program.validate import read_for
from shardpass.sharding import Sharding, parse_sharding


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
    model: OpModel[Any] | None
    manual: bool  # inside a region that is manual over all axes: left alone
    blocks: list[Block]
    mesh: PrimeMesh  # the module's; its manual sub-axes are those of the region that the op is in

    @property
    def rule(self) -> Rule | None:
        return None if self.model is None else self.model.rule

    @property
    def kind(self) -> str:
        return str(self.op.name).removeprefix("stablehlo.")


@dataclass(slots=True)
class Block:
    """The ops of a block in order; ``end`` is its terminator."""

    arguments: list[Any]
    nodes: list[Node]
    end: Any


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
        self._scopes: dict[str, PrimeMesh] = {}
        self._rules = rules
        self.body = self._block(self.main.regions[0].blocks[0], self.mesh)

    def shardings(self, attributes: Any, types: list[Any], location: Any) -> list[Sharding] | None:
        """What ``mhlo.sharding`` says for each of ``types``; None where it is absent."""
        if SHARDING not in attributes:
            return None
        return read_for(text(attributes[SHARDING]), types, place_of(location))

    def _block(self, block: Any, mesh: PrimeMesh) -> Block:
        *ops, end = [operation(op) for op in block.operations]
        return Block(list(block.arguments), [self._node(op, mesh) for op in ops], end)

    def _node(self, op: Any, around: PrimeMesh) -> Node:
        manual = is_manual(op)
        mesh = self._scope(op, around)
        blocks = []
        if op.name in CONTROL_FLOW and not manual and all(map(is_ranked, [*op.operands, *op.results])):
            blocks = [self._block(block, mesh) for region in op.regions for block in region.blocks]
        model = _model(op) if self._rules and not manual and not blocks else None
        return Node(op, model, manual, blocks, mesh)

    def _scope(self, op: Any, around: PrimeMesh) -> PrimeMesh:
        """The mesh as ops of the region that ``op`` is in see it."""
        said = get_text(op, SCOPE)
        if said is None:
            return around
        if said not in self._scopes:
            sharding = parse_sharding(said)
            on = sharding.on(self.mesh.mesh) if isinstance(sharding, Sharding) else None
            manual = None if on is None else self.mesh.numbered(on.manual)
            if manual is None:
                raise SCOPE_OFF_MESH.error(place_of(op.location), scope=said, mesh=self.mesh.mesh)
            self._scopes[said] = prime_mesh(self.mesh.mesh, tuple(sorted(manual)))
        return self._scopes[said]


def _model(op: Any) -> OpModel[Any] | None:
    """The op's model. Models see tensors only, and no values that a region takes from outside."""
    entry = find(op.name)
    if entry is None or not all(map(is_ranked, [*op.operands, *op.results])):
        return None
    if len(op.regions) and len(inputs_of(op)) > len(op.operands):
        return None
    return entry.read(op)


def is_manual(op: Any) -> bool:
    """Whether ``op`` is inside a manual region (see ``program.manual_regions``)."""
    return SHARDING in op.attributes and text(op.attributes[SHARDING]) == MANUAL
