"""Batch norms as the sums and elementwise ops that StableHLO's specification defines them by."""

from __future__ import annotations

import numpy as np

from shardpass.element_types import element_type
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.scalars.constants import of_array, whole_number, zero
from shardpass.proving.scalars.elementwise import as_type, negated, op_of
from shardpass.proving.scalars.lists import reduced
from shardpass.proving.scalars.table import Scalars
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

NARROW = ("f16", "bf16")


class _Features:
    """Arithmetic on terms of one float type, along a feature dimension; narrow types are computed as f32."""

    def __init__(self, site: ScalarSite) -> None:
        self.table: Scalars = site.table
        value = site.operands[0]
        self.given = value.element
        self.element = "f32" if self.given in NARROW or self.given.startswith("f8") else self.given
        self.feature = int(site.op.attributes["feature_index"].value)
        self.shape = (site.devices, *value.shape)
        self.dims = [d + 1 for d in range(value.rank) if d != self.feature]
        self.count = int(np.prod([self.shape[d] for d in self.dims], dtype=np.int64))
        self.epsilon = float(site.op.attributes["epsilon"].value)

    def wide(self, value: Value) -> Ints:
        return as_type(self.table, value.ids, value.element, self.element)

    def op(self, name: str, *columns: Ints) -> Ints:
        kinds = (self.element,) * len(columns)
        shape = np.broadcast_shapes(*(c.shape for c in columns))
        key = (f"stablehlo.{name}", (), self.element, kinds)
        return op_of(self.table, name, self.element, [np.broadcast_to(c, shape) for c in columns], key, kinds)

    def minus(self, x: Ints, y: Ints) -> Ints:
        return self.op("add", x, negated(self.table, self.element, np.broadcast_to(y, x.shape)))

    def spread(self, vector: Ints) -> Ints:
        wide = [self.shape[0]] + [1] * (len(self.shape) - 1)
        wide[self.feature + 1] = vector.shape[1]
        return np.broadcast_to(vector.reshape(wide), self.shape)

    def sum(self, x: Ints) -> Ints:
        order = [0, self.feature + 1, *self.dims]
        rows = x.transpose(order).reshape(self.shape[0], self.shape[self.feature + 1], -1)
        start = np.full((*rows.shape[:-1], 1), zero(self.table, self.element), np.int64)
        return reduced(self.table, "add", self.element, np.concatenate([rows, start], axis=-1))

    def number(self, value: int, like: Ints) -> Ints:
        result = whole_number(self.table, value, self.element)
        return np.full_like(like, self.table.one(("count", value)) if result is None else result)

    def raised(self, variance: Ints) -> Ints:
        value = np.array([self.epsilon], element_type(self.element).dtype)
        epsilon = of_array(self.table, value, self.element)
        return self.op("add", variance, np.full_like(variance, epsilon[0]))

    def normal(self, centered: Ints, scale: Ints, offset: Ints, variance: Ints) -> Ints:
        result = self.op("divide", centered, self.spread(self.op("sqrt", self.raised(variance))))
        return self.op("add", self.op("multiply", self.spread(scale), result), self.spread(offset))

    def results(self, site: ScalarSite, *rows: Ints) -> list[Value]:
        return [site.result(as_type(self.table, ids, self.element, site.element(k)), k) for k, ids in enumerate(rows)]


def inference(site: ScalarSite) -> list[Value]:
    about = _Features(site)
    x, scale, offset, mean, variance = map(about.wide, site.operands)
    return about.results(site, about.normal(about.minus(x, about.spread(mean)), scale, offset, variance))


def training(site: ScalarSite) -> list[Value]:
    about = _Features(site)
    x, scale, offset = map(about.wide, site.operands)
    total = about.sum(x)
    mean = about.op("divide", total, about.number(about.count, total))
    centered = about.minus(x, about.spread(mean))
    squares = about.sum(about.op("multiply", centered, centered))
    variance = about.op("divide", squares, about.number(about.count, squares))
    return about.results(site, about.normal(centered, scale, offset, variance), mean, variance)


def grad(site: ScalarSite) -> list[Value]:
    about = _Features(site)
    x, scale, mean, variance, upstream = map(about.wide, site.operands)
    raised = about.raised(variance)
    deviation = about.op("sqrt", raised)
    centered = about.minus(x, about.spread(mean))
    along, total = about.sum(about.op("multiply", upstream, centered)), about.sum(upstream)
    count = about.number(about.count, total)
    mine = about.op("multiply", upstream, about.spread(count))
    rest = about.op("multiply", about.spread(about.op("divide", along, raised)), centered)
    inner = about.minus(about.minus(mine, about.spread(total)), rest)
    factor = about.op("divide", about.op("divide", scale, deviation), count)
    whole = about.op("multiply", about.spread(factor), inner)
    return about.results(site, whole, about.op("divide", along, deviation), total)


RULES: dict[str, ScalarRule] = {
    "stablehlo.batch_norm_inference": inference,
    "stablehlo.batch_norm_training": training,
    "stablehlo.batch_norm_grad": grad,
}
