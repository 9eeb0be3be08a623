"""The order in which pairs of senders and receivers exchange messages: an open shop without precedence, on index
arrays.

Two orders, for ports of one tier; m senders and n receivers in the order of their ids:

1. ``circulant``: with m >= n, sender i and receiver j meet in round (i - j * m / n) mod m, rounded down; with m < n
   sides are exchanged. Pairs of a round have no device in common, and pairs that lie side by side, which have most
   where both sides split one dimension, meet in the same round. A message starts when its ports are free, whatever
   its round.
   Example, 4 to 2: round 0 has 0 -> 0 and 2 -> 1, round 1 1 -> 0 and 3 -> 1, round 2 2 -> 0 and 0 -> 1, ...
2. ``greedy``: whenever ports become free, the free pairs whose ports have most to come start; of equal ones those that
   ``circulant`` has first, so that receivers of a regular problem ask different senders.

O(pairs) for the first; O(pairs * free ports) for the second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.problem.device_arrays import IntArray

FloatArray = NDArray[np.float64]


def turns(i: IntArray, j: IntArray, m: int, n: int) -> IntArray:
    """Return the round of each pair in ``circulant``."""
    return (i - j * m // n) % m if m >= n else (j - i * n // m) % n


def circulant(i: IntArray, j: IntArray, seconds: FloatArray) -> FloatArray:
    """Return the start in seconds of each pair's message, with pairs served round by round in circulant order.

    ``i``, ``j``: sender and receiver of each pair. ``seconds``: how long each message takes.
    """
    m, n = int(i.max()) + 1, int(j.max()) + 1
    turn = turns(i, j, m, n)
    free_out, free_in, start = np.zeros(m), np.zeros(n), np.zeros(len(i))
    order = np.argsort(turn, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(turn[order])) + 1):
        start[group] = np.maximum(free_out[i[group]], free_in[j[group]])
        free_out[i[group]] = free_in[j[group]] = start[group] + seconds[group]
    return start


def greedy(i: IntArray, j: IntArray, seconds: FloatArray) -> FloatArray:
    """Return when each pair starts if the ports that are free choose greedily."""
    m, n = int(i.max()) + 1, int(j.max()) + 1
    number = np.full((m, n), -1)
    number[i, j] = np.arange(len(i))
    out_left, in_left = (np.bincount(*ends).astype(np.float64) for ends in ((i, seconds, m), (j, seconds, n)))
    trifle = -1e-9 * float(seconds.max()) / max(m, n)
    prefer = np.multiply(turns(np.arange(m)[:, None], np.arange(n), m, n), trifle, dtype=np.float64)
    start = np.zeros(len(i))
    free_out, free_in = np.ones(m, bool), np.ones(n, bool)
    finish, current = np.full(n, np.inf), np.zeros(n, np.int64)
    now, left = 0.0, len(i)
    while True:
        while left and (chosen := _matched(number, free_out, free_in, out_left, in_left, prefer))[0].size:
            a, b = chosen
            pair = number[a, b]
            start[pair], finish[b], current[b] = now, now + seconds[pair], pair
            number[a, b] = -1
            free_out[a] = free_in[b] = False
            left -= len(a)
        if not (busy := np.isfinite(finish)).any():
            return start
        now = float(finish[busy].min())
        done = np.flatnonzero(finish <= now * (1 + 1e-12))
        pair = current[done]
        out_left[i[pair]] -= seconds[pair]
        in_left[done] -= seconds[pair]
        free_out[i[pair]] = free_in[done] = True
        finish[done] = np.inf


def _matched(
    number: IntArray, free_out: NDArray[np.bool_], free_in: NDArray[np.bool_], out_left: FloatArray,
    in_left: FloatArray, prefer: FloatArray,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """Match free ports: the best sender for each receiver, and the best receiver for each of these senders."""
    rows, columns = np.flatnonzero(free_out), np.flatnonzero(free_in)
    if not rows.size or not columns.size:
        return rows[:0], rows[:0]
    at = np.ix_(rows, columns)
    key = np.where(number[at] >= 0, out_left[rows][:, None] + in_left[columns] + prefer[at], -np.inf)
    best = key.argmax(axis=0)
    value = key[best, np.arange(len(columns))]
    order = np.argsort(-value, kind="stable")
    order = order[np.isfinite(value[order])]
    _, first = np.unique(best[order], return_index=True)
    kept = order[first]
    return rows[best[kept]], columns[kept]
