"""Recognize the format of a file from its bytes, and convert the file to MLIR.

1. MLIR text: what is UTF-8 and nothing of the following. MLIR's parser reads it.
2. MLIR bytecode opens with ``ML\\xefR`` and the name of who wrote it. MLIR's reader reads it.
3. Portable StableHLO (VHLO; ``Exported.mlir_module_serialized``) is bytecode that ``StableHLO_v1.2.3`` wrote. StableHLO
   upgrades it.
4. ``jax.export`` (``Exported.serialize()``) is a FlatBuffer with a portable artefact inside.
5. HLO text begins with ``HloModule name``. XLA parses it, and makes StableHLO of it.
6. An HLO proto (``*.hlo.pb``, ``as_serialized_hlo_module_proto()``) has the fields of an ``HloModuleProto``, or is an
   ``HloProto`` around one. XLA makes StableHLO of it.

2 to 6 are read in a separate process, which passes bytecode on: jaxlib ends its process, or corrupts its memory, on
some damaged files. (Of 6,000 samples of bytecode in which up to four bytes were changed, one in 300.) A large
file of bytecode (``LargeFile``) goes from file to file there, so that its constants are never objects of Python. One of
text is read once, where it is parsed.

Protocol buffers (``protobuf``) and FlatBuffers are read as far as it takes to tell them apart: no library is needed.
"""

from __future__ import annotations

import enum
import os
import re
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from jaxlib.mlir import ir

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_driver import CANNOT_CONVERT, CANNOT_READ, EMPTY
from shardpass.ir import shardy_in_hlo
from shardpass.ir.child import answer, failure_of, making_files, served_by, served_by_files, temporary_file
from shardpass.ir.dialects import make_context
from shardpass.ir.location_names import check_names
from shardpass.ir.protobuf import fields
from shardpass.ir.tensors import entries
from shardpass.ir.walk import every_op

FRONTEND = "mhlo.frontend_attributes"
BITCAST = "mhlo.bitcast"  # computes something else with other layouts
_OF_LAYOUTS = ("xla_shape", "result_layout")

MAGIC = b"ML\xefR"
FIRST = 65536  # bytes of a file that show its format
LARGE = 16 << 20  # bytes of a file that is too large to stay in memory beside its module
PIECE = 1 << 20  # bytes in memory at once, of data read or written in pieces
_PORTABLE = re.compile(rb"ML\xefR.StableHLO_v([0-9.]+)", re.DOTALL)
# what was passed over stays so: a file of blank lines would be tried in exponentially many ways
_HLO_TEXT = re.compile(rb"(?:\s++|//[^\n]*+\n|(?>/\*.*?\*/))*+HloModule\s", re.DOTALL)
_NOT_IN_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f]")
_UNTYPED = re.compile(r"#stablehlo\.channel_handle<handle = ([1-9]\d*), type = 0>")


class Format(enum.Enum):
    """The formats of files, with their names in messages."""

    EMPTY = "an empty file"
    TEXT = "MLIR text"
    BYTECODE = "MLIR bytecode"
    PORTABLE = "a portable StableHLO artefact"
    EXPORT = "a jax.export artefact"
    HLO_TEXT = "HLO text"
    HLO_PROTO = "an HLO proto"


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A file of MLIR, ``BYTECODE`` or ``TEXT``, too large to be kept in memory together with its module.

    ``kept``: an open file that has no name and is deleted when it is closed; ``path`` then refers to its descriptor.
    """

    path: str
    format: Format
    kept: Any = field(default=None, repr=False, compare=False)

    @staticmethod
    def at(path: str) -> LargeFile | None:
        """Open the file ``path`` if it has at least ``LARGE`` bytes."""
        try:
            if not os.path.isfile(path) or os.path.getsize(path) < LARGE:
                return None
            with open(path, "rb") as file:
                first = file.read(FIRST)
        except (OSError, ValueError):  # reading it raises the error
            return None
        kind = LargeFile.kind(first)
        return None if kind is None else LargeFile(path, kind)

    @staticmethod
    def kind(start: bytes) -> Format | None:
        """Return the format of a file from its ``FIRST`` bytes: BYTECODE or TEXT; None for others."""
        first = start[:FIRST]
        format = format_of(first)
        known = format is Format.BYTECODE or (format is Format.TEXT and _NOT_IN_TEXT.search(first) is None)
        return format if known else None

    def open(self) -> BinaryIO:
        """Open the file for reading."""
        file = open(self.path, "rb")  # noqa: SIM115  who asked closes it
        file.seek(0)  # a descriptor that is opened again may stand where the other one does
        return file

    def read(self) -> bytes:
        """Read the file. Raises ShardpassError (SP120) if it cannot be read any more."""
        try:
            with self.open() as file:
                return file.read()
        except OSError as error:
            raise CANNOT_READ.error(Place(self.path), reason=error.strerror, hint="leave it until it is read") from None


Given = str | bytes | LargeFile
"""A program as it comes: text, the bytes of any format, or a file."""


def format_of(data: bytes) -> Format:
    """Recognise the format of ``data``. O(1), but for a file that is neither MLIR nor text."""
    if data.startswith(MAGIC):
        return Format.PORTABLE if _PORTABLE.match(data) else Format.BYTECODE
    if not data or data.isspace():
        return Format.EMPTY
    if _HLO_TEXT.match(data):
        return Format.HLO_TEXT
    if _inner_artefact(data) is not None:
        return Format.EXPORT
    return Format.TEXT if _hlo_module(data) is None else Format.HLO_PROTO


def module_of(data: bytes, kind: Format, filename: str, context: Any) -> Any:
    """Convert data other than MLIR text to an ``ir.Module``, in ``context``.

    Raises ShardpassError: SP126 for an empty file, SP127 where jaxlib does not read it.
    """
    place = Place(filename)
    if kind is Format.EMPTY:
        raise EMPTY.error(place)
    allowed = "unregistered" if context.allow_unregistered_dialects else ""
    child = served_by("shardpass.ir.doors", "serve", kind.name, allowed, data=data)
    if child.returncode:
        raise CANNOT_CONVERT.error(place, what=kind.value, reason=failure_of(child), how=_hint(kind, data))
    return _read_back(child.stdout, place, kind, context)


def module_of_file(given: LargeFile, filename: str, context: Any) -> Any:
    """Convert bytecode as ``module_of``, through a temporary file. Raises ShardpassError (SP127)."""
    allowed = "unregistered" if context.allow_unregistered_dialects else ""
    with making_files(), temporary_file() as made:
        with given.open() as file:
            call = ("shardpass.ir.doors", "serve", Format.BYTECODE.name, allowed)
            child = served_by_files(*call, source=file, sink=made)
        if child.returncode:
            what, how = Format.BYTECODE, _hint(Format.BYTECODE, b"")
            raise CANNOT_CONVERT.error(Place(filename), what=what.value, reason=failure_of(child), how=how)
        return _read_back(f"/dev/fd/{made.fileno()}", Place(filename), Format.BYTECODE, context)


def _read_back(made: bytes | str, place: Place, kind: Format, context: Any) -> Any:
    """Parse the child's output, which MLIR verifies; ``made``: bytecode, or the path of a file of it."""
    try:
        with context:
            return ir.Module.parse(made) if isinstance(made, bytes) else ir.Module.parseFile(made)
    except ir.MLIRError as error:
        reason = "; ".join(" ".join(d.message.split()) for d in error.error_diagnostics) or str(error)
        raise CANNOT_CONVERT.error(place, what=kind.value, reason=reason, how=_hint(kind, b"")) from None


def hlo_text_of(data: bytes, filename: str) -> str:
    """Return HLO's text of ``data``, text or a proto. Raises ShardpassError (SP127) where XLA cannot read it."""
    kind = format_of(data)
    if kind is Format.HLO_TEXT:
        return data.decode("utf-8", "replace")
    child = served_by("shardpass.ir.doors", "serve_hlo_text", data=data)
    if child.returncode:
        raise CANNOT_CONVERT.error(Place(filename), what=kind.value, reason=failure_of(child), how=_hint(kind, data))
    return child.stdout.decode("utf-8", "replace")


def serve_hlo_text() -> None:
    """Run in the child process: an HLO proto on stdin, its text on stdout."""
    from shardpass.ir import jax_private

    text = jax_private.hlo_proto_to_text(_hlo_module(sys.stdin.buffer.read()) or b"")
    with answer() as out:
        out.write(text.encode("utf-8", "replace"))


def serve(name: str, allowed: str) -> None:
    """Run in the child process: a file of the format ``name`` on stdin, MLIR bytecode on stdout.

    ``allowed``: "unregistered" or nothing, of the dialects of bytecode.
    """
    context = make_context()
    context.allow_unregistered_dialects = bool(allowed)
    kind = Format[name]
    made = _of_bytecode(context) if kind is Format.BYTECODE else _HOW[kind](sys.stdin.buffer.read(), context)
    check_names(made)
    with answer() as out:
        made.operation.write_bytecode(out)


def _of_bytecode(context: Any) -> Any:
    """Parse bytecode from stdin. MLIR maps a file into memory."""
    with context:
        return ir.Module.parseFile("/dev/fd/0")


def _of_portable(data: bytes, context: Any) -> Any:
    from jaxlib.mlir.dialects import stablehlo as hlo

    module = hlo.deserialize_portable_artifact(context, data)
    with context:
        for op in every_op(module.operation):
            _type_channel(op)
    return module


def _type_channel(op: Any) -> None:
    """Set the type of a channel to 1, device to device: portable artefacts and HLO store only its number."""
    if "channel_handle" in op.attributes and (match := _UNTYPED.fullmatch(str(op.attributes["channel_handle"]))):
        typed = f"#stablehlo.channel_handle<handle = {match[1]}, type = 1>"
        op.attributes["channel_handle"] = ir.Attribute.parse(typed)


def _of_export(data: bytes, context: Any) -> Any:
    return _of_portable(_inner_artefact(data) or b"", context)


def _of_hlo_text(data: bytes, context: Any) -> Any:
    from shardpass.ir import jax_private

    return _of_proto(jax_private.hlo_text_to_proto(data.decode("utf-8")), context)


def _of_hlo_proto(data: bytes, context: Any) -> Any:
    return _of_proto(_hlo_module(data) or b"", context)


def _of_proto(proto: bytes, context: Any) -> Any:
    from shardpass.ir import jax_private

    with context:
        module = ir.Module.parse(jax_private.hlo_proto_to_mlir(proto))
        shardy_in_hlo.restore(module)
        for op in every_op(module.operation):
            _drop_notes(op)
            _type_channel(op)
    return module


def _drop_notes(op: Any) -> None:
    """Drop layouts and sharding texts that XLA's importer adds, as these are wrong for tiles."""
    for name in [name for name in op.attributes if name in _OF_LAYOUTS and op.name != BITCAST]:
        del op.attributes[name]
    _drop_shardy(op.attributes)
    for side in ("arg_attrs", "res_attrs"):
        if side in op.attributes:
            rows = [entries(row) for row in op.attributes[side]]
            for row in rows:
                _drop_shardy(row)
            op.attributes[side] = ir.ArrayAttr.get([ir.DictAttr.get(row) for row in rows])


def _drop_shardy(attributes: Any) -> None:
    """Drop Shardy's entries from the frontend attributes in ``attributes``, an op's or a dict."""
    if FRONTEND not in attributes:
        return
    frontend = entries(attributes[FRONTEND])
    kept = {name: value for name, value in frontend.items() if not name.startswith("xla.sdy.")}
    if kept:
        attributes[FRONTEND] = ir.DictAttr.get(kept)
    else:
        del attributes[FRONTEND]


_HOW = {
    Format.PORTABLE: _of_portable,
    Format.EXPORT: _of_export,
    Format.HLO_TEXT: _of_hlo_text,
    Format.HLO_PROTO: _of_hlo_proto,
}


def _hint(kind: Format, data: bytes) -> str:
    if kind in (Format.HLO_TEXT, Format.HLO_PROTO):
        return (
            "give the module before XLA's optimizations (module_*.before_optimizations.txt of --xla_dump_to), or "
            "jax.jit(f).lower(...).as_text(debug_info=True)"
        )
    if kind is Format.BYTECODE:
        return (
            "it is torn, of another version of MLIR, or has dialects that jaxlib lacks: write it again with a jaxlib "
            "as old as this one; shardpass-opt takes such dialects with --allow-unregistered-dialect"
        )
    version = _PORTABLE.search(data)
    written_by = version[1].decode() if version else "an unknown version"
    return (
        f"it was written by StableHLO {written_by}: read it with a jaxlib at least as new as the one that wrote it, "
        "or write it again for an older version"
    )


# --- formats of others


def _inner_artefact(data: bytes) -> bytes | None:
    """Return the portable artefact in a FlatBuffer: a byte vector that follows a 4-byte count."""
    match = _PORTABLE.search(data)
    if match is None or match.start() < 8:
        return None
    start = match.start()
    count = int.from_bytes(data[start - 4 : start], "little")
    return data[start : start + count] if 0 < count <= len(data) - start else None


def _hlo_module(data: bytes | memoryview, nested: bool = True) -> bytes | None:
    """Find the ``HloModuleProto`` in ``data``: all of the data or its first field; None if neither is one.

    Its fields: 1 the name, 2 the name of the entry computation, 3 each computation.
    """
    seen: dict[int, memoryview] = {}
    with suppress(ValueError):
        for number, content in fields(memoryview(data)):
            if isinstance(content, memoryview):
                seen.setdefault(number, content)
            if len(seen) == 3:
                break
    if {1, 2, 3} <= seen.keys() and _is_name(seen[1]) and _is_name(seen[2]):
        return bytes(data)
    return _hlo_module(seen[1], nested=False) if nested and 1 in seen else None


def _is_name(content: memoryview) -> bool:
    return 0 < len(content) < 4096 and all(0x20 <= byte < 0x7F for byte in content)
