"""Read the ops of a module in one walk.

Reading an op through the bindings costs about half a microsecond each time a block is iterated, and as much again for
its name, its regions and its attributes. A pass therefore reads a function once, with ``read_blocks``, and works on the
lists that it gets. No walk here calls itself, so that the nesting of regions is not bounded by Python's stack.

A list is a snapshot. Code that erases or makes ops updates the list or reads it again: an op that was erased through
another object must not be touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

BRANCHES = ("stablehlo.if", "stablehlo.case")
CONTROL_FLOW = frozenset({"stablehlo.while", *BRANCHES})


@dataclass(slots=True)
class OpList:
    """The ops of one block in order, with the name of each op. ``owner``: the op whose region has the block."""

    block: Any
    owner: Any
    owner_name: str
    ops: list[Any]
    names: list[str]

    @property
    def terminator(self) -> Any:
        return self.ops[-1]


def read_block(block: Any, owner: Any) -> OpList:
    """Read the ops of one block, not those of nested blocks."""
    ops = [view.operation for view in block.operations]
    return OpList(block, owner, owner.name, ops, [op.name for op in ops])


def read_blocks(op: Any) -> list[OpList]:
    """Read all blocks below ``op``, outermost first, in the order of the text. O(ops)."""
    blocks = []
    todo = _blocks_of([operation(op)])
    while todo:
        block, owner = todo.pop()
        inside = read_block(block, owner)
        blocks.append(inside)
        todo += _blocks_of(inside.ops)
    return blocks


def _blocks_of(ops: Iterable[Any]) -> list[tuple[Any, Any]]:
    """Return (block, its op) for the regions of ``ops``, the last first."""
    rows = [(block, op) for op in ops if len(regions := op.regions) for region in regions for block in region.blocks]
    rows.reverse()
    return rows


class OpLists:
    """The ops below ``root``, read at first use, and again after the module changed."""

    def __init__(self, root: Any) -> None:
        self.root = operation(root)
        self._blocks: list[OpList] | None = None
        self._names: frozenset[str] | None = None

    @property
    def blocks(self) -> list[OpList]:
        if self._blocks is None:
            self._blocks = read_blocks(self.root)
        return self._blocks

    @property
    def names(self) -> frozenset[str]:
        """The names of all ops, so that a step without such ops can return at once."""
        if self._names is None:
            self._names = frozenset().union(*(inside.names for inside in self.blocks))
        return self._names

    @property
    def is_read(self) -> bool:
        return self._blocks is not None

    def take(self, blocks: list[OpList]) -> None:
        """Use lists that were read for another root."""
        self._blocks, self._names = blocks, None

    def changed(self) -> None:
        """Drop the lists, after ops were created, moved or erased."""
        self._blocks = self._names = None


def named(blocks: Iterable[OpList], names: Iterable[str]) -> list[Any]:
    """List the ops of ``blocks`` that have one of ``names``, in order."""
    wanted = frozenset(names)
    return [op for inside in blocks for op, name in zip(inside.ops, inside.names, strict=True) if name in wanted]


def operation(op: Any) -> Any:
    """Return the ``ir.Operation`` behind an op view."""
    return getattr(op, "operation", op)


def every_op(op: Any) -> Iterator[Any]:
    """Yield ``op`` and all ops below it, outermost first."""
    todo = [op]
    while todo:
        op = todo.pop()
        yield op
        if len(regions := op.regions):
            inner = [view.operation for region in regions for block in region.blocks for view in block.operations]
            todo += reversed(inner)


def walk_blocks(op: Any) -> Iterator[Any]:
    """Yield all blocks below ``op``, outermost first."""
    todo = [block for block, _ in _blocks_of([op])]
    while todo:
        block = todo.pop()
        yield block
        todo += [inner for inner, _ in _blocks_of(block.operations)]


def inputs_of(op: Any) -> list[Any]:
    """List the operands of ``op`` and outside values that its regions use."""
    values = list(op.operands)
    if not len(op.regions):
        return values
    inside: set[Any] = set()
    for block in walk_blocks(op):  # outer blocks first: what is made in one is known in those inside of it
        inside.update(block.arguments)
        for inner in map(operation, block.operations):
            values += [v for v in inner.operands if v not in inside]
            inside.update(inner.results)
    return values
