"""Make contexts, and parse text to modules.

Modules are parsed here and nowhere else, so that every diagnostic and every location names the user's file.
"""

from __future__ import annotations

import codecs
import re
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import Diagnostic, Place, ShardpassError
from shardpass.diagnostics.internal import internal_error
from shardpass.diagnostics.table_driver import NOT_A_NAME, NOT_MLIR, NOT_TEXT, TOO_DEEP
from shardpass.ir.child import served_by
from shardpass.ir.depth import MOST, too_deep
from shardpass.ir.diagnostics import from_mlir
from shardpass.ir.dialects import make_context as make_context
from shardpass.ir.doors import MAGIC, PIECE, Format, Given, LargeFile, format_of, module_of, module_of_file
from shardpass.ir.location_names import check_names, is_utf8, may_hold_bytes
from shardpass.ir.text_locations import name_locations

UNNAMED = "-"  # MLIR's name for text that came from no file
NAMES = "a location, an attribute or an annotation"


def parse_module(
    text: Given,
    filename: str = UNNAMED,
    context: Any = None,
    *,
    first_line: int = 1,
    trusted: bool = False,
) -> Any:
    """Parse MLIR text or bytecode, or any other format of ``doors``, to an ``ir.Module``.

    ``filename`` names the text in diagnostics and locations; ``first_line`` is the line of the file at
    which the text starts. Without ``context`` a new one is made; the module keeps it alive. ``trusted``: this process
    wrote the bytecode, which is then parsed here and not in a child process.

    Raises ShardpassError: SP101 with MLIR's message and place if the text is invalid; SP102 for bytes of no known
    format; SP124 if the text nests so deeply that the parser would end the process; SP125 if the parser runs out of
    memory; SP126 for an empty file; SP127 if jaxlib cannot convert it; SP135 for a location with a name that is not
    UTF-8.
    """
    context = make_context() if context is None else context
    if isinstance(text, LargeFile):
        if text.format is Format.BYTECODE:
            return module_of_file(text, filename, context)
        text = text.read()
    data = text.encode("utf-8", "replace") if isinstance(text, str) else text
    kind = format_of(data)
    if trusted and kind is Format.BYTECODE:
        with context:
            return ir.Module.parse(data)
    if kind is not Format.TEXT:
        return module_of(data, kind, filename, context)
    _check_characters(data, filename, first_line)
    return _of_text(data.removeprefix(codecs.BOM_UTF8), filename, context, first_line - 1)


def _of_text(data: bytes, filename: str, context: Any, offset: int) -> Any:
    """Parse bytes, which MLIR's parser reads in place; it would copy a ``str``."""
    if (deep := too_deep(data)) is not None:
        line, depth = deep
        reason = f"{depth:,} brackets are open at once, and the most is {MOST:,}"
        raise TOO_DEEP.error(Place(filename, line + offset), name="MLIR's parser", reason=reason)
    strange = may_hold_bytes(data)
    if strange and not is_utf8(data):
        child = served_by("shardpass.ir.doors", "serve", Format.BYTECODE.name, "", data=data)
        if child.returncode < 0:  # what MLIR says of such a name would end this process too
            raise NOT_A_NAME.error(Place(filename), name=NAMES)
    with context:
        try:
            module = ir.Module.parse(data)
        except ir.MLIRError as error:
            complaints = [from_mlir(d, filename, offset) for d in error.error_diagnostics]
            lines = data.decode().split("\n")
            raise ShardpassError(*(_not_mlir(d, lines, offset) for d in complaints)) from None
        except (MemoryError, ValueError) as error:  # of a verifier that lists the elements of a constant
            raise internal_error("MLIR's parser", error, Place(filename)) from None
        if strange:
            _check_names(module, filename)
        name_locations(module, data, filename, offset)
    return module


def _check_names(module: Any, filename: str) -> None:
    try:
        check_names(module)
    except UnicodeDecodeError:
        raise NOT_A_NAME.error(Place(filename), name=NAMES) from None


def is_bytecode(data: bytes) -> bool:
    """Return whether ``data`` is MLIR bytecode, which begins with the magic number."""
    return data.startswith(MAGIC)


def decode(data: bytes, filename: str, first_line: int = 1) -> str:
    """Decode ``data`` as UTF-8 text, without a byte order mark.

    Raises ShardpassError (SP102) at the line of the first bad byte.
    """
    try:
        return data.decode("utf-8").removeprefix("\N{BYTE ORDER MARK}")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + first_line
        raise NOT_TEXT.error(Place(filename, line), byte=error.start, first=data[:8]) from None


def _check_characters(data: bytes, filename: str, first_line: int) -> None:
    """Check ``data`` as ``decode`` does, in pieces, as the decoded text would need several times the memory."""
    if data.isascii():
        return
    decoder, pieces = codecs.getincrementaldecoder("utf-8")(), memoryview(data)
    try:
        for start in range(0, len(data), PIECE):
            decoder.decode(pieces[start : start + PIECE])
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        decode(data, filename, first_line)


_FOR_OTHER_TOOLS = re.compile(r"\. If this is intended, please use -allow-unregistered-dialect.*", re.DOTALL)


def _not_mlir(complaint: Diagnostic, lines: list[str], offset: int) -> Diagnostic:
    """Convert MLIR's diagnostic: add the line and a caret, drop the list of all dialects."""
    message = _FOR_OTHER_TOOLS.sub("", complaint.message).strip()
    notes = tuple(n for n in complaint.notes if not n.message.startswith("Available dialects"))
    return NOT_MLIR.at(complaint.place, excerpt=_excerpt(complaint.place, lines, offset), notes=notes, reason=message)


def _excerpt(place: Place, lines: list[str], offset: int) -> str:
    """Return the line at ``place`` with a caret under its column; "" if the text has no such line."""
    row = place.line - offset - 1
    if not (0 <= row < len(lines) and place.column):
        return ""
    # MLIR counts bytes, a terminal characters
    column = len(lines[row].encode()[: place.column - 1].decode(errors="replace"))
    start = max(0, column - 80)
    shown = "".join(c if c.isprintable() else " " for c in lines[row][start : start + 100])
    return f"{shown}\n{' ' * (column - start)}^"


def dialects() -> tuple[str, ...]:
    """List the dialects that can be parsed, from MLIR's message on an unknown dialect."""
    with make_context():
        try:
            ir.Module.parse("no_such_dialect.op")
        except ir.MLIRError as error:
            notes = [note.message for complaint in error.error_diagnostics for note in complaint.notes]
            listed = next((note for note in notes if note.startswith("Available dialects:")), "")
            names = re.sub(r"\([^()]*\)", "", listed.removeprefix("Available dialects:").partition(";")[0])
            return tuple(sorted(name.strip() for name in names.split(",") if name.strip()))
    return ()


def copy_module(module: Any) -> Any:
    """Copy ``module`` in its own context, locations and attributes included."""
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
    """Return whether MLIR's verifier accepts ``module``."""
    try:
        module.operation.verify()
    except ir.MLIRError:
        return False
    return True
