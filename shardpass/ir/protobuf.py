"""Read protocol buffers' wire format, without their classes.

Source: protobuf, "Encoding".
"""

from __future__ import annotations

from collections.abc import Iterator

_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yield (number, value) of each field: an integer for a varint, a view for bytes; other fields are skipped.

    Raises ValueError at the first invalid field.
    """
    place, end = 0, len(data)
    while place < end:
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        size = 0
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in (_EIGHT, _FOUR):
            size = 8 if kind == _EIGHT else 4
        else:
            raise ValueError(f"byte {place} begins no field")
        if size > end - place:
            raise ValueError("the file ends within a field")
        if kind == _BYTES:
            yield key >> 3, data[place : place + size]
        place += size


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise ValueError("the file ends within a number")
        byte = data[place]
        place += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, place
        shift += 7
