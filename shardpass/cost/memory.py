"""Count the memory of a device while a program runs, for plans, built modules and searches.

A program is a ``Block`` of ``Step``s over buffers, which are numbers with a size each; a step of control flow has
blocks of its own. Who has a program writes it so (``planning.alive``, ``ir.memory``, ``planning.footprint``).

    arguments    live throughout, in buffers of their own
    results      live throughout: one that is made late lends its buffer to temporaries before
    temporaries  all others that are written, from the step that makes them to the last that reads them; the most of
                 them that live at once, with what steps need beside (``Step.scratch``)
    donated      bytes of results that lie in the buffers of arguments
    peak         arguments + results - donated + temporaries

Which values are written at all, which buffers are one, and in what order steps run is decided as XLA does
(``cost.lifetimes``); ``Client`` says whose rules. A buffer begins at a multiple of ``ALIGNED`` bytes.

Example: ``h = tanh(x @ w + b); y = h @ v`` has the temporaries ``x @ w`` and, in the same buffer, ``h``.

Complexity: O(steps + reads of fused values), and for each temporary the results that are as large.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from shardpass.cost.lifetimes import ALIGNED, OTHERS, Block, Buffer, Client, Life, Lifetimes


@dataclass(frozen=True, slots=True)
class Account:
    """The account of a program's memory: bytes on one device.

    Attributes:
        arguments, results: the bytes of main's arguments and of its results.
        donated: the bytes of results that reuse buffers of arguments.
        temporaries: the peak of the bytes of all other buffers.
        at: pairs of an op's number and the bytes alive while the op runs, in the order of execution.
        peak_op: the number of the op at the peak; None in a program without temporaries.
        alive: the buffer and the bytes of each temporary at the peak.
    """

    arguments: int
    results: int
    donated: int
    temporaries: int
    at: tuple[tuple[int, int], ...]
    peak_op: int | None
    alive: tuple[tuple[Buffer, int], ...]

    @property
    def peak(self) -> int:
        """The most bytes alive at once."""
        return self.arguments + self.results - self.donated + self.temporaries


def account(
    body: Block, sizes: Sequence[int], client: Client = OTHERS, donated: Mapping[Buffer, int] | None = None
) -> Account:
    """Account for the memory of a program. ``sizes``: bytes by buffer; ``donated``: results by argument."""
    lifetimes = Lifetimes(body, sizes, client, donated or {})
    rest = temporaries(lifetimes)
    counts = [live + scratch for live, scratch in zip(_alive(rest, len(lifetimes.ops)), lifetimes.scratch, strict=True)]
    most = max(counts, default=0)
    highest = counts.index(most) if most else -1
    arguments = sum(sizes[life.buffer] for life in lifetimes.arguments)
    results = sum(sizes[life.buffer] for life in lifetimes.results)
    lent = sum(sizes[life.buffer] for life in lifetimes.lent)
    fixed = arguments + results - lent
    return Account(
        arguments,
        results,
        lent,
        most,
        tuple((op, fixed + count) for op, count in zip(lifetimes.ops, counts, strict=True)),
        lifetimes.ops[highest] if most else None,
        tuple((life.buffer, life.bytes) for life in rest if life.first <= highest <= life.last),
    )


def temporaries(lifetimes: Lifetimes) -> list[Life]:
    """Return the buffers that belong to neither arguments nor results, and that fit into no result's buffer.

    The greatest first, each goes into a result's buffer that is as large and free all the time that it lives.
    """
    lending = [_Lending(one.bytes, one) for one in sorted(lifetimes.results, key=lambda one: (-one.bytes, one.first))]
    rest = []
    for life in sorted(lifetimes.others, key=lambda one: (-one.bytes, one.first)):
        for lender in reversed(lending[: _as_large(lending, life.bytes)]):
            if lender.takes(life):
                break
        else:
            rest.append(life)
    return rest


class _Lending:
    """The buffer of a result with the intervals in which the buffer is in use, disjoint and in order."""

    def __init__(self, size: int, own: Life) -> None:
        self.bytes = size
        self.first, self.last = [own.first], [own.last]

    def takes(self, life: Life) -> bool:
        """Reserve the buffer for ``life`` where the buffer is free for its duration; return whether it is."""
        place = bisect(self.first, life.last)
        if place and self.last[place - 1] >= life.first:
            return False
        self.first.insert(place, life.first)
        self.last.insert(place, life.last)
        return True


def _as_large(lending: Sequence[_Lending], size: int) -> int:
    """Count the buffers of ``lending``, the largest first, that have ``size`` bytes or more."""
    return bisect(lending, -size, key=lambda one: -one.bytes)


def _alive(lives: Iterable[Life], moments: int) -> Iterator[int]:
    """Yield bytes of ``lives`` at each moment."""
    changes = [0] * (moments + 1)
    for life in lives:
        changes[life.first] += life.bytes
        changes[life.last + 1] -= life.bytes
    return accumulate(changes[:moments])


class Chain:
    """Accounts for the memory of a chain of steps, each of which reads only the result of the step before.

    ``now``: bytes of the last result; ``peak``: the most bytes alive at once.
    """

    def __init__(self, first: int) -> None:
        self.now = self.peak = first

    def step(self, made: int, scratch: int = 0, in_place: bool = False) -> int:
        """Add a step that computes ``made`` bytes and needs ``scratch`` more bytes; return the bytes alive during the
        step.
        """
        alive = scratch + (max(self.now, made) if in_place else self.now + made)
        self.now, self.peak = made, max(self.peak, alive)
        return alive


__all__ = ["ALIGNED", "Account", "Block", "Buffer", "Chain", "Client", "account", "temporaries"]
