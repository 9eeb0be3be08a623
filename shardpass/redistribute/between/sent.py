"""Messages by round, as index arrays.

A plan of hundreds of arrays over hundreds of devices has a hundred thousand pieces: planner and proof work on arrays,
and objects (``Message``, ``Cell``) are made when somebody asks for these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardpass.redistribute.between.cells import Cell, Moved, bytes_of
from shardpass.redistribute.problem.device_arrays import IntArray


@dataclass(frozen=True, slots=True)
class Message:
    """A message: ``cells`` from ``sender`` to ``receiver``. ``after``: the number of the message that brought these to
    the sender; -1: none.
    """

    sender: int
    receiver: int
    cells: tuple[Cell, ...]
    after: int = -1

    @property
    def bytes(self) -> float:
        return bytes_of(self.cells)


@dataclass(frozen=True, eq=False)
class Sent:
    """Messages in the order of their rounds, and the pieces of each.

    ``sender``, ``receiver`` and ``round`` have a row for each message; ``message`` (ascending), ``move``, ``start``,
    ``stop`` (as in ``Cells``), ``first`` and ``last`` a row for each piece: the box of the arrays ``first`` to ``last``
    (exclusive) of its move.
    """

    moves: Sequence[Moved]
    sender: IntArray
    receiver: IntArray
    round: IntArray
    message: IntArray
    move: IntArray
    start: IntArray
    stop: IntArray
    first: IntArray
    last: IntArray

    @cached_property
    def bits(self) -> IntArray:
        """The size of each piece in bits."""
        width = np.array([move.width for move in self.moves], np.int64)
        size: IntArray = np.prod(self.stop - self.start, axis=1, dtype=np.int64) * (self.last - self.first)
        return size * width[self.move]

    @cached_property
    def message_bits(self) -> IntArray:
        total = np.zeros(len(self.sender), np.int64)
        np.add.at(total, self.message, self.bits)
        return total

    def rounds(self) -> tuple[tuple[Message, ...], ...]:
        """List the messages of each round as objects."""
        pieces: list[list[Cell]] = [[] for _ in range(len(self.sender))]
        columns = (self.message, self.move, self.start, self.stop, self.first, self.last)
        for message, move, start, stop, first, last in zip(*(column.tolist() for column in columns), strict=True):
            of = self.moves[move]
            rank = len(of.source.shape)
            box = tuple(start[:rank]), tuple(stop[:rank])
            pieces[message].append(Cell(of.arrays[first:last], box, of.width))
        rounds: list[list[Message]] = [[] for _ in range(int(self.round.max(initial=-1)) + 1)]
        ends = zip(self.round.tolist(), self.sender.tolist(), self.receiver.tolist(), pieces, strict=True)
        for number, sender, receiver, cells in ends:
            rounds[number].append(Message(sender, receiver, tuple(cells)))
        return tuple(map(tuple, rounds))


def in_order(sent: Sent) -> Sent:
    """Sort the messages by round and the pieces by message."""
    order = np.lexsort((sent.receiver, sent.sender, sent.round))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    pieces = np.argsort(place[sent.message], kind="stable")
    return Sent(
        sent.moves, sent.sender[order], sent.receiver[order], sent.round[order], place[sent.message][pieces],
        sent.move[pieces], sent.start[pieces], sent.stop[pieces], sent.first[pieces], sent.last[pieces],
    )  # fmt: skip


def as_arrays(moves: Sequence[Moved], rounds: Sequence[Sequence[Message]]) -> Sent:
    """Return the arrays of messages that are objects."""
    where = {array: (k, at) for k, move in enumerate(moves) for at, array in enumerate(move.arrays)}
    rank = max((len(move.source.shape) for move in moves), default=0)
    messages: list[tuple[int, int, int]] = []
    pieces: list[tuple[int, ...]] = []
    for number, one in enumerate(rounds):
        for message in one:
            pieces += [row for cell in message.cells for row in _rows(len(messages), cell, where, rank)]
            messages.append((message.sender, message.receiver, number))
    sender, receiver, number_of = np.array(messages, np.int64).reshape(len(messages), 3).T
    table = np.array(pieces, np.int64).reshape(len(pieces), 4 + 2 * rank)
    return Sent(
        moves, sender, receiver, number_of, table[:, 0], table[:, 1], table[:, 4 : 4 + rank], table[:, 4 + rank :],
        table[:, 2], table[:, 3],
    )  # fmt: skip


def _rows(message: int, cell: Cell, where: Mapping[int, tuple[int, int]], rank: int) -> list[tuple[int, ...]]:
    """Return the rows of the table, each for a run of neighbouring arrays in the same move."""
    more = rank - len(cell.box[0])
    box = (*cell.box[0], *(0,) * more, *cell.box[1], *(1,) * more)
    runs: list[tuple[int, int, int]] = []
    for array in cell.arrays:
        move, at = where[array]
        if runs and runs[-1][0] == move and runs[-1][2] == at:
            runs[-1] = (move, runs[-1][1], at + 1)
        else:
            runs.append((move, at, at + 1))
    return [(message, *run, *box) for run in runs]
