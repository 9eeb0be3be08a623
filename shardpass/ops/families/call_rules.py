"""Rules of custom calls as text, in the manner of einsum: ``register_custom_call("rows.normalize", "i j -> i j")``.

Problem. Only the author of a custom call (written with ``jax.ffi.ffi_call``, for instance) knows along which dimensions
the call may be split; a call without a rule is computed whole on every device. A rule names each dimension of the
operands and results by a *factor*, as the sharding rules of JAX's ``custom_partitioning`` do:

    rule    = values "->" values             values = value ("," value)*
    value   = [batch] dimension*             batch  = "..." [number]
    dimension = name | "(" name name+ ")"    a dimension of several factors, major to minor

``...`` stands for any number of leading dimensions, the same ones wherever it stands, or 1: ``jax.vmap`` with
``vmap_method="broadcast_all"`` or ``"expand_dims"`` adds such dimensions. An empty value is a scalar.

Cases, for a factor:

1. It stands in an operand and in every result: the call may be cut along it. Each device calls with its tiles.
2. ``reduction_factors`` names it: the call may be cut along it, and results of the parts are added up. Padding of
   uneven tiles is zero.
3. Otherwise (it is missing in a result, in all operands, or ``need_replication_factors`` names it): every device gets
   the dimension whole.

Example: ``"i j, j k -> i k"`` with ``reduction_factors=("j",)`` is a matrix product: i and k are of case 1, j of
case 2.

A rule is read when it is registered (SP307), and compared with each call when that is partitioned (SP308).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from shardpass.diagnostics.table_passes import BAD_CALL_RULE, CALL_RULE_MISFIT
from shardpass.ir.annotations import custom_call_target
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import shape_of
from shardpass.ops.families.custom_call import LocalCall, define_target
from shardpass.ops.model import OpModel
from shardpass.ops.splits.factors import Kind, Priority, RuleBuilder

Dimension = tuple[str, ...]  # the names of its factors, major to minor
TOKEN = re.compile(r"\s*(?:(\.\.\.\d*)|([A-Za-z]\w*)|([(),])|(\S))")


@dataclass(frozen=True, slots=True)
class ValueRule:
    """The rule of an operand or result. ``batch``: the name of its leading dimensions, "" without any."""

    batch: str
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class CallRule:
    """A parsed rule. ``sizes``: the sizes of factors that are not whole dimensions."""

    text: str
    operands: tuple[ValueRule, ...]
    results: tuple[ValueRule, ...]
    summed: frozenset[str]
    whole: frozenset[str]
    sizes: tuple[tuple[str, int], ...]


def register_custom_call(
    target: str,
    rule: str,
    *,
    reduction_factors: Iterable[str] = (),
    need_replication_factors: Iterable[str] = (),
    **factor_sizes: int,
) -> None:
    """Register how calls of ``target`` may be split. Programs that were compiled before are not compiled again.

    Args:
        target: the name of the call, as in ``jax.ffi.ffi_call(target, ...)``.
        rule: the dimensions of the operands and results, "i j, j k -> i k".
        reduction_factors: along these the results of parts are added up.
        need_replication_factors: along these the call is never cut.
        factor_sizes: of factors that only stand in brackets, as b in "(a b) -> a".

    The call's attributes must not depend on sizes of dimensions along which it may be cut. A call with side effects is
    made for each tile.

    Raises:
        ShardpassError: SP307 where the rule cannot be read.
    """
    read = read_rule(rule, frozenset(reduction_factors), frozenset(need_replication_factors), factor_sizes)
    define_target(target, lambda op: _model(op, read))


# ---------------------------------------------------------------- reading


def read_rule(text: str, summed: frozenset[str], whole: frozenset[str], sizes: dict[str, int]) -> CallRule:
    """Parse a rule. Raises ShardpassError (SP307)."""
    sides = text.split("->")
    if len(sides) != 2:
        raise BAD_CALL_RULE.error(rule=text, reason=f"it has {len(sides) - 1} arrows")
    operands, results = (tuple(_values(side, text)) for side in sides)
    rule = CallRule(text, operands, results, summed, whole, tuple(sorted(sizes.items())))
    dimensions = [dimension for value in (*operands, *results) for dimension in value.dimensions]
    names = {name for dimension in dimensions for name in dimension}
    alone = {dimension[0] for dimension in dimensions if len(dimension) == 1}
    for what, given in (("reduction_factors", summed), ("need_replication_factors", whole), ("sizes", set(sizes))):
        if strange := sorted(set(given) - names):
            raise BAD_CALL_RULE.error(rule=text, reason=f"{what} names {strange[0]}, which stands in no dimension")
    if both := sorted(summed & whole):
        raise BAD_CALL_RULE.error(rule=text, reason=f"{both[0]} is both a reduction and a replication factor")
    if unknown := sorted(names - alone - set(sizes)):
        raise BAD_CALL_RULE.error(rule=text, reason=f"the size of {unknown[0]} is not known; pass {unknown[0]}=SIZE")
    if redundant := sorted(alone & set(sizes)):
        raise BAD_CALL_RULE.error(rule=text, reason=f"{redundant[0]} is a whole dimension, which says its size")
    return rule


def _values(side: str, text: str) -> Iterator[ValueRule]:
    """Parse the values on one side of the arrow."""
    batch = ""
    dimensions: list[Dimension] = []
    group: list[str] | None = None

    def fail(reason: str) -> Exception:
        return BAD_CALL_RULE.error(rule=text, reason=reason)

    for dots, name, mark, other in TOKEN.findall(side):
        if other:
            raise fail(f"{other!r} is no part of a rule")
        if dots:
            if batch or dimensions or group is not None:
                raise fail("... stands before the other dimensions")
            batch = dots
        elif name and group is not None:
            group.append(name)
        elif name:
            dimensions.append((name,))
        elif mark == "(" and group is None:
            group = []
        elif mark == ")" and group is not None and len(group) > 1:
            dimensions.append(tuple(group))
            group = None
        elif mark == "," and group is None:
            yield ValueRule(batch, tuple(dimensions))
            batch, dimensions = "", []
        else:
            raise fail("brackets hold two factors or more, and no brackets")
    if group is not None:
        raise fail("a bracket is not closed")
    yield ValueRule(batch, tuple(dimensions))


# ---------------------------------------------------------------- on a call


def _model(op: Any, rule: CallRule) -> OpModel[Any]:
    shapes = [tuple(map(shape_of, values)) for values in (op.operands, op.results)]
    try:
        return _fitted(rule, *shapes)
    except ValueError as reason:
        target = custom_call_target(op)
        raise CALL_RULE_MISFIT.error(place_of(op.location), rule=rule.text, target=target, reason=reason) from None


@lru_cache(maxsize=1024)
def _fitted(rule: CallRule, operands: tuple[tuple[int, ...], ...], results: tuple[tuple[int, ...], ...]) -> LocalCall:
    """Build the model of a call with these shapes. Raises ValueError if the rule does not fit the shapes."""
    sides = [_spelled(rule.operands, operands, "operand"), _spelled(rule.results, results, "result")]
    sizes = _sizes(rule, zip((*sides[0], *sides[1]), (*operands, *results), strict=True))
    build = RuleBuilder([len(s) for s in operands], [len(s) for s in results])
    inside, out = ([{name for dim in value for name in dim} for value in side] for side in sides)
    number = {}
    for name, size in sizes.items():
        number[name] = build.factor(size, _kind(name, rule, inside, out))
    for add, side in zip((build.operand, build.result), sides, strict=True):
        for index, value in enumerate(side):
            for dim, names in enumerate(value):
                add(index, dim, *[number[name] for name in names])
    summed = any(name in rule.summed for name in sizes)
    priority = Priority.CONTRACTION if summed else Priority.PASS_THROUGH
    return LocalCall(build.build(priority, "add" if summed else ""))


def _kind(name: str, rule: CallRule, operands: list[set[str]], results: list[set[str]]) -> Kind:
    if name in rule.summed:
        return Kind.REDUCTION
    through = any(name in value for value in operands) and all(name in value for value in results)
    return Kind.PARALLEL if through and name not in rule.whole else Kind.REPLICATED


def _spelled(values: tuple[ValueRule, ...], shapes: tuple[tuple[int, ...], ...], role: str) -> list[list[Dimension]]:
    """Name the factors of each dimension, batch dimensions included: ``...`` of two dimensions is "...0 ...1"."""
    if len(values) != len(shapes) and not (len(shapes) == 0 and values == (ValueRule("", ()),)):
        raise ValueError(f"the rule has {len(values)} {role}s, and the call {len(shapes)}")
    spelled = []
    for index, (value, shape) in enumerate(zip(values, shapes, strict=False)):
        leading = len(shape) - len(value.dimensions)
        if leading < 0 or (leading and not value.batch):
            raise ValueError(f"{role} {index} has {len(shape)} dimensions, and {len(value.dimensions)} in the rule")
        batch = [(f"{value.batch} {dim}" if shape[dim] != 1 else f"{role} {index} {dim}",) for dim in range(leading)]
        spelled.append([*batch, *value.dimensions])
    return spelled


def _sizes(rule: CallRule, values: Iterable[tuple[list[Dimension], tuple[int, ...]]]) -> dict[str, int]:
    """Compute the size of each factor, in the order of their first use."""
    sizes: dict[str, int] = dict(rule.sizes)
    rows = [(names, size) for value, shape in values for names, size in zip(value, shape, strict=True)]
    for names, size in rows:
        if len(names) == 1 and sizes.setdefault(names[0], size) != size:
            raise ValueError(f"{names[0]} is {sizes[names[0]]} in one place and {size} in another")
    for names, size in rows:
        product = 1
        for name in names:
            product *= sizes[name]
        if product != size:
            raise ValueError(f"({' '.join(names)}) has {product} elements, and the dimension {size}")
    return sizes
