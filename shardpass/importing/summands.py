"""A value as the list of its summands: an array with one dimension more, over which it is to be summed.

Problem. A partial sum over mesh axes of n devices has no array of its own in a program of whole arrays. Its summands
have: an array ``[n, ...]`` whose dimension 0 the axes split. What the devices hold is the same, and every op of the
program says again what it does.

``stack(v)`` gives such an array for ``v``, whose sum over dimension 0 is ``v``. Cases, the first that fits:

1. ``v`` is ``reduce(add, s, 0)`` that this import made of n summands ``s`` (an argument, or what leaves a manual
   region): ``s``.
2. ``v`` is a constraint that leaves a partial sum: the summands of its operand, constrained likewise.
3. ``v`` is a dot_general with a contracting dimension of k * n elements: the dimension becomes [n, k], and n a batch
   dimension. The summands are what the devices have before their sums are joined.

       [8, 16] x [16, 4] over 2 devices  ->  batched [2: 8, 8] x [2: 8, 4] -> [2, 8, 4]

4. ``v`` is a sum over a dimension of k * n elements: the dimension becomes [n, k], and k is summed.
5. ``v`` is a negation, a transpose or a conversion between floats of a value of cases 1 to 6: the op on the summands.
   ``v`` is a sum or a difference of which one operand is of these cases: the op on the summands of both.
6. ``v`` is zero: zeros.
7. Otherwise the first summand is ``v`` and the others are zero: a pad. Nothing is wrong about that, but ``v`` itself
   must be known, so its own sum is not put off.

In cases 3 and 4 ``v`` becomes the sum of the summands for all that uses it, so that nothing is computed twice.

State: ``known``, (value, n) -> summands. Cost: O(ops of the chains of case 5).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.ir.annotations import CONSTRAINT, SHARDING, custom_call_target, get_text, make_custom_call
from shardpass.ir.tensors import i64_array, ints, operation, retype, shape_of, splat
from shardpass.ops.reducers import combiner_of, is_identity
from shardpass.ops.tiles.summing import reduced_sum, zero_text
from shardpass.program.manual_regions import marked_scope
from shardpass.sharding import Sharding, parse_sharding

DEEPEST = 64  # ops that a chain of case 5 may have

LINEAR = ("stablehlo.add", "stablehlo.subtract", "stablehlo.negate", "stablehlo.transpose", "stablehlo.convert")


def stacked_sharding(said: Sharding) -> Sharding:
    """The sharding of the summands of a value that ``said`` says to be a partial sum."""
    assert said.mesh is not None
    return Sharding.tiled(said.mesh, (said.unreduced, *said.dims), manual=said.manual)


class Summands:
    """What is known of the summands of values, for one import."""

    def __init__(self) -> None:
        self.known: dict[tuple[Any, int], Any] = {}

    def total(self, summands: Any) -> Any:
        """The sum, at the current insertion point; asked for its summands again it gives these."""
        value = reduced_sum(summands, [0])
        self.known[value, shape_of(summands)[0]] = summands
        return value

    def stack(self, value: Any, count: int) -> Any:
        """The summands of ``value``, ``count`` of them; built behind what makes it."""
        if self._splits(value, count, 0):
            return self._exact(value, count)
        return self._first_alone(value, count)

    def _first_alone(self, value: Any, count: int) -> Any:
        """Case 7, at the current insertion point."""
        shape = shape_of(value)
        zero = splat(retype(value.type, ()), zero_text(value.type.element_type))
        one = hlo.reshape(retype(value.type, (1, *shape)), value)
        none, high = i64_array([0] * (len(shape) + 1)), i64_array([count - 1] + [0] * len(shape))
        return hlo.pad(one, zero, none, high, none)

    # ---------------------------------------------------------------- cases 1 to 6

    def _splits(self, value: Any, count: int, depth: int) -> bool:
        """Whether ``value`` is of one of the cases 1 to 6."""
        if (value, count) in self.known:
            return True
        if isinstance(value.owner, ir.Block) or depth > DEEPEST:
            return False
        op = operation(value.owner)
        if op.name == "stablehlo.dot_general":
            return _contraction(op, count) is not None
        if op.name == "stablehlo.reduce":
            return _summed_dim(op, count) is not None
        if op.name == "stablehlo.constant":
            return is_identity(value, "add")
        if _partial(op) is not None or op.name in LINEAR[2:]:
            return _may_wait(op) and self._splits(op.operands[0], count, depth + 1)
        if op.name in LINEAR:
            return any(self._splits(operand, count, depth + 1) for operand in op.operands)
        return False

    def _exact(self, value: Any, count: int) -> Any:
        key = value, count
        if key not in self.known:
            op = operation(value.owner)
            with ir.InsertionPoint.after(op), op.location:
                self.known[key] = self._built(op, count)
            if op.name in ("stablehlo.dot_general", "stablehlo.reduce"):
                made = operation(self.known[key].owner)
                with ir.InsertionPoint.after(made), op.location:
                    value.replace_all_uses_with(self.total(self.known[key]))
        return self.known[key]

    def _built(self, op: Any, count: int) -> Any:
        result = op.results[0]
        kind = retype(result.type, (count, *shape_of(result)))
        if op.name == "stablehlo.dot_general":
            return _batched_dot(op, count, kind)
        if op.name == "stablehlo.reduce":
            return _partly_summed(op, count)
        if op.name == "stablehlo.constant":
            return splat(kind, zero_text(kind.element_type))
        said = _partial(op)
        operands = [self.stack(operand, count) for operand in op.operands]
        if said is not None:
            text = ir.StringAttr.get(str(stacked_sharding(said)))
            return make_custom_call(CONSTRAINT, operands[0], kind, {SHARDING: text})
        if op.name == "stablehlo.transpose":
            order = ints(op.attributes["permutation"])
            return hlo.transpose(operands[0], i64_array([0, *[d + 1 for d in order]]))
        return ir.Operation.create(op.name, results=[kind], operands=operands).results[0]


def _partial(op: Any) -> Sharding | None:
    """What a constraint says that leaves a partial sum; None of any other op."""
    text = get_text(op, SHARDING) if custom_call_target(op) == CONSTRAINT else None
    if text is None or "unreduced" not in text or marked_scope(op) is not None:
        return None
    said = parse_sharding(text)
    return said if isinstance(said, Sharding) and said.unreduced and said.mesh is not None else None


def _may_wait(op: Any) -> bool:
    """Whether a sum may be taken after ``op``: not where it rounds to integers or booleans first."""
    kinds = [value.type.element_type for value in (*op.operands, *op.results)]
    return op.name != "stablehlo.convert" or all(isinstance(kind, ir.FloatType) for kind in kinds)


def _contraction(op: Any, count: int) -> int | None:
    """Which of the contracting dimensions can be cut into ``count`` parts."""
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    shape = shape_of(op.operands[0])
    sizes = [shape[dim] for dim in numbers.lhs_contracting_dimensions]
    return next((index for index, size in enumerate(sizes) if size % count == 0 and size >= count), None)


def _batched_dot(op: Any, count: int, kind: Any) -> Any:
    numbers = hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    which = _contraction(op, count)
    assert which is not None
    sides = (
        (op.operands[0], list(numbers.lhs_batching_dimensions), list(numbers.lhs_contracting_dimensions)),
        (op.operands[1], list(numbers.rhs_batching_dimensions), list(numbers.rhs_contracting_dimensions)),
    )
    operands, batching, contracting = [], [], []
    for value, batch, contracted in sides:
        cut = contracted[which]
        operands.append(_cut(value, cut, count))
        move: Callable[[int], int] = lambda dim, cut=cut: dim + (dim >= cut)  # type: ignore[misc] # noqa: E731
        batching.append([cut, *map(move, batch)])
        contracting.append([move(dim) for dim in contracted])
    made = hlo.DotDimensionNumbers.get(batching[0], batching[1], contracting[0], contracting[1])
    attributes = {name: op.attributes[name] for name in op.attributes if name in ("precision_config", "algorithm")}
    return ir.Operation.create(
        op.name, results=[kind], operands=operands, attributes={**attributes, "dot_dimension_numbers": made}
    ).results[0]


def _cut(value: Any, dim: int, count: int) -> Any:
    """``value`` with dimension ``dim`` as [count, rest]."""
    shape = shape_of(value)
    return hlo.reshape(retype(value.type, (*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :])), value)


def _summed_dim(op: Any, count: int) -> int | None:
    """The dimension that a reduce adds up from zero and that can be cut into ``count`` parts."""
    if len(op.operands) != 2 or combiner_of(op) != "add" or not is_identity(op.operands[1], "add"):
        return None
    shape = shape_of(op.operands[0])
    dims: Sequence[int] = ints(op.attributes["dimensions"])
    return next((dim for dim in dims if shape[dim] % count == 0 and shape[dim] >= count), None)


def _partly_summed(op: Any, count: int) -> Any:
    cut = _summed_dim(op, count)
    assert cut is not None
    dims = ints(op.attributes["dimensions"])
    parts = _cut(op.operands[0], cut, count)
    summed = reduced_sum(parts, [dim + (dim >= cut) for dim in dims])
    place = cut - sum(dim < cut for dim in dims)
    rank = len(shape_of(summed))
    order = [place, *[dim for dim in range(rank) if dim != place]]
    return summed if place == 0 else hlo.transpose(summed, i64_array(order))
