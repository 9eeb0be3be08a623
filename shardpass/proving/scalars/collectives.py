"""Collectives on scalar terms: each device's elements follow from those of its group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules.collectives import Groups, groups_of, pairs_of
from shardpass.proving.rules.contraction import reducer_of
from shardpass.proving.scalars.constants import zero
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value


def all_gather(site: ScalarSite) -> list[Value]:
    groups, dim = groups_of(site), _attribute(site, "all_gather_dim")
    return [
        site.result(np.concatenate([v.ids[place] for place in groups.members.T], axis=dim + 1), index)
        for index, v in enumerate(site.operands)
    ]


def _attribute(site: ScalarSite, name: str) -> int:
    return int(site.op.attributes[name].value)


def all_reduce(site: ScalarSite) -> list[Value]:
    groups = groups_of(site)
    return [site.result(total(site, v, groups), index) for index, v in enumerate(site.operands)]


def total(site: ScalarSite, value: Value, groups: Groups) -> Ints:
    name = reducer_of(site.op)
    matrix = np.stack([value.ids[place] for place in groups.members.T], axis=-1)
    return reduced(site.table, name, value.element, matrix)


def reduce_scatter(site: ScalarSite) -> list[Value]:
    groups, dim = groups_of(site), _attribute(site, "scatter_dimension")
    result = []
    for index, value in enumerate(site.operands):
        sums = total(site, value, groups)
        result.append(site.result(_strips(sums, groups.place, dim, site.shape(index)[dim]), index))
    return result


def _strips(ids: Ints, places: Sequence[int] | Ints, dim: int, size: int) -> Ints:
    """Return, of each device's array, the strip at its place."""
    return np.stack([np.take(row, range(p * size, (p + 1) * size), dim) for row, p in zip(ids, places, strict=True)])


def all_to_all(site: ScalarSite) -> list[Value]:
    groups = groups_of(site)
    along, onto = _attribute(site, "split_dimension"), _attribute(site, "concat_dimension")
    result = []
    for index, value in enumerate(site.operands):
        size = value.shape[along] // groups.size
        strips = [_strips(value.ids[place], groups.place, along, size) for place in groups.members.T]
        result.append(site.result(np.concatenate(strips, axis=onto + 1), index))
    return result


def collective_permute(site: ScalarSite) -> list[Value]:
    (operand,) = site.operands
    pairs = pairs_of(site)
    ids = np.full_like(operand.ids, zero(site.table, operand.element))
    ids[pairs[:, 1]] = operand.ids[pairs[:, 0]]
    return [site.result(ids)]


def collective_broadcast(site: ScalarSite) -> list[Value]:
    groups = groups_of(site)
    return [site.result(site.operands[0].ids[groups.members[:, 0]])]


RULES: dict[str, ScalarRule] = {
    "stablehlo.all_gather": all_gather,
    "stablehlo.all_reduce": all_reduce,
    "stablehlo.reduce_scatter": reduce_scatter,
    "stablehlo.all_to_all": all_to_all,
    "stablehlo.collective_permute": collective_permute,
    "stablehlo.collective_broadcast": collective_broadcast,
}
