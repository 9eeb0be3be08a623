"""A report beside what other partitioners make of the same program: collectives by kind, bytes, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.printable import joined
from shardpass.report.report import Report
from shardpass.report.text import WIDTH, shortened, show_bytes, wrapped
from shardpass.runtime.peers import Peer, ask


@dataclass(frozen=True)
class Against:
    """``peers``: the others, in the order in which they were asked; ``failed``: those that failed, and why."""

    ours: Report
    peers: tuple[Peer, ...]
    failed: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        rows = [shortened(line, WIDTH) for line in _lines(self)]
        for way, reason in self.failed:
            rows += wrapped(f"{way}: {reason}", WIDTH)
        return joined(rows)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        peers = {
            peer.way: {"bytes_received": peer.bytes_received, "kinds": dict(peer.kinds), "memory": peer.memory}
            for peer in self.peers
        }
        return {**peers, **{way: {"failed": reason} for way, reason in self.failed}}


def against(ours: Report, ways: Sequence[str]) -> Against:
    """Asks each of ``ways`` about the program that ``ours`` is of."""
    peers, failed = [], []
    for way in ways:
        try:
            peers.append(ask(way, ours.given, ours.devices))
        except ShardpassError as error:
            failed.append((way, error.diagnostics[0].message))
    return Against(ours, tuple(peers), tuple(failed))


def _lines(found: Against) -> Iterator[str]:
    ours = found.ours
    yield f"{'':22}{'shardpass':>18}" + "".join(f"{peer.way:>18}" for peer in found.peers)
    yield _row(
        "received", [show_bytes(ours.total_bytes_received), *(show_bytes(p.bytes_received) for p in found.peers)]
    )
    yield _row("collectives", [f"{ours.runs:,}", *(f"{peer.runs:,}" for peer in found.peers)])
    kinds = dict.fromkeys((*ours.by_kind, *(kind for peer in found.peers for kind in peer.kinds)))
    for kind in kinds:
        cells = [ours.by_kind.get(kind, (0, 0)), *(peer.kinds.get(kind, (0, 0)) for peer in found.peers)]
        yield _row(kind, [f"{count:,}: {show_bytes(size)}" if count else "-" for count, size in cells])
    memory = "-" if ours.memory is None else show_bytes(ours.memory.total)
    yield _row("memory of a device", [memory, *(show_bytes(peer.memory) for peer in found.peers)])


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:22}" + "".join(f"{cell:>18}" for cell in cells)
