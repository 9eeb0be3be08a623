"""Parse HLO text into computations and ops.

Every backend prints one op a line, ``%name = type opcode(operands), attributes``. Three forms differ:

1. with ``%`` before names or without;
2. with the types of operands, ``add(f32[8]{0} %a, f32[8]{0} %b)``, or without;
3. tuples of more than five elements have comments, ``/*index=5*/``.

A computation opens with ``%name (parameters) -> type {``, or ``name {``, and ends with ``}``. Types may hold
parentheses: tuples, and a TPU's tiled layouts, ``f32[8,128]{1,0:T(8,128)}``. An op's operands and attributes are
parsed where they are asked for.

Cost: one pass over the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from shardpass.element_types import element_type
from shardpass.hlo.frames import Frames, read_frames
from shardpass.sharding.quoting import EscapeError, c_unquoted

_HEAD = re.compile(r"(ENTRY )?%?([\w.\-]+) .*\{$")
_OP = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = ")
_CODE = re.compile(r"\s*([\w\-]+)\(")
_COMMENT = re.compile(r"/\*index=\d+\*/")
_TURN = re.compile(r'[(){}]|"(?:[^"\\]|\\.)*"')
_PERCENT = re.compile(r"%([\w.\-]+)")
_PLAIN = re.compile(r"([A-Za-z_][\w.\-]*)\s*(?:,|$)")
_SHAPE = re.compile(r"\b([a-z]+\d*(?:e\d+m\d+\w*)?)\[([\d,<=]*)\](?:\{[^{}]*\bS\((\d+)\)\})?")
_CALLED = re.compile(
    r"\b(to_apply|body|condition|calls|called_computations|branch_computations|true_computation|false_computation)="
    r"(?:\{([^}]*)\}|%?([\w.\-]+))"
)
_OP_NAME = re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"')
_PARTITIONS = re.compile(r"\bnum_partitions=(\d+)")
_REPLICAS = re.compile(r"\breplica_count=(\d+)")
_NO_BYTES = frozenset({"token", "opaque"})


@dataclass(frozen=True)
class Shape:
    """The element type, as HLO names it, and the sizes of an array; a dynamic dimension has its bound.

    ``memory``: the memory of the device that holds it, 0 for the usual one; a TPU's vector memory is 1.
    """

    element: str
    sizes: tuple[int, ...]
    memory: int = field(default=0, compare=False)

    @property
    def elements(self) -> int:
        return prod(self.sizes)

    @property
    def bytes(self) -> int:
        """The bytes of the array, packed. An unknown element type has the bit width in its name."""
        if self.element in _NO_BYTES:
            return 0
        try:
            return element_type(self.element).bytes(self.elements)
        except KeyError:
            width = re.search(r"\d+", self.element)
            return -(-self.elements * int(width[0]) // 8) if width else 0

    def __str__(self) -> str:
        return f"{self.element}[{','.join(map(str, self.sizes))}]"

    @property
    def mlir(self) -> str:
        """The type as MLIR writes it, ``tensor<4x8xf32>``."""
        try:
            element = element_type(self.element).mlir
        except KeyError:
            element = self.element
        return f"tensor<{''.join(f'{size}x' for size in self.sizes)}{element}>"


@dataclass(frozen=True)
class HloOp:
    """One op. ``rest``: the text after ``opcode(``."""

    name: str
    type: str
    opcode: str
    rest: str
    is_root: bool

    @cached_property
    def _end(self) -> int:
        """The offset in ``rest`` after the operands."""
        return _closing(self.rest, 1)

    @property
    def inside(self) -> str:
        """The text of the operands; for a parameter its number, for a constant its value."""
        return self.rest[: self._end]

    @property
    def attributes(self) -> str:
        return self.rest[self._end + 1 :]

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The names of the operands."""
        if self.opcode in ("parameter", "constant", "iota"):
            return ()
        return tuple(_PERCENT.findall(self.inside) or _PLAIN.findall(self.inside))

    @property
    def number(self) -> int:
        """The index of a parameter or of a get-tuple-element; -1 where the text has none."""
        match = re.search(r"\bindex=(\d+)", self.attributes) if self.opcode == "get-tuple-element" else None
        text = match[1] if match else self.inside.strip()
        return int(text) if text.isdecimal() else -1

    @cached_property
    def called(self) -> tuple[tuple[str, str], ...]:
        """Pairs (attribute, name) of the computations that the op calls or applies."""
        return tuple(
            (attribute, name.strip().lstrip("%"))
            for attribute, several, single in _CALLED.findall(self.attributes)
            for name in (several or single).split(",")
            if name.strip()
        )

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The arrays of the result, with the elements of tuples in order."""
        return shapes_of(self.type)

    @property
    def results(self) -> tuple[Shape, ...]:
        """The arrays that the op computes; of an asynchronous start, without its operands and its state.

        The type of a start is (operands, results, contexts); of ``all-reduce-start`` it is of results alone. That of
        ``recv`` is (result, context, token).
        """
        if self.opcode == "recv" and self.type.startswith("("):
            return shapes_of(_elements(self.type)[0])
        if not self.opcode.endswith("-start") or self.opcode == "all-reduce-start" or not self.type.startswith("("):
            return self.shapes
        parts = _elements(self.type)
        if len(parts) == 2 * len(self.operands) > 2:  # operands, then results, in one flat tuple
            return shapes_of("".join(parts[len(self.operands) :]))
        return shapes_of(parts[1]) if len(parts) > 1 else self.shapes

    @cached_property
    def stack(self) -> str:
        """JAX's name stack of the op, ``jit(step)/transpose(jvp())/dot_general``."""
        match = _OP_NAME.search(self.attributes)
        try:
            return c_unquoted(match[1]) if match else ""
        except EscapeError:
            return match[1] if match else ""


@dataclass
class Computation:
    """The ops of a computation by name, in the order of the text."""

    ops: dict[str, HloOp] = field(default_factory=dict)

    @cached_property
    def root(self) -> HloOp | None:
        ops = list(self.ops.values())
        return next((op for op in ops if op.is_root), ops[-1] if ops else None)

    @cached_property
    def users(self) -> Mapping[str, list[HloOp]]:
        """The ops that use each op's result, by the op's name."""
        result: dict[str, list[HloOp]] = {}
        for op in self.ops.values():
            for operand in dict.fromkeys(op.operands):
                result.setdefault(operand, []).append(op)
        return result

    @cached_property
    def parameters(self) -> Mapping[int, HloOp]:
        return {op.number: op for op in self.ops.values() if op.opcode == "parameter"}


@dataclass(frozen=True)
class HloProgram:
    """A parsed HLO module.

    Attributes:
        header: its first line.
        computations: by name, in the order of the text; ``entry``: the name of the one that runs.
        frames: the source lines of ops.
    """

    header: str
    computations: Mapping[str, Computation]
    entry: str
    frames: Frames

    @property
    def name(self) -> str:
        match = re.match(r"HloModule\s+([^\s,]+)", self.header)
        return match[1] if match else ""

    @property
    def partitions(self) -> int:
        """The number of partitions in the header, or 1."""
        return _counted(_PARTITIONS, self.header)

    @property
    def replicas(self) -> int:
        return _counted(_REPLICAS, self.header)


def _counted(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return max(1, int(match[1])) if match else 1


def read_program(text: str) -> HloProgram:
    """Parse an HLO module; lines that are not HLO are skipped."""
    computations: dict[str, Computation] = {}
    header = entry = ""
    current: Computation | None = None
    lines = text.splitlines()
    for raw in lines:
        if not raw[:1].isspace():
            line = raw.rstrip()
            if line.startswith("HloModule") and not header:
                header = line
            elif line.startswith("}") and not line.startswith("})"):
                current = None
            elif current is None and (head := _HEAD.fullmatch(line)):
                current = computations.setdefault(head[2], Computation())
                entry = head[2] if head[1] else entry
        elif current is not None and (op := _read_op(raw)) is not None:
            current.ops[op.name] = op
    return HloProgram(header, computations, entry or next(reversed(computations), ""), read_frames(lines))


def _read_op(raw: str) -> HloOp | None:
    begin = _OP.match(raw)
    if begin is None:
        return None
    text = raw[begin.end() :]
    if "/*" in text:
        text = _COMMENT.sub("", text)
    end = _closing(text, 0) + 1 if text.startswith("(") else text.find(" ")
    code = _CODE.match(text, max(end, 0))
    if end <= 0 or code is None:
        return None
    return HloOp(begin[2], text[:end], code[1], text[code.end() :], begin[1] is not None)


def _closing(text: str, depth: int) -> int:
    """Return the position at which the outermost of ``depth`` open parentheses closes, or the end of the text."""
    for match in _TURN.finditer(text):
        depth += (match[0] == "(") - (match[0] == ")")
        if depth == 0 and match[0] == ")":
            return match.start()
    return len(text)


def _elements(kind: str) -> list[str]:
    """Return the element types of a tuple type; nested tuples are not expanded."""
    inner, elements, start, depth = kind[1:-1], [], 0, 0
    for place, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            elements.append(inner[start:place])
            start = place + 1
    return [*elements, inner[start:]]


def shapes_of(kind: str) -> tuple[Shape, ...]:
    """Return the arrays in the text of a type."""
    arrays = _SHAPE.findall(kind)
    return tuple(
        Shape(name, tuple(int(n.lstrip("<=")) for n in dims.split(",") if n), int(memory or 0))
        for name, dims, memory in arrays
    )
