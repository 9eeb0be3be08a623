"""Contexts, and text to module.

Modules are parsed here and nowhere else, so that every diagnostic and every location names the user's file.
"""

from __future__ import annotations

import re
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import NOWHERE, Diagnostic, Place, ShardpassError
from shardpass.diagnostics.table_driver import NOT_MLIR, NOT_TEXT
from shardpass.ir.diagnostics import from_mlir
from shardpass.ir.locations import place_of
from shardpass.ir.signatures import signatures

UNNAMED = "-"  # MLIR's name for text that came from no file


def make_context() -> Any:
    """A fresh ``ir.Context`` in which the modules of JAX parse.

    Registers what ``jax`` registers, without importing it: a command starts three times faster. Falls back
    to JAX's own function where jaxlib has moved its parts; a test compares the two.
    """
    try:
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo
    except ImportError:
        from shardpass.ir.jax_private import make_ir_context

        return make_ir_context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    return context


def parse_module(text: str | bytes, filename: str = UNNAMED, context: Any = None, *, first_line: int = 1) -> Any:
    """Parses MLIR's text or bytecode to an ``ir.Module``.

    ``filename`` is what diagnostics and locations call the text; ``first_line`` is the line of the file at
    which the text starts. Without ``context`` a fresh one is made; the module keeps it alive.

    Raises ShardpassError (SP101) with MLIR's own message, at its place, where the text is not valid.
    """
    if isinstance(text, bytes) and not is_bytecode(text):
        text = decode(text, filename, first_line)
    offset = first_line - 1
    context = make_context() if context is None else context
    with context:
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            found = [from_mlir(d, filename, offset) for d in error.error_diagnostics]
            lines = text.split("\n") if isinstance(text, str) else []
            raise ShardpassError(*(_not_mlir(d, lines, offset) for d in found)) from None
    if isinstance(text, str):
        places = _Places(filename, offset, module.context)
        if filename != UNNAMED or offset:
            _name_locations(module, places)
        _place_signatures(module, text, places)
    return module


def is_bytecode(data: bytes) -> bool:
    """Whether ``data`` is MLIR bytecode: it opens with the magic number."""
    return data.startswith(b"ML\xefR")


def decode(data: bytes, filename: str, first_line: int = 1) -> str:
    """``data`` as UTF-8 text. Raises ShardpassError (SP102) at the line of the first bad byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        raise NOT_TEXT.error(Place(filename, line), byte=error.start) from None


_FOR_OTHER_TOOLS = re.compile(r"\. If this is intended, please use -allow-unregistered-dialect.*", re.DOTALL)


def _not_mlir(found: Diagnostic, lines: list[str], offset: int) -> Diagnostic:
    """MLIR's complaint as ours: with the line and a caret, without the list of every dialect there is."""
    message = _FOR_OTHER_TOOLS.sub("", found.message).strip()
    notes = tuple(n for n in found.notes if not n.message.startswith("Available dialects"))
    return NOT_MLIR.at(found.place, excerpt=_excerpt(found.place, lines, offset), notes=notes, reason=message)


def _excerpt(place: Place, lines: list[str], offset: int) -> str:
    """The line at ``place`` with a caret under its column; empty where the text has no such line."""
    row = place.line - offset - 1
    if not (0 <= row < len(lines) and place.column):
        return ""
    # MLIR counts bytes, a terminal characters
    column = len(lines[row].encode()[: place.column - 1].decode(errors="replace"))
    start = max(0, column - 80)
    shown = "".join(c if c.isprintable() else " " for c in lines[row][start : start + 100])
    return f"{shown}\n{' ' * (column - start)}^"


_PARSED = re.compile(r'loc\("-":(\d+):(\d+)\)')
_NAME = re.compile(r'loc\(("(?:[^"\\]|\\.)*")\)')


def _name_locations(module: Any, places: _Places) -> None:
    """Gives the user's file name to the locations that the parser made up (its name for every text is "-").

    Locations that the text itself spells out, as JAX's modules do, are left as they are.
    """

    def visit(operation: Any) -> Any:
        location = places.named(operation.location)
        if location is not None:
            operation.location = location
        for region in operation.regions:
            for block in region:
                for argument in block.arguments:
                    location = places.named(argument.location)
                    if location is not None:
                        argument.set_location(location)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)


class _Places:
    """Locations in one file, made once each."""

    def __init__(self, filename: str, offset: int, context: Any) -> None:
        self.filename, self.offset, self.context = filename, offset, context
        self._known: dict[str, Any] = {}

    def at(self, line: int, column: int) -> Any:
        line += self.offset if line else 0  # line 0: the module that the parser put around the text
        return ir.Location.file(self.filename, line, column, self.context)

    def named(self, location: Any) -> Any:
        """``location`` with the file's name; None where it is not the parser's."""
        text = str(location)
        if text not in self._known:
            match = _PARSED.fullmatch(text)
            self._known[text] = match and self.at(int(match[1]), int(match[2]))
        return self._known[text]

    def completed(self, location: Any, line: int, column: int) -> Any:
        """``location``, which says no place, with this one; a name that it has is kept."""
        place = self.at(line, column)
        name = _NAME.fullmatch(str(location))
        if name is None:
            return place
        return ir.Location.name(ir.Attribute.parse(name[1], self.context).value, place, self.context)


def _place_signatures(module: Any, text: str, places: _Places) -> None:
    """Gives functions and arguments whose own locations name no line the line at which they stand.

    JAX's modules say of main's arguments what they are called and of functions nothing.
    """
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    vague = [f for f in functions if place_of(f.location) == NOWHERE or _vague_arguments(f)]
    if not vague:
        return
    known = signatures(text)
    for function in vague:
        signature = known.get(function.attributes["sym_name"].value)
        if signature is None:  # written in MLIR's generic form
            continue
        if place_of(function.location) == NOWHERE:
            function.operation.location = places.completed(function.location, *signature.function)
        for argument in _vague_arguments(function):
            if argument.arg_number < len(signature.arguments):
                position = signature.arguments[argument.arg_number]
                argument.set_location(places.completed(argument.location, *position))


def _vague_arguments(function: Any) -> list[Any]:
    """The arguments of ``function`` whose locations name no line."""
    blocks = list(function.regions[0])
    return [a for a in blocks[0].arguments if place_of(a.location) == NOWHERE] if blocks else []


def copy_module(module: Any) -> Any:
    """A copy of ``module`` in its own context, locations and attributes included."""
    with module.context:
        copy = ir.Module.create(module.operation.location)
        with ir.InsertionPoint(copy.body):
            for operation in module.body.operations:
                operation.operation.clone()
        for name in module.operation.attributes:
            key = name if isinstance(name, str) else name.name
            copy.operation.attributes[key] = module.operation.attributes[key]
    return copy


def is_valid(module: Any) -> bool:
    """Whether MLIR's verifier accepts ``module``."""
    try:
        module.operation.verify()
    except ir.MLIRError:
        return False
    return True
