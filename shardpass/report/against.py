"""Compare a report with other partitioners' programs: collectives by kind, bytes, memory.

Memory comes from XLA's CPU client for all programs, including shardpass's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.printable import joined
from shardpass.ir.written import bytecode
from shardpass.report.report import Report
from shardpass.report.text import WIDTH, shortened, show_bytes, wrapped
from shardpass.runtime.peers import OURS, Peer, ask


@dataclass(frozen=True)
class Against:
    """A report together with reports of other partitioners. ``peers``: the other reports, in the requested order.
    ``failed``: the partitioners that failed, with reasons.

    ``memory``: of our program as XLA has compiled it; None where it did not.
    """

    ours: Report
    peers: tuple[Peer, ...]
    failed: tuple[tuple[str, str], ...]
    memory: int | None = None

    def __str__(self) -> str:
        rows = [shortened(line, WIDTH) for line in _lines(self)]
        for way, reason in self.failed:
            rows += wrapped(f"{way}: {reason}", WIDTH)
        return joined(rows)

    def as_dict(self) -> dict[str, object]:
        """Return the comparison as plain values for JSON."""
        peers = {
            peer.way: {"bytes_received": peer.bytes_received, "kinds": dict(peer.kinds), "memory": peer.memory}
            for peer in self.peers
        }
        ours = {"bytes_received": self.ours.total_bytes_received, "kinds": dict(self.ours.by_kind)}
        failed = {way: {"failed": reason} for way, reason in self.failed if way != OURS}
        return {OURS: {**ours, "memory": self.memory}, **peers, **failed}


def against(ours: Report, ways: Sequence[str]) -> Against:
    """Compare ``ours`` with the programs that each of ``ways`` makes of the same module."""
    result: dict[str, Peer] = {}
    failed = []
    for way in (OURS, *ways):
        try:
            result[way] = ask(way, bytecode(ours.built) if way == OURS else ours.given, ours.devices)
        except ShardpassError as error:
            failed.append((way, error.diagnostics[0].message))
    compiled = result.pop(OURS, None)
    return Against(ours, tuple(result.values()), tuple(failed), None if compiled is None else compiled.memory)


def _lines(comparison: Against) -> Iterator[str]:
    ours = comparison.ours
    yield f"{'':22}{'shardpass':>18}" + "".join(f"{peer.way:>18}" for peer in comparison.peers)
    yield _row(
        "received", [show_bytes(ours.total_bytes_received), *(show_bytes(p.bytes_received) for p in comparison.peers)]
    )
    yield _row("collectives", [f"{ours.runs:,}", *(f"{peer.runs:,}" for peer in comparison.peers)])
    kinds = dict.fromkeys((*ours.by_kind, *(kind for peer in comparison.peers for kind in peer.kinds)))
    for kind in kinds:
        cells = [ours.by_kind.get(kind, (0, 0)), *(peer.kinds.get(kind, (0, 0)) for peer in comparison.peers)]
        yield _row(kind, [f"{count:,}: {show_bytes(size)}" if count else "-" for count, size in cells])
    memory = "-" if comparison.memory is None else show_bytes(comparison.memory)
    yield _row("memory, compiled", [memory, *(show_bytes(peer.memory) for peer in comparison.peers)])


def _row(name: str, cells: Sequence[str]) -> str:
    return f"{name:22}" + "".join(f"{cell:>18}" for cell in cells)
