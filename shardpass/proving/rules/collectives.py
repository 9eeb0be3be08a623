"""Collectives, by their groups: each device's result follows from the tiles of the devices in its group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations.apart import total_apart
from shardpass.proving.relations.combine import add_rows, cells, combine, operands_of
from shardpass.proving.relations.compare import equal
from shardpass.proving.relations.elements import is_neutral, neutral
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.laws import DIVISOR, FACTOR, NEGATED_SUM, WITHIN, ZERO, Law
from shardpass.proving.relations.pieces import Content, Ints, Piece, tidy
from shardpass.proving.relations.reducers import adds_up, bare, from_zero, has_zero
from shardpass.proving.relations.reshaping import reshaped
from shardpass.proving.relations.rows import with_dimension
from shardpass.proving.relations.stacks import Stack, of_members, of_pieces
from shardpass.proving.relations.terms import Terms
from shardpass.proving.rules.contraction import reducer_of, zero_piece
from shardpass.proving.rules.elementwise import BOUNDING
from shardpass.proving.rules.integers import Box, is_integer
from shardpass.proving.rules.manual import meshes_around
from shardpass.proving.rules.movement import attribute, cut
from shardpass.proving.rules.nested_sums import summed_inside_out
from shardpass.sharding import Mesh

_OPPOSITE = {**BOUNDING, "and": "or", "or": "and"}
_IDEMPOTENT = tuple(_OPPOSITE)
# ops that a reduction may be moved past: in all of their operands, or in one
_IN_ALL: Mapping[str, Mapping[str, Law | None]] = {
    "add": {
        **dict.fromkeys(("stablehlo.add", "stablehlo.real", "stablehlo.imag")),
        **dict.fromkeys(("stablehlo.subtract", "stablehlo.negate"), NEGATED_SUM),
    },
    **{name: {f"stablehlo.{name}": None} for name in _IDEMPOTENT},
}
_IN_ONE: Mapping[str, Mapping[str, Law]] = {
    "add": {"stablehlo.multiply": FACTOR, "product": FACTOR, "stablehlo.divide": DIVISOR},
    **{name: {f"stablehlo.{other}": WITHIN, "stablehlo.clamp": WITHIN} for name, other in _OPPOSITE.items()},
}


@dataclass(frozen=True, eq=False, slots=True)
class Groups:
    """``rows``: the devices of each group, in order, [groups, size]; ``group`` and ``place`` there of each device."""

    rows: Ints
    group: Ints
    place: Ints

    @property
    def members(self) -> Ints:
        """Of each device the devices of its group, in order, [devices, size]."""
        return np.asarray(self.rows[self.group])

    @property
    def size(self) -> int:
        return int(self.rows.shape[1])


def groups_of(site: Any) -> Groups:
    """Return the groups of the collective at ``site``, of either walk.

    Raises Unknown where the groups are not of devices, or leave a device out.
    """
    op = site.op
    handle = str(op.attributes["channel_handle"]) if "channel_handle" in op.attributes else ""
    if "handle = 0" in handle or not handle:
        raise Unknown("its groups are of replicas, not of partitions")
    needs_global = op.name in ("stablehlo.all_gather", "stablehlo.all_reduce", "stablehlo.reduce_scatter")
    if needs_global and "use_global_device_ids" not in op.attributes:
        raise Unknown("its groups are not of global device ids")
    attribute = op.attributes["replica_groups"]
    by_axes = "replica_group_mesh_axes" in str(attribute)
    rows = groups_over_axes(op, str(attribute)) if by_axes else np.array(attribute, np.int64)
    if rows.size == 0:
        rows = np.arange(site.devices)[None]
    return groups_from(rows, site.devices)


def groups_over_axes(op: Any, text: str) -> Ints:
    """Return the groups given by axes of a mesh, [groups, members]: the named axes vary in a group."""
    name = re.search(r"mesh = @([A-Za-z0-9_.$-]+)", text)
    mesh = meshes_around(op).get(name.group(1)) if name else None
    parts = re.findall(r'axis_ref<name = "([^"]+)"([^>]*)>', text)
    if not isinstance(mesh, Mesh) or any(rest.strip() for _, rest in parts):
        raise Unknown("its groups are over parts of axes")
    axes = [axis for axis, _ in mesh.axes]
    sizes = [size for _, size in mesh.axes]
    ids = np.array(mesh.device_ids or range(mesh.size), np.int64).reshape(sizes)
    inner = [axes.index(axis) for axis, _ in parts]
    outer = [d for d in range(len(axes)) if d not in inner]
    width = int(np.prod([sizes[d] for d in inner], dtype=np.int64))
    return ids.transpose([*outer, *inner]).reshape(-1, width)


def groups_from(rows: Ints, devices: int) -> Groups:
    named = np.zeros(devices, bool)
    if rows.size == devices and rows.min() >= 0 and rows.max() < devices:
        named[rows] = True
    if not named.all():
        raise Unknown("its groups do not name every device once")
    group = np.empty(devices, np.int64)
    place = np.empty(devices, np.int64)
    group[rows] = np.arange(len(rows))[:, None]
    place[rows] = np.arange(rows.shape[1])[None]
    return Groups(rows, group, place)


def all_gather(site: Site) -> list[Content]:
    groups, dim = groups_of(site), attribute(site.op, "all_gather_dim")
    result = []
    for index, operand in enumerate(site.operands):
        result.append(site.result(gathered(operand, groups, dim), index))
    return result


def gathered(operand: Content, groups: Groups, dim: int) -> list[Piece]:
    return [p.of_devices(groups.group) for p in _side_by_side(operand, groups.rows, dim)]


def _side_by_side(operand: Content, rows: Ints, dim: int) -> Sequence[Piece]:
    """Return the tiles of each group beside each other along ``dim``: pieces with a row for each group."""
    pieces, size = [], operand.shape[dim]
    for p in operand.pieces:
        one = _in_line(p, rows, dim, size)
        pieces += [one] if one is not None else [
            p.of_devices(members).moved([j * size if d == dim else 0 for d in range(operand.rank)])
            for j, members in enumerate(rows.T)
        ]  # fmt: skip
    return tidy(pieces)


def _in_line(piece: Piece, rows: Ints, dim: int, size: int) -> Piece | None:
    """Join tiles that are full along ``dim`` side by side, if each continues where the tile before it ends."""
    stack = of_members(piece, rows)
    if stack is None or size == 0:
        return None
    lo, hi, on = stack.box
    if lo[:, dim].any() or (hi[:, dim] != size).any():
        return None
    a = _going_on(stack, dim, size)
    return None if a is None else Piece(a=a, term=piece.term, b=stack.b[0], lo=lo,
                                        hi=with_dimension(hi, dim, size * len(stack.b)), on=on)  # fmt: skip


def _going_on(stack: Stack, dim: int, size: int) -> Ints | None:
    """Return ``a`` of parts of ``size`` positions along ``dim``; each part begins where the one before it ends."""
    a, steps = stack.a, np.diff(stack.b, axis=0)
    if size == 1 and steps.size:  # the column means nothing, in one position
        a = a.copy()
        a[:, dim] = steps[0, 0]
    return None if (steps != size * a[:, dim]).any() else a


def all_reduce(site: Site) -> list[Content]:
    groups = groups_of(site)
    name = reducer_of(site.op)
    result = []
    for index, operand in enumerate(site.operands):
        try:
            pieces = summed(site, operand, groups, name)
        except Unknown:
            total = _inside_out(site, index, groups, name)
            if total is None:
                raise
            pieces = list(total)
        result.append(site.result(pieces, index))
    return result


def _inside_out(site: Site, index: int, groups: Groups, name: str) -> Sequence[Piece] | None:
    """Return the sum of operand ``index`` over ``groups`` where its elements are summed over devices first."""

    def over(content: Content, rows: Ints) -> Sequence[Piece]:
        return summed(site, content, groups_from(rows, site.devices), name)

    return summed_inside_out(site, index, groups.rows, over) if name == "add" else None


def summed(site: Site, operand: Content, groups: Groups, name: str) -> list[Piece]:
    """Return the reduction ``name`` of the tiles of each group, or of one device's tile where all have the same."""
    return [p.of_devices(groups.group) for p in _summed(site, operand, groups.rows, name)]


def _summed(site: Site, operand: Content, members: Ints, name: str) -> list[Piece]:
    """Return the sums of the groups ``members``, [group, place], as pieces with a row for each group."""
    reducer = (name, operand.element)
    if len(operand.pieces) == 1:
        stack = of_members(operand.pieces[0], members)
        total = None if stack is None else _stack_sum(site, stack, reducer)
        if total is not None:
            return [total]
    copies = [[p.of_devices(row) for p in operand.pieces] for row in members.T]
    pieces = copies[0]
    for row in copies[1:]:
        sums = [_sum(site, chosen, box, reducer) for chosen, box in cells([pieces, row])]
        if any(piece is None for piece in sums):
            raise Unknown("the tiles of a group are no partial results that add up to a value of the whole program")
        pieces = list(tidy(sums))
    return pieces


def _sum(site: Site, pieces: Sequence[Piece], box: Box, reducer: tuple[str, str]) -> Piece | None:
    terms, (name, element) = site.terms, reducer
    dtype = element_type(element).dtype
    laws = [neutral(terms.splat(p.term), name, element, dtype) for p in pieces]
    busy = [p for p, law in zip(pieces, laws, strict=True) if law is None]
    if not busy:
        one = pieces[laws.index(ZERO) if ZERO in laws else 0]
        return Piece(one.term, one.a, one.b, *box)
    if ZERO in laws and not any(has_zero(terms.all[p.term].reducer) for p in busy) and not site.takes(ZERO):
        return None
    if any(has_zero(terms.all[p.term].reducer) for p in busy):
        busy = [replace(p, term=from_zero(terms, p.term)) for p in busy]
    if len(busy) == 1:
        return Piece(busy[0].term, busy[0].a, busy[0].b, *box)
    stack = of_pieces(busy, box)
    total = None if stack is None else _stack_sum(site, stack, reducer)
    if total is None:
        total = _chosen_alike(site, busy, box, reducer)
    if stack is not None or total is not None:
        return total
    if not all(adds_up(terms.all[p.term].reducer, reducer) for p in busy):
        return None
    return total_apart(terms, [(p.term, p.a, p.b[None]) for p in busy], box)


def _chosen_alike(site: Site, pieces: Sequence[Piece], box: Box, reducer: tuple[str, str]) -> Piece | None:
    """Return the sum of choices by one predicate as the choice between the sums; None for other pieces."""
    terms = site.terms
    key = terms.all[pieces[0].term].key
    if any(terms.all[p.term].key[0] != "select" for p in pieces):
        return None
    by, *sides = zip(*(operands_of(terms, p, box) for p in pieces), strict=True)
    if not all(equal(terms, by[0], other, box) for other in by[1:]):
        return None
    sums = [_sum(site, side, box, reducer) for side in sides]
    if any(p is None for p in sums):
        return None
    return combine(terms, key, [by[0], *(p for p in sums if p is not None)], box)


def _stack_sum(site: Site, stack: Stack, reducer: tuple[str, str]) -> Piece | None:
    terms, (name, element) = site.terms, reducer
    if len(stack.b) == 1 or is_neutral(terms.splat(stack.term), name, element, element_type(element).dtype):
        return stack.first()
    term, result = terms.all[stack.term], None
    if adds_up(term.reducer, reducer):
        if term.ranges:
            result = add_rows(terms, stack.term, stack.a, stack.at_lo, stack.box)
        if result is None:
            result = total_apart(terms, [(stack.term, stack.a, stack.b)], stack.box)
    if result is None and name in _IDEMPOTENT and stack.all_equal():
        return stack.first()
    if result is None and name in _IN_ALL:
        result = _inside(site, stack, reducer)
    parts = _as_parts(terms, stack, reducer) if result is None else None
    return result if parts is None else _stack_sum(site, parts, reducer)


def _as_parts(terms: Terms, stack: Stack, reducer: tuple[str, str]) -> Stack | None:
    """Return elements that the whole program reduces as reductions of one element each; None for others."""
    for number in terms.reductions(bare(*reducer), stack.term):
        _, _, first, step, (others, _) = terms.all[number].key
        if not others:
            order = [row for row in range(len(stack.a)) if row != first]
            start = stack.b[..., first : first + 1]
            b = np.concatenate([stack.b[..., order], start, start + step], axis=-1)
            return replace(stack, term=number, a=stack.a[[*order, first, first]], b=b)
    return None


def _inside(site: Site, stack: Stack, reducer: tuple[str, str]) -> Piece | None:
    """Return the reduction of ops of partial results as the op of the reductions."""
    term = site.terms.all[stack.term]
    kind, in_all, in_one = str(term.key[0]), _IN_ALL[reducer[0]], _IN_ONE[reducer[0]]
    if kind not in in_all and kind not in in_one:
        return None
    exact = is_integer(reducer[1])
    if kind == "stablehlo.divide" and exact:  # sums of integers are no sums of what integers are divided to
        return None
    operands, before = stack.operands(site.terms), len(site.walk.laws.uses)
    if kind in in_one:
        same = [operand.all_equal() for operand in operands]
        if sum(same) != len(same) - 1 or (kind == "stablehlo.divide" and not same[1]):
            return None
        sums = [o.first() if equal else _stack_sum(site, o, reducer) for o, equal in zip(operands, same, strict=True)]
        law: Law | None = in_one[kind]
    else:
        sums = [_stack_sum(site, operand, reducer) for operand in operands]
        law = in_all[kind]
    if any(p is None for p in sums) or not (law is None or exact or site.takes(law)):
        del site.walk.laws.uses[before:]
        return None
    return combine(site.terms, term.key, [p for p in sums if p is not None], stack.box)


def reduce_scatter(site: Site) -> list[Content]:
    groups, dim = groups_of(site), attribute(site.op, "scatter_dimension")
    (operand,) = site.operands
    shape, _ = type_of(site.op.results[0])
    pieces = summed(site, operand, groups, reducer_of(site.op))
    start = np.zeros((site.devices, operand.rank), np.int64)
    start[:, dim] = groups.place * shape[dim]
    return [site.result([cut(p, start, shape) for p in pieces])]


def all_to_all(site: Site) -> list[Content]:
    groups = groups_of(site)
    along, onto = attribute(site.op, "split_dimension"), attribute(site.op, "concat_dimension")
    return [
        site.result(exchanged(site.terms, operand, groups, along, onto), index)
        for index, operand in enumerate(site.operands)
    ]


def exchanged(terms: Terms, operand: Content, groups: Groups, along: int, onto: int) -> list[Piece | None]:
    count, part = groups.size, list(operand.shape)
    part[along] //= count
    if along == onto:  # the strips are a dimension of their own, which lies beside that of the devices
        before, after = part[:along], part[along:]
        strips = Content((*before, 1, count, *after), operand.element, ())
        strips = replace(strips, pieces=tuple(reshaped(terms, operand, strips.shape)))
        pieces = tidy(exchanged(terms, strips, groups, along + 1, along))
        return [*reshaped(terms, Content((*before, count, 1, *after), operand.element, pieces), operand.shape)]
    part[onto] *= count
    start = np.zeros((len(groups.place), operand.rank), np.int64)
    start[:, along] = groups.place * part[along]
    return [cut(p, start, part) for p in gathered(operand, groups, onto)]


def pairs_of(site: Any) -> Ints:
    """Return [pair, sender and receiver] of a permute, in either walk. Raises Unknown for pairs that no device can
    follow.
    """
    pairs = np.array(site.op.attributes["source_target_pairs"], np.int64).reshape(-1, 2)
    handle = str(site.op.attributes["channel_handle"]) if "channel_handle" in site.op.attributes else ""
    if not handle or "handle = 0" in handle:
        raise Unknown("its pairs are of replicas, not of partitions")
    if any(len(set(pairs[:, side].tolist())) != len(pairs) for side in (0, 1)):
        raise Unknown("a device sends or receives twice")
    if pairs.size and pairs.max() >= site.devices:
        raise Unknown("it names a device that the program does not run on")
    return pairs


def collective_permute(site: Site) -> list[Content]:
    (operand,) = site.operands
    pairs = pairs_of(site)
    source = np.full(site.devices, -1, np.int64)
    source[pairs[:, 1]] = pairs[:, 0]
    return [site.result([*(p.of_devices(source) for p in operand.pieces), _zeros(site, operand, source < 0)])]


def _zeros(site: Site, content: Content, on: Any) -> Piece | None:
    shape = np.array(content.shape, np.int64)
    lo = np.zeros((site.devices, content.rank), np.int64)
    return zero_piece(site.terms, content.element, (lo, lo + shape, on))


def collective_broadcast(site: Site) -> list[Content]:
    groups = groups_of(site)
    first = groups.rows[groups.group, 0]
    return [site.result([p.of_devices(first) for p in site.operands[0].pieces])]


RULES: dict[str, Rule] = {
    "stablehlo.all_gather": all_gather,
    "stablehlo.all_reduce": all_reduce,
    "stablehlo.reduce_scatter": reduce_scatter,
    "stablehlo.all_to_all": all_to_all,
    "stablehlo.collective_permute": collective_permute,
    "stablehlo.collective_broadcast": collective_broadcast,
}
