"""Shardings of values that follow from a program's annotations before propagation, for the rules that depend on them.

The device that holds a summand of a partial sum follows from the shardings of the summed arrays (``summands``). With
JAX's explicit axes almost every value is annotated. Other shardings follow from operands, forward, by the rules of ops:

    %0 = reshape %a : [8] -> [8, 1]       %a is split over x along dimension 0: so is %0

Without annotated operands a sharding is unknown (None). All shardings are written on one mesh, so that axes compare.

State: ``known``, value -> its sharding, or None. O(ops), each once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import SHARDING, UNSPECIFIED, text
from shardpass.ir.blocks import terminator
from shardpass.ir.tensors import is_ranked, operation, shape_of
from shardpass.ir.walk import CONTROL_FLOW
from shardpass.ops.registry import find
from shardpass.ops.splits.factors import Kind, Rule
from shardpass.program.manual_regions import marked_scope
from shardpass.sharding import AxisRef, Mesh, Sharding, common_mesh, parse_sharding
from shardpass.sharding.common import unreduced_over_all

Axes = tuple[AxisRef, ...]
DEEPEST = 200  # length of a chain of operands that is followed


class KnownShardings:
    """The shardings of the values and arguments of ``main``; ``rows``: the attributes of its arguments.

    ``devices``: of the program, for ``{unreduced}``, which names none. ``prefer``: the mesh that the module names.
    """

    def __init__(
        self, main: Any, rows: Sequence[Any], holders: Sequence[Any], devices: int | None, prefer: Mesh | None
    ) -> None:
        self.devices = devices
        self.mesh: Mesh | None = None
        values = [(row, argument) for row, argument in zip(rows, main.regions[0].blocks[0].arguments, strict=True)]
        values += [(op.attributes, op.results[0]) for op in holders if len(op.results) == 1]
        every = [self._parsed(attributes, value) for attributes, value in values]
        self.mesh = common_mesh([one for one in every if one is not None and one.mesh is not None], prefer)
        self.known: dict[Any, Sharding | None] = {
            value: self.annotation(row, value) for row, value in values[: len(rows)]
        }

    def annotation(self, attributes: Any, value: Any) -> Sharding | None:
        """Return the annotation of ``value`` in ``attributes``, on the mesh; None if it splits nothing."""
        sharding = self._parsed(attributes, value)
        if sharding is None or self.mesh is None:
            return None
        if sharding.is_replicated:
            return None if UNSPECIFIED in attributes else Sharding.tiled(self.mesh, ((),) * len(shape_of(value)))
        return self.on_mesh(sharding)

    def _parsed(self, attributes: Any, value: Any) -> Sharding | None:
        if SHARDING not in attributes or not is_ranked(value):
            return None
        try:
            sharding = parse_sharding(text(attributes[SHARDING]))
        except ShardpassError:  # reported later, with all others
            return None
        if isinstance(sharding, Sharding) and self.devices is not None:
            sharding = unreduced_over_all(sharding, len(shape_of(value)), self.devices)
        return sharding if isinstance(sharding, Sharding) else None

    def on_mesh(self, sharding: Sharding) -> Sharding | None:
        """Convert ``sharding`` to the mesh, with partial sums in its order; None if it splits nothing."""
        if sharding.mesh is None or self.mesh is None:
            return None
        on_mesh = sharding.on(self.mesh)
        if on_mesh is None or on_mesh.mesh is None:
            return None
        order = {name: place for place, name in enumerate(self.mesh.names)}
        axes = sorted(on_mesh.unreduced, key=lambda axis: order.get(axis.name, 0))
        return Sharding.tiled(
            self.mesh, on_mesh.dims, unreduced=axes, manual=on_mesh.manual, reduction=on_mesh.reduction
        )

    def of(self, value: Any, depth: int = 0) -> Sharding | None:
        """Return the sharding of ``value``; None if it is unknown or splits nothing."""
        if value not in self.known:
            self.known[value] = None  # of a loop's value, while its first one is looked at
            self.known[value] = self._read(value, depth) if depth < DEEPEST and is_ranked(value) else None
        return self.known[value]

    def _read(self, value: Any, depth: int) -> Sharding | None:
        if isinstance(value.owner, ir.Block):
            holder = operation(value.owner.owner)
            carried = holder.name == "stablehlo.while"
            return self.of(holder.operands[value.arg_number], depth + 1) if carried else None
        op = operation(value.owner)
        if marked_scope(op) is not None:
            return None
        if SHARDING in op.attributes:
            return self.annotation(op.attributes, value)
        place = value.result_number
        if op.name == "stablehlo.while":
            return self.of(op.operands[place], depth + 1)
        if op.name in CONTROL_FLOW:
            return self.of(terminator(op.regions[0].blocks[0]).operands[place], depth + 1)
        rule = rule_of(op)
        if rule is None or self.mesh is None:
            return None
        axes = self.of_factors(op, rule, Kind.PARALLEL, depth + 1)
        dims = [_only(axes, factors) for factors in rule.results[place]]
        return Sharding.tiled(self.mesh, _once(dims)) if any(dims) else None

    def of_factors(self, op: Any, rule: Rule, kind: Kind, depth: int = 0) -> dict[int, Axes]:
        """Return the axes that split each factor of ``kind``, from the first operand that is split along it."""
        axes_of: dict[int, Axes] = {}
        for operand, dims in zip(op.operands, rule.operands, strict=True):
            sharding = self.of(operand, depth) if dims and shape_of(operand) else None
            for factors, axes in zip(dims, sharding.dims if sharding is not None else (), strict=False):
                if axes and len(factors) == 1 and rule.factors[factors[0]].kind is kind:
                    axes_of.setdefault(factors[0], axes)
        return axes_of


def rule_of(op: Any) -> Rule | None:
    """Return the rule of ``op``; None without a rule, or if an operand or result is not an array."""
    entry = find(op.name)
    if entry is None or not all(map(is_ranked, (*op.operands, *op.results))):
        return None
    model = entry.read(op)
    return None if model is None else model.rule


def _only(axes: dict[int, Axes], factors: tuple[int, ...]) -> Axes:
    return axes.get(factors[0], ()) if len(factors) == 1 else ()


def _once(dims: list[Axes]) -> list[Axes]:
    """Keep each axis of ``dims`` only on the first dimension that it splits."""
    used: set[AxisRef] = set()
    out = []
    for axes in dims:
        out.append(() if used & set(axes) else axes)
        used |= set(axes)
    return out
