"""Reductions by bodies of several ops: lists of the tuples that the body is given, in their order.

StableHLO leaves open how tuples are put into brackets and where initial values stand between them, and keeps the order.

The body is walked once on terms that nothing else has, so two bodies that compute the same are one. A result that is
one reducer of its own operand is a list of that reducer. Where the last operand says which tuples count (a body that
chooses by two truth values), those that do not count are left out, and the others are reduced by the body within.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.walk import operation
from shardpass.proving.relations.evaluate import Unknown
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.integers import is_integer
from shardpass.proving.scalars.constants import identities
from shardpass.proving.scalars.lists import one, ragged
from shardpass.proving.scalars.ranks import FIRST, of_parts, ranked
from shardpass.proving.scalars.table import Order, Scalars
from shardpass.proving.scalars.walk import ScalarSite, Value

Body = tuple[tuple[int, ...], Sequence[int], Sequence[int]]  # what it returns of two tuples
_BODY = """func.func @first(%x: tensor<{0}>, %i: tensor<{1}>, %y: tensor<{0}>, %j: tensor<{1}>) -> (tensor<{0}>, tensor<{1}>) {{
  %before = stablehlo.compare {2}, %x, %y : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
  %nan = stablehlo.compare NE, %x, %x : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
  %own = stablehlo.or %before, %nan : tensor<i1>
  %same = stablehlo.compare EQ, %x, %y : (tensor<{0}>, tensor<{0}>) -> tensor<i1>
  %lower = stablehlo.compare LT, %i, %j : (tensor<{1}>, tensor<{1}>) -> tensor<i1>
  %tied = stablehlo.and %same, %lower : tensor<i1>
  %index = stablehlo.or %own, %tied : tensor<i1>
  %value = stablehlo.select %own, %x, %y : tensor<i1>, tensor<{0}>
  %label = stablehlo.select %index, %i, %j : tensor<i1>, tensor<{1}>
  return %value, %label : tensor<{0}>, tensor<{1}>
}}"""  # noqa: E501


def by_body(site: ScalarSite, rows: Sequence[Ints], starts: Sequence[Ints]) -> list[Ints]:
    """Reduce the last dimension of ``rows`` by a body; ``starts`` have size 1 there."""
    table, kinds = site.table, [v.element for v in site.operands[: len(rows)]]
    matrix = [np.concatenate(pair, axis=-1) for pair in zip(rows, starts, strict=True)]
    shape, depth = rows[0].shape[:-1], matrix[0].shape[-1]
    count = prod(shape)
    flat = [m.reshape(count, depth) for m in matrix]
    counts = np.ones((count, depth), bool)
    within = marked(site, kinds)
    if within and bool(table.known(flat[-1]).all()):
        counts = table.values(flat[-1]) != 0
        body, inner = within, flat[:-1]
    else:
        body, inner = walked(site, kinds, None), flat
    some = np.asarray(counts.any(1))
    result = []
    given = [i[some] for i in inner], counts[some]
    made = first(site, kinds, body, *given) or _reduced(table, kinds[: len(inner)], body, *given)
    for k, ids in enumerate(made):
        whole = table.fresh(("of nothing", site.walk.next_name(), site.walk.whole_terms, k), (count,))
        whole[some] = ids
        result.append(whole)
    if len(inner) < len(rows):
        result.append(table.integers(np.asarray(some, np.int64)))
    return [ids.reshape(shape) for ids in result]


def _reduced(table: Scalars, kinds: Sequence[str], body: Body, inner: Sequence[Ints], counts: Ints) -> list[Ints]:
    returned, first, second = body
    count = len(counts)
    apart = [_reducer(table, kind, r, a, b) for kind, r, a, b in zip(kinds, returned, first, second, strict=True)]
    at, column = np.nonzero(counts)
    if all(name is not None for name in apart):
        return [ragged(table, str(name), kind, at, ids[at, column], count)
                for name, kind, ids in zip(apart, kinds, inner, strict=True)]  # fmt: skip
    key = ("body", returned)
    code = table.head(key)
    tuples = table.rows(("tuple",), list(inner))
    result = np.empty(count, np.int64)
    for row in range(count):
        own = [n for t, on in zip(tuples[row].tolist(), counts[row].tolist(), strict=True) if on
               for n in _inner(table, t, code)]  # fmt: skip
        start = int(tuples[row, -1])
        starting = (start,) if counts[row, -1] else ()
        table.spend(len(own))
        result[row] = table.one(key, (*starting, *(n for n in own if n != start)), code)
    return [table.rows(("part", k), [result]) for k in range(len(inner))]


def _inner(table: Scalars, number: int, code: int) -> Sequence[int]:
    """Return the tuples from which a tuple of results of such a reduction was made."""
    parts = [table.terms[n] for n in table.terms[number][1]]
    if all(key == ("part", k) for k, (key, _) in enumerate(parts)):
        owners = {operands[0] for _, operands in parts}
        if len(owners) == 1 and table.head_of(owner := owners.pop()) == code:
            inner: Sequence[int] = table.terms[owner][1]
            return inner
    return [number]


def _reducer(table: Scalars, kind: str, returned: int, first: int, second: int) -> str | None:
    key, operands = table.terms[returned]
    plain = isinstance(key, tuple) and len(key) == 2 and key[1] == kind and sorted(operands) == sorted((first, second))
    return str(key[0]) if plain and table.head_of(returned) > 2 else None


def walked(site: ScalarSite, kinds: Sequence[str], marks: tuple[int, int] | None) -> Body:
    """Return what the body computes of two tuples of terms that nothing else has; ``marks``: their last elements."""
    table, half = site.table, len(kinds)
    own = [[table.one(("body's operand", side, k, kind)) for k, kind in enumerate(kinds)] for side in (0, 1)]
    if marks is not None:
        for row, mark in zip(own, marks, strict=True):
            row[half - 1] = table.integer(mark)
    values = [Value(np.full(site.devices, n, np.int64), kinds[k % half]) for k, n in enumerate([*own[0], *own[1]])]
    given = site.walk.block(site.op.regions[0].blocks[0], values)
    if any(v is None or (v.ids != v.ids[0]).any() for v in given):
        raise Unknown("what its body computes is not known")
    return tuple(int(v.ids[0]) for v in given if v is not None), own[0], own[1]


def marked(site: ScalarSite, kinds: Sequence[str]) -> Body | None:
    """Return the body within, where the last operand says which of the two tuples count; None for other bodies."""
    if len(kinds) < 2 or kinds[-1] != "i1":
        return None
    one = site.table.integer(1)
    returned, first, second = walked(site, kinds, (1, 0))
    if returned != (*first[:-1], one):
        return None
    returned, _, second = walked(site, kinds, (0, 1))
    if returned != (*second[:-1], one):
        return None
    if walked(site, kinds, (0, 0))[0][-1] != site.table.integer(0):
        return None
    returned, first, second = walked(site, kinds, (1, 1))
    return (returned[:-1], first[:-1], second[:-1]) if returned[-1] == one else None


def first(site: ScalarSite, kinds: Sequence[str], body: Body, rows: Sequence[Ints], counts: Ints) -> list[Ints] | None:
    """Reduce values and their labels by argmax or argmin; None for other bodies, and where labels are in no order.

    ``body``: what it returns of two tuples of terms, and these. Of ``rows`` those count where ``counts`` is true; the
    last column has the initial values, which, where they count, are the least of all. Of elements that are the least
    of all, as padding is, only the one with the least label may be the first, so they need no order.
    """
    table, out = site.table, (list[int](), list[int]())
    if len(rows) != 2 or kinds[0].startswith("complex") or not is_integer(kinds[1]):
        return None
    name = next((name for name in FIRST if _is_body(site, name, kinds[:2], body)), None)
    if name is None:
        return None
    order, least = Order(kinds[0], (name, "first")), identities(table, FIRST[name], kinds[0])
    for values, labels, on in zip(*rows, counts, strict=True):
        if on[-1] and values[-1] not in least:
            return None
        entries = of_parts(table, order, 0, list(zip(values[on].tolist(), labels[on].tolist(), strict=True)))
        if not all(table.is_known(label) for _, label in entries):
            return None
        row = [entry for entry in entries if entry[0] not in least]
        places = [table.number(label) for _, label in row]
        if any(x >= y for x, y in pairwise(places)):
            return None
        low = min((entry for entry in entries if entry[0] in least), key=lambda e: table.number(e[1]), default=None)
        if low and not (places and places[0] <= table.number(low[1])):
            row.insert(0, low)
        own = [value for value, _ in row]
        greatest = one(table, FIRST[name], kinds[0], own)
        table.extremes[order, tuple(own)] = greatest
        out[0].append(greatest)
        out[1].append(ranked(table, order, 0, row))
    return [np.array(column, np.int64) for column in out]


def _is_body(site: ScalarSite, name: str, kinds: Sequence[str], body: Body) -> bool:
    returned, *given = body
    text = _BODY.format(*kinds, "GT" if name == "argmax" else "LT")
    with site.op.context:
        module = ir.Module.parse(text)
    own = [Value(np.full(site.devices, n, np.int64), kinds[k % 2]) for k, n in enumerate([*given[0], *given[1]])]
    made = site.walk.block(operation(next(iter(module.body.operations))).regions[0].blocks[0], own)
    site.table.at = site.op
    return returned == tuple(int(v.ids[0]) for v in made if v is not None)
