"""The values that optimised HLO writes to memory, read from its text.

These are the results of the instructions of the entry, and of the loops, branches and calls that it reaches, but for
those that write nothing: parameters, constants, tuples and their elements, bitcasts. What is inside of a fusion is not
written. A loop that XLA made itself, out of a scatter or a Cholesky decomposition, counts as what the program takes of
its result, and not as what its body writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from math import prod

from shardpass.element_types import element_type

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

_HEAD = re.compile(r"^(ENTRY )?%([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%([\w.\-]+) = ")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
_OPCODE = re.compile(r"\s*([\w\-]+)\(")
_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_CALLED = re.compile(r"(?:body|condition|to_apply|true_computation|false_computation)=%([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_ELEMENT = re.compile(r" get-tuple-element\(.*?%([\w.\-]+)\), index=(\d+)")


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


@dataclass(frozen=True, slots=True)
class _Instruction:
    name: str
    sizes: tuple[Size, ...]
    opcode: str
    rest: str

    @property
    def op_name(self) -> str:
        match = _NAME.search(self.rest)
        return match[1].replace("\\'", "'") if match else ""


def values_in(text: str, loops: Set[str]) -> list[Value]:
    """The values that the module ``text`` writes. ``loops``: the op_names of the program's own loops."""
    entry, computations = _computations(text)
    used = {(name, int(place)) for name, place in _ELEMENT.findall(text)}
    values: list[Value] = []
    left, seen = [entry], {entry}
    while left:
        for one in computations.get(left.pop(), ()):
            if one.opcode == "while" and one.op_name not in loops:
                sizes = [size for place, size in enumerate(one.sizes) if (one.name, place) in used]
                values += [Value(size, one.op_name, "while") for size in sizes]
            elif one.opcode in ("while", "conditional", "call"):
                fresh = [name for name in _called(one.rest) if name not in seen]
                seen.update(fresh)
                left += fresh
            elif one.opcode not in WRITES_NOTHING:
                values += [Value(size, one.op_name, _kind(one)) for size in one.sizes]
    return values


def _kind(one: _Instruction) -> str:
    return f"fusion {one.name.rstrip('.0123456789')}" if one.opcode == "fusion" else one.opcode


def _called(rest: str) -> Iterator[str]:
    yield from _CALLED.findall(rest)
    for names in _BRANCHES.findall(rest):
        yield from (name.strip().removeprefix("%") for name in names.split(","))


def _computations(text: str) -> tuple[str, dict[str, list[_Instruction]]]:
    """The name of the entry, and the instructions of each computation."""
    entry, computations = "", dict[str, list[_Instruction]]()
    now: list[_Instruction] = []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            now = computations[head[2]] = []
            entry = head[2] if head[1] else entry
        elif made := _INSTRUCTION.match(line):
            now.append(_instruction(made[1], line[made.end() :]))
    return entry, computations


def _instruction(name: str, rest: str) -> _Instruction:
    end = _end_of_tuple(rest) if rest.startswith("(") else rest.index(" ")
    opcode = _OPCODE.match(rest, end)
    assert opcode is not None, rest
    arrays = _ARRAY.findall(rest[:end])
    sizes = [Size(element, prod(_numbers(dims))) for element, dims in arrays if element != "token"]
    return _Instruction(name, tuple(sizes), opcode[1], rest[opcode.end() :])


def _end_of_tuple(text: str) -> int:
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return place + 1
    raise ValueError(f"a type without an end: {text}")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
