"""Names of values as the user knows them: the argument's path, the variable, or the expression.

1. An argument of main is named by its path, ``params['layers'][0]['w1']``, which JAX writes into its location.
2. A value that is only another form of a value (a constraint, a conversion, a reshape, a slice of a loop's
iteration) has the same name; a slice is marked ``[i]``. An array that a scan stacks has the name of its elements.
3. Any other value is named by the text at its op's location: the variable, if the line only assigns it, else the
expression. ``h = jnp.tanh(x @ w)`` has the values ``x @ w`` and ``h``.
4. A value of a derivative is at the line that is differentiated. Its name is ``gradient of`` the only operand of
that line's op with the same elements, else of the expression.

A location may name any file. For programs from strangers, only text in the user's working folders is quoted
(``source_lines``).

State: names, once each. Complexity: O(1) for a value, after one pass over the ops.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

from shardpass.diagnostics import NOWHERE, Place
from shardpass.ir.argument_names import argument_names
from shardpass.ir.context import UNNAMED
from shardpass.ir.frames import NO_FRAME, Frame, callers, inner_places, user_frame
from shardpass.program.program import Op, OpKind, Program
from shardpass.report.rows import folded_name, scopes, where
from shardpass.report.source_lines import is_large, source_line, source_lines
from shardpass.sharding.quoting import mlir_unquoted, shown

GRADIENT = "gradient of "
LONGEST = 40  # characters of an expression that is shown
MOST_LINES = 12  # of an expression that is read

_NAME = re.compile(r'loc\("((?:[^"\\]|\\.)*)"(?!:\d)')
_SAME = frozenset({"stablehlo.convert", "stablehlo.reshape", "stablehlo.transpose", "stablehlo.optimization_barrier"})
_STRETCHED = frozenset({"stablehlo.broadcast_in_dim"})
_CUT = frozenset({"stablehlo.dynamic_slice"})
_PASSED = frozenset({OpKind.CONSTRAINT, OpKind.ENTER_REGION, OpKind.LEAVE_REGION})
_MLIRS = re.compile(r"%[\w$.-]+")
_FURTHEST = 32  # ops that are gone back through


class Sources:
    """Read the text of the user's files below ``folders``; if that is None, the text of any file or notebook."""

    def __init__(self, folders: Sequence[Path] | None = None) -> None:
        self.folders = folders

    def line(self, place: Place) -> str:
        """Return the stripped text of a line; "" if the line may not be quoted."""
        return self._raw(place).strip() if place.line else ""

    def text(self, file: str) -> str:
        """Return the text of a file; "" if the file may not be quoted."""
        if self.folders is None:
            return "" if is_large(file) else "".join(linecache.getlines(file))
        return "\n".join(source_lines(file, self.folders))

    def expression(self, frame: Frame) -> str:
        """Return the variable to which the expression at ``frame`` is assigned, or the expression; "" if unknown."""
        place = frame.place
        if not frame.end_line:
            return self.identifier(frame) or _starting_at(self._raw(place), place.column)
        if not 0 <= frame.end_line - place.line < MOST_LINES:
            return ""
        rows = [self._raw(Place(place.file, line)) for line in range(place.line, frame.end_line + 1)]
        if not all(row.strip() for row in rows):
            return ""
        return _expression(tuple(rows), place.column, frame.end_column)

    def identifier(self, frame: Frame) -> str:
        """Return the ``%name`` in MLIR text of the argument at ``frame``, or of the value assigned on its line."""
        place = frame.place
        row = self._raw(place) if place.file.endswith(".mlir") else ""
        match = _MLIRS.match(row[max(0, place.column - 1) :]) or _MLIRS.match(row.lstrip())
        return match[0] if match else ""

    def _raw(self, place: Place) -> str:
        if self.folders is None:
            return "" if is_large(place.file) else linecache.getline(place.file, place.line)
        return source_line(place, self.folders, strip=False)


@lru_cache(maxsize=4096)
def _expression(rows: tuple[str, ...], start: int, end: int) -> str:
    """Return the text from column ``start`` to ``end``, in bytes of UTF-8 from 0."""
    raw = [row.encode() for row in rows]
    cut = [*raw]
    cut[-1] = cut[-1][:end]
    cut[0] = cut[0][start:]
    text = " ".join(" ".join(part.decode(errors="replace") for part in cut).split()).replace("( ", "(")
    before, after = raw[0][:start].decode(errors="replace"), raw[-1][end:].decode(errors="replace")
    match = re.fullmatch(r"\s*([A-Za-z_]\w*)(?:\s*:[^=]*)?\s*=\s*\(?", before)
    if match and after.partition("#")[0].strip() in ("", ")"):
        return match[1]
    if len(text) <= LONGEST and _is_expression(text):
        return text
    return _called(text) or (text[: LONGEST - 3] + "..." if _is_expression(text) else "")


@lru_cache(maxsize=4096)
def _starting_at(row: str, start: int) -> str:
    """Return the longest expression of the statement ``row`` that starts at a column; the location has no end."""
    indent = len(row) - len(row.lstrip())
    try:
        nodes = list(ast.walk(ast.parse(row.strip())))
    except (SyntaxError, ValueError):
        return ""
    ends = [
        node.end_col_offset or 0
        for node in nodes
        if isinstance(node, ast.expr) and node.col_offset + indent == start and not isinstance(node, ast.Name)
    ]
    return _expression((row,), start, max(ends) + indent) if ends else ""


def _called(text: str) -> str:
    """Shorten a call to its function: ``jnp.take_along_axis(...)``."""
    match = re.match(r"[A-Za-z_][\w.]*\(", text)
    return f"{match[0]}...)" if match and len(match[0]) < LONGEST and text.endswith(")") else ""


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return False
    return True


def seen_frame(location: str, stack: str) -> Frame:
    """Return the user's frame; None for an op whose name stack refers only to text without a file."""
    frame = user_frame(location)
    return NO_FRAME if stack and frame.place.file == UNNAMED else frame


def path_of(location: str, stack: str) -> tuple[Place | str, ...]:
    """Return the ``Row.path`` of an op with this location and name stack."""
    if seen_frame(location, stack).place == NOWHERE:
        return scopes(stack) or ((stack,) if stack else ())
    return (*inner_places(location), *scopes(stack), *callers(location))


class Names:
    """Find the names of a program's values. ``locations``: of ops; ``arguments``: of main's arguments, as text."""

    def __init__(
        self,
        program: Program,
        locations: Sequence[str],
        arguments: Sequence[str],
        sources: Sources,
    ) -> None:
        self.program, self.locations, self.sources = program, locations, sources
        self._known: dict[int, str] = {}
        self._arguments = frozenset(program.body.arguments)
        self._frames: dict[int, Frame] = {}
        self.makers: dict[int, Op] = {}
        self._holders: dict[int, tuple[Op, int]] = {}  # arguments of a loop's regions
        self._forward: dict[Frame, list[Op]] | None = None
        named = argument_names(arguments)
        self._named_at: dict[tuple[Frame, tuple[int, ...]], frozenset[str]] = {}
        for place, value in enumerate(program.body.arguments):
            location, name = (arguments[place], named[place]) if place < len(arguments) else ("", "")
            self._known[value] = name or sources.identifier(user_frame(location)) or f"argument {place}"
        for op in program.body.every_op():
            for value in op.results:
                self.makers[value] = op
            for block in op.blocks:
                for place, value in enumerate(block.arguments):
                    self._holders[value] = (op, place)

    def frame(self, op: Op) -> Frame:
        """Return the user's frame of an op."""
        frame = self._frames.get(op.number)
        if frame is None:
            known = op.number < len(self.locations)
            frame = seen_frame(self.locations[op.number], self.stack(op)) if known else NO_FRAME
            self._frames[op.number] = frame
        return frame

    def stack(self, op: Op) -> str:
        """Return the op's name: ``jit(step)/transpose(jvp())/dot_general``."""
        match = _NAME.match(self.locations[op.number]) if op.number < len(self.locations) else None
        return shown(mlir_unquoted(match[1])) if match else ""

    def path(self, op: Op) -> tuple[Place | str, ...]:
        """Return ``Row.path`` of the collectives that the op needs."""
        location = self.locations[op.number] if op.number < len(self.locations) else ""
        return path_of(location, self.stack(op))

    def where(self, op: Op) -> str:
        """Return ``Row.where`` of the collectives that the op needs."""
        return where(self.frame(op).place, self.path(op))

    def is_backward(self, op: Op) -> bool:
        """Return whether the op belongs to the backward pass: whether its name stack contains ``transpose(``."""
        return op.number < len(self.locations) and "transpose(" in self.locations[op.number]

    def of(self, value: int) -> str:
        """Return the name of ``value``; "" if the program has no name for the value."""
        name = self._known.get(value)
        if name is None:
            name = self._known[value] = self._find(value, gradients=True)
        return name

    # ---------------------------------------------------------------- how

    def _find(self, value: int, *, gradients: bool) -> str:
        """Return the name of the value whose data ``value`` has; "" for derivatives without ``gradients``.

        Each step goes to an earlier value, so the walk ends; it calls itself at most once, for the name of the value of
        which this is the gradient.
        """
        loops: list[Op] = []  # entered on the way; the outermost that has a name gives the name where no value does
        while True:
            value, cut = self._form_of(value, self._known if gradients else self._arguments)
            if value in self._arguments:
                name = self._known[value] + cut
                break
            if gradients and value in self._known:
                name = self._known[value]
                break
            op = self.makers.get(value)
            if op is not None:
                backward = self.is_backward(op)
                name = self.sources.expression(self.frame(op)) if not backward else ""
                if backward and gradients:
                    name = self._gradient(op, value)
                break
            if value not in self._holders:
                name = ""
                break
            holder, place = self._holders[value]
            loops.append(holder)
            if not holder.is_loop:
                name = ""
                break
            value = holder.operands[place]
        return name or next(filter(None, (self.sources.expression(self.frame(one)) for one in reversed(loops))), "")

    def _form_of(self, value: int, ends: Collection[int]) -> tuple[int, str]:
        """Follow ``value`` through reshapes, copies and slices to its source, or to the first of ``ends``.

        Returns the source and the mark of a slice on the way, "[i]" or "".
        """
        cut = ""
        for _ in range(_FURTHEST):
            source = None if value in ends else self._behind(value)
            if source is None:
                break
            value, step = source
            cut = cut or step
        return value, cut

    def _behind(self, value: int) -> tuple[int, str] | None:
        """Return one step of ``_form_of``; None if ``value`` has its own name."""
        op = self.makers.get(value)
        if op is None:
            holder = self._holders.get(value)
            if holder is None or not holder[0].is_loop:
                return None
            loop, place = holder
            returned = loop.blocks[-1].returned
            unchanged = place < len(returned) and returned[place] == loop.blocks[-1].arguments[place]
            return (loop.operands[place], "") if unchanged else None
        if op.is_loop:
            return self._stacked(op, op.results.index(value)) if op.blocks else None  # None in a manual region
        if not op.operands:
            return None
        if op.kind in _PASSED or op.name in _SAME:
            return op.operands[op.results.index(value) if op.name == "stablehlo.optimization_barrier" else 0], ""
        if op.name in _STRETCHED and self._elements(op.operands[0]) > 1:
            return op.operands[0], ""
        return (op.operands[0], "[i]") if op.name in _CUT else None

    def _stacked(self, loop: Op, place: int) -> tuple[int, str] | None:
        """Return the value that each trip of a loop writes into a stacked result, as the ``ys`` of a scan."""
        made = self.makers.get(loop.blocks[-1].returned[place])
        return (made.operands[1], "") if made is not None and made.name == "stablehlo.dynamic_update_slice" else None

    def _elements(self, value: int) -> int:
        array = self.program.arrays[value]
        return 0 if array is None else array.bytes

    def _gradient(self, op: Op, value: int) -> str:
        frame, array = self.frame(op), self.program.arrays[value]
        named = self._primals(frame, tuple(sorted(array.shape))) if array is not None and array.rank else frozenset()
        if len(named) == 1:
            return GRADIENT + next(iter(named))
        expression = self.sources.expression(frame)
        return GRADIENT + expression if expression else ""

    def _primals(self, frame: Frame, sizes: tuple[int, ...]) -> frozenset[str]:
        """Return the names of the operands of forward ops at ``frame`` that have ``sizes`` and are no gradients
        themselves.

        Ops of a library may share one frame: an update there has a gradient as its operand, and naming this gradient
        would search here again.
        """
        key = frame, sizes
        if key not in self._named_at:
            operands = dict.fromkeys(operand for op in self._at(frame) for operand in op.operands)
            arrays = ((operand, self.program.arrays[operand]) for operand in operands)
            alike = (operand for operand, array in arrays if array is not None and tuple(sorted(array.shape)) == sizes)
            names = (self._find(operand, gradients=False) for operand in alike)
            self._named_at[key] = frozenset(folded_name(name) for name in names if name)
        return self._named_at[key]

    def _at(self, frame: Frame) -> list[Op]:
        """List the forward ops whose frame equals ``frame``."""
        if self._forward is None:
            self._forward = {}
            for op in self.program.body.every_op():
                if not self.is_backward(op) and (line := self.frame(op)) is not NO_FRAME:
                    self._forward.setdefault(line, []).append(op)
        return self._forward.get(frame, [])
