"""Measured times: the events of a JAX profile, joined with the collectives of the program that ran.

``jax.profiler.trace(folder)`` writes one xplane file for each host under ``plugins/profile/<time>``. Only events
that name an HLO op are read. They have one of two forms:

1. CPU and GPU: the event has the name of the op, and the statistics ``hlo_op``, ``hlo_module`` and
``device_ordinal``;
2. TPU: planes ``/device:TPU:0`` with events whose name is the op's text, ``%all-reduce.3 = f32[...] ...``.

A collective is identified by its name in HLO, an asynchronous pair by both names. The time of one run is the mean
over devices, runs and iterations: of its events, or for a pair of the start's plus that of the done's. It includes
the time that a device waits in the collective for other devices.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from shardpass.diagnostics import Place
from shardpass.diagnostics.table_report import NO_PROFILE, OTHER_PROFILE
from shardpass.report.xplane import XEvent, read_xplane

_NAMED = re.compile(r"%?([\w.\-]+)(?: = .*)?", re.DOTALL)
MOST_NAMED = 5  # programs that a message lists


@dataclass(frozen=True, slots=True)
class Event:
    """One run of an op on one device. ``module``: "" where the profile does not name it."""

    op: str
    module: str
    seconds: float


@dataclass(frozen=True)
class Measured:
    """Seconds of each row of a report, over all its runs; None for a row without events."""

    seconds: tuple[float | None, ...]
    file: str

    @property
    def joined(self) -> int:
        """The number of rows that have events."""
        return sum(one is not None for one in self.seconds)

    @property
    def total(self) -> float:
        return sum(one for one in self.seconds if one is not None)


def newest(folder: str | Path) -> tuple[Path, ...]:
    """Return the xplane files of the latest profile below ``folder``, or ``folder`` if it is an xplane file.

    Raises ShardpassError (SP629) where there is none.
    """
    path = Path(folder)
    if path.is_file():
        return (path,)
    profiles = sorted(path.rglob("*.xplane.pb"), key=lambda one: (one.parent.name, one.name)) if path.is_dir() else []
    if not profiles:
        raise NO_PROFILE.error(Place(str(folder)), reason="it holds no file *.xplane.pb")
    return tuple(one for one in profiles if one.parent.name == profiles[-1].parent.name)


def read_events(files: Sequence[Path]) -> Iterator[Event]:
    """Yield the events of HLO ops. Raises ShardpassError (SP629) for a file that is not a profile."""
    for file in files:
        try:
            yield from filter(None, map(_event, read_xplane(file.read_bytes())))
        except (OSError, ValueError) as error:
            raise NO_PROFILE.error(Place(str(file)), reason=str(error)) from None


def _event(event: XEvent) -> Event | None:
    device = event.plane.startswith("/device:")
    op = event.texts.get("hlo_op", event.name if device and event.name.startswith("%") else "")
    named = _NAMED.fullmatch(op)
    return None if named is None else Event(named[1], event.texts.get("hlo_module", ""), event.seconds)


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a collective that belongs to a row. ``names``: of the HLO ops, both ops of a pair. ``times``: the
    number of runs. ``share``: the row's fraction of the collective's time.
    """

    names: tuple[str, ...]
    times: int
    share: float


def join(events: Iterator[Event], module: str, rows: Sequence[Share], file: str) -> Measured:
    """Join the profile of the program ``module`` to ``rows``: returns the seconds of each.

    Raises ShardpassError (SP630) where no event is of an op of the program ``module``.
    """
    wanted = {name for row in rows for name in row.names}
    durations: dict[str, list[float]] = defaultdict(list)
    modules: dict[str, None] = {}
    for event in events:
        modules[event.module] = None
        if event.op in wanted and event.module in ("", module):
            durations[event.op].append(event.seconds)
    if wanted and not durations:
        names = ", ".join(list(filter(None, modules))[:MOST_NAMED]) or "none"
        raise OTHER_PROFILE.error(Place(file), module=module, modules=names)

    def seconds(row: Share) -> float | None:
        means = [sum(durations[name]) / len(durations[name]) for name in row.names if name in durations]
        return row.times * row.share * sum(means) if means else None

    return Measured(tuple(map(seconds, rows)), file)
