"""The source lines of HLO's ops, written as MLIR's locations.

HLO has them in one of two forms:

1. ``metadata={op_name="..." source_file="train.py" source_line=26}``, the line that JAX attributes to the user;
2. ``stack_frame_id=13``, a row of the table ``StackFrames`` above the first computation: a row of ``FileLocations``
   and the frame of the caller. XLA prints the caller's number increased by 1, so that 1 is nobody.

``Frames.location`` writes either as MLIR writes frames, the innermost first, for the readers of locations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardpass.sharding.quoting import EscapeError, c_unquoted, mlir_quoted

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_NAMED = re.compile(r'(\d+) "((?:[^"\\]|\\.)*)"')
_FIELDS = re.compile(r"(\d+) \{(.*)\}")
_FIELD = re.compile(r"(\w+)=(\d+)")
_SOURCE = re.compile(r'\bsource_file="((?:[^"\\]|\\.)*)"')
_NUMBER = re.compile(r"\b(source_line|source_end_line|source_column|source_end_column|stack_frame_id)=(\d+)")
_DEEPEST = 64  # frames of a stack that are read

Fields = Mapping[str, int]


@dataclass(frozen=True)
class Frames:
    """The source line tables of a module: files, locations and frames by number."""

    files: Mapping[int, str] = field(default_factory=dict)
    locations: Mapping[int, Fields] = field(default_factory=dict)
    stacks: Mapping[int, Fields] = field(default_factory=dict)

    def location(self, attributes: str) -> str:
        """Return the frames of an op as text; "" if its ``attributes`` have no source lines."""
        _, _, metadata = attributes.partition("metadata={")
        fields = {name: int(number) for name, number in _NUMBER.findall(metadata)}
        if frames := self._stack(fields.get("stack_frame_id", 0)):
            return " ".join(frames)
        file = _SOURCE.search(metadata)
        if file is None or not fields.get("source_line"):
            return ""
        names = ("source_line", "source_column", "source_end_line", "source_end_column")
        return _written(_unquoted(file[1]), *(fields.get(name, 0) for name in names))

    def _stack(self, number: int) -> list[str]:
        result = []
        for _ in range(_DEEPEST):
            frame = self.stacks.get(number)
            if frame is None:
                break
            place = self.locations.get(frame.get("file_location_id", 0), {})
            file = self.files.get(place.get("file_name_id", 0), "")
            if file and place.get("line"):
                result.append(_written(file, *(place.get(n, 0) for n in ("line", "column", "end_line", "end_column"))))
            number = frame.get("parent_frame_id", 0) - self._shift
        return result

    @property
    def _shift(self) -> int:
        """The offset of parent frame numbers: 1 if a frame without a caller names itself, else 0."""
        first = min(self.stacks, default=0)
        return int(self.stacks.get(first, {}).get("parent_frame_id", 0) == first)


def _written(file: str, line: int, column: int, end_line: int, end_column: int) -> str:
    ends = (end_line, end_column) > (line, column) and end_column
    return f"{mlir_quoted(file)}:{line}:{column}" + (f" to {end_line}:{end_column}" if ends else "")


def read_frames(lines: Sequence[str]) -> Frames:
    """Read the tables between the header and the first computation of a module."""
    tables: dict[str, list[str]] = {}
    rows: list[str] | None = None
    for line in lines:
        if line.endswith("{") and not line[:1].isspace():
            break
        if line.strip() in _TABLES:
            rows = tables.setdefault(line.strip(), [])
        elif rows is not None and line.strip():
            rows.append(line.strip())
    files = {int(n): _unquoted(name) for n, name in _matches(_NAMED, tables.get("FileNames", ()))}
    numbered = [
        {int(n): {name: int(value) for name, value in _FIELD.findall(fields)} for n, fields in _matches(_FIELDS, table)}
        for table in (tables.get("FileLocations", ()), tables.get("StackFrames", ()))
    ]
    return Frames(files, *numbered)


def _matches(pattern: re.Pattern[str], rows: Sequence[str]) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for row in rows if (match := pattern.fullmatch(row)) is not None]


def _unquoted(body: str) -> str:
    try:
        return c_unquoted(body)
    except EscapeError:
        return body
