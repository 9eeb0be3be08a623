"""The values that optimised HLO writes to memory, read from its text.

These are the results of the instructions of the entry, and of the loops, branches and calls that it reaches, but for
those that write nothing: parameters, constants, tuples and their elements, bitcasts. What is inside of a fusion is not
written. A loop that XLA made itself, out of a scatter or a Cholesky decomposition, counts as what the program takes of
its result, and not as what its body writes.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from shardpass.element_types import element_type
from shardpass.hlo.read import HloOp, read_program

WRITES_NOTHING = frozenset(
    {
        "parameter",
        "constant",
        "get-tuple-element",
        "tuple",
        "bitcast",
        "while",
        "conditional",
        "call",
        "after-all",
        "add-dependency",
        "opt-barrier",
    }
)


@dataclass(frozen=True, slots=True)
class Size:
    """What a value has in common with its reshapes and transposes."""

    element: str  # as HLO spells it
    count: int

    @property
    def bytes(self) -> int:
        return element_type(self.element).bytes(self.count)


@dataclass(frozen=True, slots=True)
class Value:
    """A value in memory. ``name``: the op_name of its instruction; ``kind``: the opcode, of a fusion what fused."""

    size: Size
    name: str
    kind: str


def values_in(text: str, loops: Set[str]) -> list[Value]:
    """The values that the module ``text`` writes. ``loops``: the op_names of the program's own loops."""
    program = read_program(text)
    every = [op for one in program.computations.values() for op in one.ops.values()]
    used = {(op.operands[0], op.number) for op in every if op.opcode == "get-tuple-element"}
    values: list[Value] = []
    left, seen = [program.entry], {program.entry}
    while left:
        for op in program.computations[left.pop()].ops.values():
            sizes = [Size(shape.element, shape.elements) for shape in op.shapes if shape.element != "token"]
            if op.opcode == "while" and op.stack not in loops:
                read = [size for place, size in enumerate(sizes) if (op.name, place) in used]
                values += [Value(size, op.stack, "while") for size in read]
            elif op.opcode in ("while", "conditional", "call"):
                fresh = [name for _, name in op.called if name not in seen]
                seen.update(fresh)
                left += fresh
            elif op.opcode not in WRITES_NOTHING:
                values += [Value(size, op.stack, _kind(op)) for size in sizes]
    return values


def _kind(op: HloOp) -> str:
    return f"fusion {op.name.rstrip('.0123456789')}" if op.opcode == "fusion" else op.opcode
