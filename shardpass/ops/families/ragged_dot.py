"""ragged_dot of CHLO and MHLO, a dot with groups of rows or of contracted elements: expanded into other ops.

The op becomes others before propagation.

Group j is the elements from ``starts[j]`` to ``ends[j]`` along the ragged dimension: the running sums of the sizes. The
operands get a group dimension, with zeros in place of what belongs to other groups; then it is a dot_general:

1. ragged rows (a free dimension of the left side): each group has its own right side. The group dimension is
   contracted with the right side's; rows of no group are zero.
2. ragged contraction: a product for each group. The group dimension is a batching one, the result's first.
3. ragged batch: the groups change nothing.

Groups cross tiles at places that only the data knows; written out, any dimension may be split, the groups too: experts.
The price is a left side (in 2, both) as many times as there are groups, which XLA makes in the dot where it can.

CHLO and MHLO have their own attributes for dimensions and precision, such as ``#chlo<precision HIGHEST>``, which are
converted to StableHLO's for dot_general. XLA has no MHLO importer for the op and would abort the process.

Group sizes are [prefix..., groups]: of their own for each element of the dimensions before the ragged one, or alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.integers import greatest
from shardpass.ir.tensors import enum_word, i64_array, ints, retype, shape_of
from shardpass.ops.families.replicated import unsplit
from shardpass.ops.registry import define
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.summing import reduced_sum, zero_text

LONGEST = 2**63 - 1  # elements along a dimension


@dataclass(frozen=True, slots=True)
class RaggedDims:
    """The roles of dimensions; ``batch`` and ``contract`` are of the left and the right side."""

    batch: tuple[tuple[int, ...], tuple[int, ...]]
    contract: tuple[tuple[int, ...], tuple[int, ...]]
    ragged: tuple[int, ...]
    group: tuple[int, ...]


def _numbers(op: Any) -> RaggedDims:
    attribute = op.attributes["ragged_dot_dimension_numbers"]
    if op.name.startswith("mhlo."):
        return _mhlo_numbers(str(attribute))
    of = chlo.RaggedDotDimensionNumbers(attribute)
    return RaggedDims(
        (ints(of.lhs_batching_dimensions), ints(of.rhs_batching_dimensions)),
        (ints(of.lhs_contracting_dimensions), ints(of.rhs_contracting_dimensions)),
        ints(of.lhs_ragged_dimensions),
        ints(of.rhs_group_dimensions),
    )


def _mhlo_numbers(text: str) -> RaggedDims:
    """Parse MHLO's attribute, for which the bindings have no class; its text lists the fields that are not empty."""
    lists = {
        name: tuple(map(int, re.findall(r"\d+", body)))
        for name, body in re.findall(r"(\w+)_dimensions = \[([\d, ]*)\]", text)
    }
    batch, contract = (
        (lists.get(f"lhs_{word}", ()), lists.get(f"rhs_{word}", ())) for word in ("batching", "contracting")
    )
    return RaggedDims(batch, contract, lists.get("lhs_ragged", ()), lists.get("rhs_group", ()))


def ragged_dot(op: Any) -> list[Any]:
    numbers = _numbers(op)
    left, right, sizes = op.operands
    batch, contract = numbers.batch, numbers.contract
    (ragged,) = numbers.ragged
    if ragged in batch[0]:
        return [_dot(op, left, right, batch, contract)]
    if ragged in contract[0]:
        place = contract[0].index(ragged)
        one, other = (
            _by_group(value, dims[place], sizes, (*batches, *dims[:place]))
            for value, dims, batches in zip((left, right), contract, batch, strict=True)
        )
        batches = [(0, *_after(dims)) for dims in batch]
        return [_dot(op, one, other, batches, [_after(dims) for dims in contract])]
    free = [d for d in range(len(shape_of(left))) if d not in (*contract[0], *batch[0])]
    part = _by_group(left, ragged, sizes, (*batch[0], *free[: free.index(ragged)]))
    (group,) = numbers.group
    contracted = (0, *_after(contract[0])), (group, *contract[1])
    return [_dot(op, part, right, (_after(batch[0]), batch[1]), contracted)]


def _after(dims: Sequence[int]) -> tuple[int, ...]:
    """Shift ``dims`` after the group dimension."""
    return tuple(d + 1 for d in dims)


def _dot(op: Any, left: Any, right: Any, batch: Sequence[Any], contract: Sequence[Any]) -> Any:
    numbers = hlo.DotDimensionNumbers.get(*map(list, (*batch, *contract)))
    made = hlo.dot_general(op.results[0].type, left, right, numbers)
    if "precision_config" in op.attributes:
        made.owner.attributes["precision_config"] = _precision(op.attributes["precision_config"])
    return made


def _precision(precisions: Any) -> Any:
    """Convert ``#chlo<precision HIGHEST>`` to ``#stablehlo<precision HIGHEST>``."""
    return ir.ArrayAttr.get([hlo.PrecisionAttr.get(enum_word(one)) for one in precisions])


def _by_group(value: Any, ragged: int, sizes: Any, prefix: Sequence[int]) -> Any:
    """Build [groups, *shape of value]: ``value`` where its elements belong to the group, zeros elsewhere.

    ``prefix``: dimensions of ``value`` that go with those of ``sizes`` before its last.
    """
    shape, groups = shape_of(value), shape_of(sizes)[-1]
    kind = retype(value.type, (groups, *shape))
    sizes = at.converted(sizes, _counting(sizes.type.element_type, shape[ragged]))
    ends = _running_sum(sizes)
    starts = hlo.subtract(ends, sizes)
    counts = retype(sizes.type, kind.shape)
    places = [*_after(prefix[: len(shape_of(sizes)) - 1]), 0]
    first, end = (hlo.broadcast_in_dim(counts, v, i64_array(places)) for v in (starts, ends))
    position = hlo.iota(counts, ragged + 1)
    inside = hlo.and_(at.compare("LE", first, position), at.compare("LT", position, end))
    whole = hlo.broadcast_in_dim(kind, value, i64_array(range(1, len(shape) + 1)))
    return hlo.select(inside, whole, at.splat(kind, zero_text(kind.element_type)))


def _counting(element: Any, length: int) -> Any:
    """Return an integer type that can represent a group size of type ``element`` and the sum of all, at most
    ``length``.
    """
    return at.numbers(min(max(length, greatest(element)), LONGEST))


def _running_sum(sizes: Any) -> Any:
    """Build the running sum along the last dimension: element j is the sum of the first j + 1."""
    *prefix, groups = shape_of(sizes)
    kind = retype(sizes.type, (*prefix, groups, groups))
    rank = len(prefix)
    spread = hlo.broadcast_in_dim(kind, sizes, i64_array([*range(rank), rank + 1]))
    earlier = at.compare("LE", hlo.iota(kind, rank + 1), hlo.iota(kind, rank))
    return reduced_sum(hlo.select(earlier, spread, at.splat(kind, 0)), [rank + 1])


define(
    ["chlo.ragged_dot", "mhlo.ragged_dot"],
    unsplit,
    note="every dimension, including the groups: a dot_general of operands that are zero outside of their group "
    "replaces the op before propagation",
    expand=ragged_dot,
)
