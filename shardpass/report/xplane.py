"""Read JAX's profiles from disk: messages of ``xplane.proto`` in protobuf's wire format.

Only the fields that times of ops need are read: planes (1) with their names (2), lines (3), names of events (4) and of
statistics (5); of a line its events (4); of an event its name (1), picoseconds (3) and statistics (4); of a statistic
its name (1) and a text (5) or the number of one (7). The reader that jaxlib has ends the process on some profiles of
jax 0.12.

Source: xla/tsl/profiler/protobuf/xplane.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardpass.ir.protobuf import fields


@dataclass(frozen=True, slots=True)
class XEvent:
    """An event of a plane: its name, its seconds, and its text statistics."""

    plane: str
    name: str
    seconds: float
    texts: dict[str, str]


def read_xplane(data: bytes) -> Iterator[XEvent]:
    """Yield the events of a profile. Raises ValueError for bytes that are not a profile."""
    for number, plane in fields(memoryview(data)):
        if number == 1:
            yield from _plane(_message(plane))


def _plane(plane: memoryview) -> Iterator[XEvent]:
    name, lines = "", []
    events: dict[int, memoryview] = {}
    statistics: dict[int, str] = {}
    for number, value in fields(plane):
        if number == 2:
            name = _text(value)
        elif number == 3:
            lines.append(_message(value))
        elif number in (4, 5):
            entry = dict(fields(_message(value)))  # of a map
            key, named = entry.get(1, 0), _message(entry.get(2, memoryview(b"")))
            if not isinstance(key, int):
                raise ValueError("a key is no number")
            if number == 4:
                events[key] = named
            else:
                statistics[key] = _text(dict(fields(named)).get(2, memoryview(b"")))
    known = {key: _named(named, statistics) for key, named in events.items()}
    for line in lines:
        for number, value in fields(line):
            if number == 4:
                yield _event(name, _message(value), known, statistics)


def _named(message: memoryview, statistics: dict[int, str]) -> tuple[str, dict[str, str]]:
    """Return the name of events, and the statistics common to all of the events."""
    name, texts = "", {}
    for number, value in fields(message):
        if number == 2:
            name = _text(value)
        elif number == 5:
            texts.update(_statistic(_message(value), statistics))
    return name, texts


def _event(
    plane: str, message: memoryview, known: dict[int, tuple[str, dict[str, str]]], statistics: dict[int, str]
) -> XEvent:
    name, duration, texts = "", 0, dict[str, str]()
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            name, common = known.get(value, ("", {}))
            texts.update(common)
        elif number == 3 and isinstance(value, int):
            duration = value
        elif number == 4:
            texts.update(_statistic(_message(value), statistics))
    return XEvent(plane, name, duration * 1e-12, texts)


def _statistic(message: memoryview, statistics: dict[int, str]) -> dict[str, str]:
    key, text = 0, None
    for number, value in fields(message):
        if number == 1 and isinstance(value, int):
            key = value
        elif number == 5:
            text = _text(value)
        elif number == 7 and isinstance(value, int):
            text = statistics.get(value, "")
    return {} if text is None else {statistics.get(key, ""): text}


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise ValueError("a number stands in the place of a message")
    return value


def _text(value: int | memoryview) -> str:
    return bytes(_message(value)).decode("utf-8", "replace")
