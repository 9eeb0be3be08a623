"""Color the edges of a bipartite graph of senders and receivers; each color is a round of communication.

No two edges at a node have one colour: in a round every device sends at most once and receives at most once. By
Koenig's theorem as many colours suffice as the greatest degree of a node. State: for each node and colour, the edge
that has it there. Each edge takes the first colour ``a`` that is unused at its sender and the first ``b`` unused at its
receiver; where they differ, a and b are swapped along the path of edges of these colours from the receiver, after which
``a`` is unused at both. (The path cannot reach the sender: it would arrive there by an edge of colour a.)

Example: edges 0->1, 0->2, 1->2. The first takes colour 0, the second 1. The third finds 0 unused at both of its ends.

O(edges * (nodes + degree)).
"""

from __future__ import annotations

from collections.abc import Sequence


def colour_edges(edges: Sequence[tuple[int, int]]) -> list[int]:
    """Color each (sender, receiver) edge so that no two edges at one sender or receiver share a color, with as few
    colors as possible.
    """
    degree = 0
    ends: list[dict[int, list[int]]] = [{}, {}]
    for sender, receiver in edges:
        for side, node in enumerate((sender, receiver)):
            ends[side].setdefault(node, [])
    counts = [dict.fromkeys(side, 0) for side in ends]
    for edge in edges:
        for side, node in enumerate(edge):
            counts[side][node] += 1
            degree = max(degree, counts[side][node])
    at = [{node: [-1] * degree for node in side} for side in ends]  # which edge has the colour there
    colours = [-1] * len(edges)
    for e, (sender, receiver) in enumerate(edges):
        a = at[0][sender].index(-1)
        b = at[1][receiver].index(-1)
        if a != b:
            _free(at, edges, colours, receiver, a, b)
        colours[e] = a
        at[0][sender][a] = at[1][receiver][a] = e
    return colours


def _free(
    at: list[dict[int, list[int]]],
    edges: Sequence[tuple[int, int]],
    colours: list[int],
    receiver: int,
    a: int,
    b: int,
) -> None:
    """Free color ``a`` at ``receiver`` by swapping a and b along the path of these colors from the receiver."""
    path = []
    side, node, colour = 1, receiver, a
    while (e := at[side][node][colour]) >= 0:
        path.append(e)
        side = 1 - side
        node = edges[e][side]
        colour = b if colour == a else a
    for e in path:
        for s in (0, 1):
            at[s][edges[e][s]][colours[e]] = -1
    for e in path:
        colours[e] = b if colours[e] == a else a
        for s in (0, 1):
            at[s][edges[e][s]][colours[e]] = e
