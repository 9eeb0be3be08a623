"""reduce in general: any initial value, any reducer, several operands at once (argmax, argmin).

Three ways to reduce a split dimension:

1. A plain combiner (add, maximum, ...) of one operand: each device reduces its part and an all_reduce joins the parts.
   An initial value that is not the combiner's identity is combined on part 0 alone.
2. Any other reducer (argmax; and/or of integers, for which there is no all_reduce): each device reduces its part, the
   parts are gathered, and reduced once more, with the initial value. A part must not take the initial value in,
   nor padding; so the local reducer gets one more operand, a flag, that says whether there is anything yet:

       (a, has_a) o (b, has_b) = (has_a ? (has_b ? reducer(a, b) : a) : b, has_a or has_b)

   It is associative where the reducer is, and (initial value, false) is its identity whatever the initial value.
   Parts that are all padding have nothing to say; they are the last ones and are cut off.
3. Needed whole: where the order of elements would change. Splitting keeps the order along one dimension alone, so of
   several reduced dimensions only the first (longer than 1) is split, unless the reducer is known to commute.

Bytes: each device receives the other parts' results, (n - 1) x the result's tile.
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.offsets import device_value
from shardpass.ir.tensors import i64_array, ints, operation, retype, shape_of
from shardpass.ops.local import Local
from shardpass.ops.reducers import can_combine, combiner_of, is_identity
from shardpass.ops.registry import define
from shardpass.ops.splits.factors import Axes, Kind, Priority, Rule, RuleBuilder
from shardpass.ops.splits.prime_mesh import PrimeMesh
from shardpass.ops.tiles import positions as at
from shardpass.ops.tiles.masking import identity_text
from shardpass.ops.tiles.stacking import item_bytes, result_tile, stacked


def reduce(op: Any) -> Rule | None:
    count = len(op.results)
    shape, reduced = shape_of(op.operands[0]), ints(op.attributes["dimensions"])
    element = op.operands[0].type.element_type
    name = combiner_of(op) if count == 1 else ""
    joins = can_combine(name, str(element)) and identity_text(name, element) is not None
    splittable = {d for d in reduced if shape[d]} if name else set(_first_long(shape, reduced))
    if not joins and not _can_regroup(op):
        splittable = set()
    build = RuleBuilder([len(shape)] * count + [0] * count, [len(shape) - len(reduced)] * count)
    out = 0
    for dim, size in enumerate(shape):
        gone = dim in reduced
        kind = Kind.PARALLEL if not gone else Kind.REDUCTION if dim in splittable else Kind.REPLICATED
        factor = build.factor(size, kind)
        for index in range(count):
            build.operand(index, dim, factor)
            if not gone:
                build.result(index, out, factor)
        out += not gone
    if joins:
        return build.build(Priority.CONTRACTION, name)
    return build.build(Priority.CONTRACTION, self_completing=True, masks=True)


def _first_long(shape: tuple[int, ...], reduced: tuple[int, ...]) -> list[int]:
    return [d for d in sorted(reduced) if shape[d] > 1][:1]


# Results of these depend on how elements are grouped, so they are computed as one device would.
NOT_ASSOCIATIVE = ("subtract", "divide", "remainder", "power", "atan2", "shift_left", "shift_right_logical")


def _can_regroup(op: Any) -> bool:
    """Whether the reducer may be applied to parts: it has no regions, and is not one op known not to be associative."""
    body = [operation(inner) for inner in op.regions[0].blocks[0].operations]
    return not any(len(inner.regions) for inner in body) and not (
        len(body) == 2 and body[0].name.removeprefix("stablehlo.") in NOT_ASSOCIATIVE
    )


def localize_reduce(local: Local) -> list[Any] | None:
    axes = tuple(a for f, axes in sorted(local.factors.items()) for a in axes if _is_partial(local, f))
    if axes and local.rule.self_completing:
        _reduce_parts(local)
    elif axes and not is_identity(local.op.operands[1], local.rule.combiner):
        return [_started_once(local, axes)]
    return None


def _is_partial(local: Local, factor: int) -> bool:
    return local.rule.factors[factor].kind is Kind.REDUCTION


def _started_once(local: Local, axes: Axes) -> Any:
    """Way 1: the partial result, with the initial value on the devices of part 0 alone.

    It is combined after the reduction, which starts from the identity: XLA takes a reduction of one element for that
    element, whatever it starts from.
    """
    op, name = local.op, local.rule.combiner
    init, kind = op.operands[1], retype(op.results[0].type, local.tile(0))
    text = at.nothing_text(kind.element_type) if name == "add" else identity_text(name, kind.element_type)
    with local.before():
        neutral = at.splat(init.type, str(text))
        first = at.compare("EQ", device_value(local.mesh.index(axes)), at.splat(at.i32(), 0))
        start = hlo.select(first, init, neutral)
    op.operands[1] = neutral
    op.results[0].set_type(kind)
    with local.after():
        operands = [at.spread(start, kind.shape), op.results[0]]
        return ir.Operation.create(f"stablehlo.{name}", results=[kind], operands=operands).results[0]


def _reduce_parts(local: Local) -> None:
    """Way 2: builds the local reduction and the all_gathers; the op itself becomes the reduction of the parts."""
    op, mesh = local.op, local.mesh
    dims = local.operand_dims[0]
    shape, tile = local.operand_shapes[0], local.operand_tile(0)
    split = [d for d in sorted(ints(op.attributes["dimensions"])) if dims[d]]
    axes = tuple(a for d in split for a in dims[d])
    grid = [mesh.count(dims[d]) for d in split]
    filled = [max(1, -(-shape[d] // max(1, tile[d]))) for d in split]  # parts that are not all padding
    kinds = [retype(r.type, local.tile(i)) for i, r in enumerate(op.results)]
    with local.before():
        partial = _flagged_reduce(op, kinds, _present(local, split))
        for index, part in enumerate(partial):
            parts = stacked(local, part, axes, f"parts of {op.name} over a split dimension")
            rest = shape_of(part)
            if len(grid) > 1:
                parts = hlo.reshape(retype(part.type, (*grid, *rest)), parts)
            high = [*filled, *rest]
            if filled != grid:
                parts = hlo.slice(parts, i64_array([0] * len(high)), i64_array(high), i64_array([1] * len(high)))
            op.operands[index] = parts
    op.attributes["dimensions"] = i64_array(range(len(split)))


def _present(local: Local, split: list[int]) -> Any:
    """i1, of the operand's tile: whether an element is one of the whole array's."""
    shape, tile, dims = local.operand_shapes[0], local.operand_tile(0), local.operand_dims[0]
    kind, out = at.i32(tile), None
    for d in split:
        if shape[d] % local.mesh.count(dims[d]):
            left = hlo.subtract(at.splat(at.i32(), shape[d]), local.start(dims[d], tile[d]))
            inside = at.compare("LT", hlo.iota(kind, d), at.spread(left, tile))
            out = inside if out is None else hlo.and_(out, inside)
    return at.splat(at.i1(tile), "true") if out is None else out


def _flagged_reduce(op: Any, kinds: list[Any], present: Any) -> list[Any]:
    """The op on tiles, with the flag as its last operand; its results without the flag."""
    count = len(kinds)
    inputs, inits = list(op.operands)[:count], list(op.operands)[count:]
    flag = at.i1()
    new = ir.Operation.create(
        "stablehlo.reduce",
        results=[*kinds, at.i1(kinds[0].shape)],
        operands=[*inputs, present, *inits, at.splat(flag, "false")],
        attributes={"dimensions": op.attributes["dimensions"]},
        regions=1,
    )
    old = op.regions[0].blocks[0]
    scalars = [a.type for a in old.arguments]
    block = new.regions[0].blocks.append(*scalars[:count], flag, *scalars[count:], flag)
    arguments = list(block.arguments)
    left, has_left, right, has_right = arguments[:count], arguments[count], arguments[count + 1 : -1], arguments[-1]
    with ir.InsertionPoint(block):
        joined = _copied(old, [*left, *right])
        picked = [
            hlo.select(has_left, hlo.select(has_right, both, a), b)
            for both, a, b in zip(joined, left, right, strict=True)
        ]
        hlo.return_([*picked, hlo.or_(has_left, has_right)])
    return list(new.results)[:count]


def _copied(block: Any, arguments: list[Any]) -> list[Any]:
    """Copies the ops of ``block`` to the insertion point with ``arguments`` in place of its own; what it returns."""
    values = dict(zip(block.arguments, arguments, strict=True))
    *body, end = [operation(inner) for inner in block.operations]
    for inner in body:
        copy = operation(inner.clone())
        for index, operand in enumerate(inner.operands):
            copy.operands[index] = values[operand]
        values.update(zip(inner.results, copy.results, strict=True))
    return [values[v] for v in end.operands]


def bytes_of_parts(op: Any, rule: Rule, factors: dict[int, Axes], mesh: PrimeMesh) -> int:
    if not rule.self_completing:
        return 0
    parts = mesh.count(tuple(a for f, axes in factors.items() for a in axes if rule.factors[f].kind is Kind.REDUCTION))
    return sum(
        (parts - 1) * result_tile(rule, i, shape_of(r), factors, mesh) * item_bytes(r.type)
        for i, r in enumerate(op.results)
    )


define(
    "stablehlo.reduce",
    "reduce",
    reduce,
    localize_reduce,
    bytes_of_parts,
    note="dimensions that remain; reduced dimensions if the body is one binary op, such as add (partial results); "
    "with any other body the first reduced dimension, whose partial results are gathered and reduced again",
)
