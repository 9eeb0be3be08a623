"""What the collectives of optimised HLO send, by kind: of a program that another partitioner made.

Bytes are added up by device, and the greatest sum is printed. A device's own data is not counted
(``cost.collective`` has the formulas); shapes in HLO are a device's, and only results are read.

Cases: a loop's body counts as often as XLA knows it to run, else once; of a conditional's branches the dearest counts;
an asynchronous pair counts at its start, by the half of its type that is the result; of a sum the whole type is.
(``tools/bench/hlo_traffic.py`` is a witness of the same numbers and shares no code with this.)

Cost: one pass over the text, one over the graph of computations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.collective import BROADCAST, PERMUTE, REDUCE_SCATTER, bytes_received
from shardpass.runtime.hlo import Exchange, collectives_in

_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_LINE = re.compile(r"^\s*(?:ROOT )?%?[\w.\-]+ = (\(.*?\)|\S+) ([\w\-]+)\((.*)$")
_SHAPE = re.compile(r"\b(pred|token|[a-z]+(\d+)\w*)\[([\d,]*)\]")
_COMMENT = re.compile(r"/\*.*?\*/")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(r"(?:to_apply|body|condition)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}|(?:true|false)_computation=%?([\w.\-]+)")


@dataclass
class Received:
    """By kind, in StableHLO's names: how many collectives run, and the bytes that each device receives by them."""

    runs: Counter[str] = field(default_factory=Counter)
    by_device: dict[str, NDArray[np.object_]] = field(default_factory=dict)  # Python's integers, which have no bound

    @property
    def bytes(self) -> dict[str, int]:
        """By kind, of the device that receives most by that kind."""
        return {kind: int(max(sums)) for kind, sums in self.by_device.items()}

    @property
    def total(self) -> int:
        """Of the device that receives most by all kinds."""
        sums = list(self.by_device.values())
        return int(max(np.sum(sums, axis=0))) if sums else 0

    def add(self, other: Received, times: int = 1) -> None:
        for kind, count in other.runs.items():
            self._add(kind, count * times, other.by_device[kind] * times)

    def count(self, kind: str, sums: NDArray[np.object_]) -> None:
        """One more collective, of which each device receives ``sums``."""
        self._add(kind, 1, sums)

    def _add(self, kind: str, runs: int, sums: NDArray[np.object_]) -> None:
        self.runs[kind] += runs
        self.by_device[kind] = self.by_device[kind] + sums if kind in self.by_device else sums


def received(hlo: str, devices: int) -> Received:
    """Counts one run of ``hlo``."""
    computations, entry = _computations(hlo)
    known: dict[str, Received] = {}

    def of(name: str) -> Received:
        if name not in known:
            known[name] = Received()
            for line in computations.get(name, ()):
                _count(line, known[name])
        return known[name]

    def _count(line: str, found: Received) -> None:
        match = _LINE.match(line)
        if match is None:
            return
        kind, op, rest = match.groups()
        exchange = next(collectives_in(line, devices), None)
        if exchange is not None:
            if any(len(group) > 1 for group in exchange.groups):
                found.count(exchange.kind, _received(exchange, _result_bytes(kind, op), devices))
        elif op == "while":
            trips = _TRIPS.search(rest)
            for name in _CALLED.findall(rest):
                found.add(of(name), int(trips[1]) if trips else 1)
        elif op == "conditional":
            found.add(max(map(of, _branches(rest)), key=lambda branch: branch.total, default=Received()))
        elif op == "call":
            for name in _CALLED.findall(rest):
                found.add(of(name))

    return of(entry)


def _computations(hlo: str) -> tuple[Mapping[str, Sequence[str]], str]:
    found: dict[str, list[str]] = {}
    entry, lines = "", None
    for raw in hlo.splitlines():
        head = None if raw[:1].isspace() else _HEAD.match(raw)
        if head is not None:
            lines = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif raw.startswith("}"):
            lines = None
        elif lines is not None:
            lines.append(_COMMENT.sub("", raw))
    return found, entry


def _branches(rest: str) -> list[str]:
    return [name.strip().lstrip("%") for pair in _BRANCHES.findall(rest) for name in ",".join(pair).split(",") if name]


def _result_bytes(kind: str, op: str) -> int:
    shapes = _SHAPE.findall(kind)
    if op.endswith("-start") and op != "all-reduce-start":  # the operands, and then the results
        shapes = shapes[len(shapes) // 2 :]
    bits = {"pred": 8, "token": 0}
    return sum(
        -(-prod(int(n) for n in dims.split(",") if n) * (bits[name] if name in bits else int(width)) // 8)
        for name, width, dims in shapes
    )


def _received(exchange: Exchange, size: int, devices: int) -> NDArray[np.object_]:
    """What each device receives; ``size``: of the result."""
    sums = np.zeros(devices, object)
    for group in exchange.groups:
        receivers = group[1:] if exchange.kind in (PERMUTE, BROADCAST) else group
        sums[list(receivers)] += _share(exchange.kind, size, len(group))
    return sums


def _share(kind: str, size: int, group: int) -> int:
    """What one receiver receives in a group of so many."""
    return bytes_received(kind, size * group if kind == REDUCE_SCATTER else size, group)
