"""Represent a value as its summands: an array with one more dimension, over which the value is the sum.

Problem. A partial sum over mesh axes of n devices has no array of its own in a program of whole arrays. Its summands
have: an array ``[n, ...]`` whose dimension 0 the axes split. JAX defines the summand of each device, which
``addressable_data`` shows: the sum over the elements on that device.

``stack(v, s)`` gives the summands of ``v`` over the axes of ``s.unreduced``. Cases, the first that fits:

1. The summands are known: ``v`` is the sum of an argument, or of a manual region's result.
2. ``v`` is a constraint with these partial sums: the summands of its operand.
3. ``v`` is a dot_general, a reduce or a scatter that adds up along dimensions which the axes split: each device
   computes the op on its tiles. That is a manual region over the axes, which the summands leave:

       [8, 16] x [16, 4], 16 split over y=2  ->  in the region over y: [8, 8] x [8, 4] -> [8, 4];  outside: [2, 8, 4]

   Where a dimension is split by other axes before those, the region is manual over these too, and their sum is formed
   outside. Where operands are not annotated, the axes split the first dimension that they divide.
4. ``v`` is an op that is linear in a partial sum (``summand_ops``): the op on the summands, in the region.
5. ``v`` is a loop's result that begins as a partial sum, or a branch's that is one in some branch: the loop carries the
   summands, the branches return them.
6. Otherwise ``v`` is a whole array, and each device keeps its part of it (``owned_parts``).

In case 3 all users of ``v`` use the sum of the summands, so that nothing is computed twice.

State: ``known``, (value, axes) -> summands; ``partial``, (value, axes) -> whether the value is of cases 1 to 5. Cost:
O(ops of the chains of cases 2 to 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as hlo

from shardpass.importing.known_shardings import Axes, KnownShardings, rule_of
from shardpass.importing.owned_parts import count_of, owned_parts, owning_axes
from shardpass.importing.summand_ops import BILINEAR, SUMMING, keeps_sums, summand_places
from shardpass.ir.annotations import (
    ANNOTATIONS,
    CONSTRAINT,
    MANUAL,
    REPLICATED,
    SHARDING,
    TO_FULL,
    TO_SHARD,
    UNSPECIFIED,
    custom_call_target,
    make_custom_call,
    replicated_over,
)
from shardpass.ir.blocks import terminator
from shardpass.ir.tensors import i64_array, is_ranked, operation, retype, shape_of
from shardpass.ir.walk import BRANCHES
from shardpass.ops.linear import LINEAR
from shardpass.ops.splits.factors import Kind, Rule
from shardpass.ops.tiles.boxes import grow, is_zero
from shardpass.ops.tiles.summing import reduced_sum
from shardpass.program.manual_regions import marked_scope, set_scope
from shardpass.sharding import Sharding

DEEPEST = 64  # ops that a chain of cases 2 to 5 may have


def stacked_sharding(partial: Sharding) -> Sharding:
    """Return the sharding of the summands of a value whose sharding ``partial`` is a partial sum."""
    assert partial.mesh is not None
    return Sharding.tiled(partial.mesh, (partial.unreduced, *partial.dims), manual=partial.manual)


class Summands:
    """Builds the summands of values, once each. ``shardings``: the shardings known before propagation.

    Callers give shardings of partial sums with the axes of its mesh (``KnownShardings.annotation``).
    """

    def __init__(self, shardings: KnownShardings) -> None:
        self.shardings = shardings
        self.known: dict[tuple[Any, Axes], Any] = {}
        self.partial: dict[tuple[Any, Axes], bool] = {}

    def total(self, summands: Any, partial: Sharding) -> Any:
        """Build the sum of ``summands`` at the insertion point, and cache its summands."""
        value = reduced_sum(summands, [0])
        self.known[value, partial.unreduced] = summands
        self.shardings.known[value] = partial
        self.partial.clear()
        return value

    def stack(self, value: Any, partial: Sharding) -> Any:
        """Return the summands of ``value`` for the sharding ``partial``, built after the op that defines ``value``."""
        key = value, partial.unreduced
        if key not in self.known:
            summands = self._stack(value, partial)
            self.known.setdefault(key, summands)
        return self.known[key]

    def _stack(self, value: Any, partial: Sharding) -> Any:
        if not isinstance(value.owner, ir.Block):
            op = operation(value.owner)
            own = self._partial(op)
            if own is not None and own.unreduced == partial.unreduced:
                return self.stack(op.operands[0], own)
            with op.location:
                if (local := self._local(op, partial.unreduced)) is not None:
                    return self._computed(op, local, partial)
                if self._splits(value, partial.unreduced):
                    return self._carried(op, value, partial)
        return self._parts_of(value, partial)

    # ---------------------------------------------------------------- which case

    def _partial(self, op: Any) -> Sharding | None:
        """Return the partial sum's sharding in a constraint; None for any other op."""
        if custom_call_target(op) != CONSTRAINT or marked_scope(op) is not None:
            return None
        sharding = self.shardings.annotation(op.attributes, op.results[0])
        return sharding if sharding is not None and sharding.unreduced and sharding.reduction == "sum" else None

    def _splits(self, value: Any, axes: Axes, depth: int = 0) -> bool:
        """Return whether ``value`` can be computed as summands over ``axes``, by cases 1 to 5."""
        if (value, axes) in self.known:
            return True
        if isinstance(value.owner, ir.Block) or depth > DEEPEST:
            return False
        op = operation(value.owner)
        if marked_scope(op) is not None:
            return False
        if (own := self._partial(op)) is not None:
            return own.unreduced == axes
        key = value, axes
        if key not in self.partial:
            self.partial[key] = self._splits_by(op, value, axes, depth + 1)
        return self.partial[key]

    def _splits_by(self, op: Any, value: Any, axes: Axes, depth: int) -> bool:
        if op.name == "stablehlo.while":
            return self._splits(op.operands[value.result_number], axes, depth)
        if op.name in BRANCHES:
            return any(
                self._splits(terminator(block).operands[value.result_number], axes, depth) for block in _blocks(op)
            )
        return _plain(op) and keeps_sums(op) and self._local(op, axes, depth) is not None

    def _local(self, op: Any, axes: Axes, depth: int = 0) -> _Local | None:
        """Determine how each device computes its summand of ``op``'s result; None unless case 3 or 4 applies."""
        if not _plain(op) or marked_scope(op) is not None or self.shardings.mesh is None:
            return None
        summed = [place for place in summand_places(op) if self._splits(op.operands[place], axes, depth)]
        if op.name in BILINEAR and summed:
            return _Local(axes, (summed[0],))
        if op.name in LINEAR:
            return _Local(axes, summand_places(op)) if summed else None
        rule = rule_of(op) if op.name in SUMMING else None
        if rule is None or rule.combiner != "add":
            return None
        split = self._split_reductions(op, rule, axes)
        over = {axis for cut in split.values() for axis in cut}
        rest = tuple(axis for axis in axes if axis not in over)
        places = () if op.name in BILINEAR else summand_places(op)
        added = SUMMING[op.name]
        covered = not rest or (added is not None and self._splits(op.operands[added], rest, depth))
        return _Local(axes, places, rule, split) if covered or summed else None

    def _split_reductions(self, op: Any, rule: Rule, axes: Axes) -> dict[int, Axes]:
        """Return the axes that split each dimension that ``op`` sums over: ``axes`` and axes major to them."""
        mesh = self.shardings.mesh
        assert mesh is not None
        split = {}
        for factor, cut in self.shardings.of_factors(op, rule, Kind.REDUCTION).items():
            last = max((place for place, axis in enumerate(cut) if axis in axes), default=-1)
            if last >= 0 and rule.factors[factor].size % count_of(mesh, cut) == 0:
                split[factor] = cut[: last + 1]
        known = any(self.shardings.of(operand) is not None for operand in op.operands)
        if not split and not known:
            count = count_of(mesh, axes)
            sizes = ((index, each.size) for index, each in enumerate(rule.factors) if each.kind is Kind.REDUCTION)
            split = {index: axes for index, size in list(sizes) if size and size % count == 0}
            split = dict(list(split.items())[:1])
        return split

    # ---------------------------------------------------------------- cases 3 and 4

    def _computed(self, op: Any, local: _Local, partial: Sharding) -> Any:
        """Build the op on tiles, in a region that is manual over the axes."""
        mesh = self.shardings.mesh
        assert mesh is not None
        result = op.results[0]
        more = dict.fromkeys(axis for cut in local.split.values() for axis in cut if axis not in local.axes)
        order = {name: place for place, name in enumerate(mesh.names)}
        axes = tuple(sorted((*local.axes, *more), key=lambda axis: order.get(axis.name, 0)))
        tiles = [self._tile(op, place, local, axes) for place in range(len(op.operands))]
        with ir.InsertionPoint.after(op):
            copy = op.clone()
            for name in [name for name in ANNOTATIONS if name in copy.attributes]:
                del copy.attributes[name]
            for place, tile in enumerate(tiles):
                copy.operands[place] = tile
            set_scope(copy, self._scope(axes))
            dims = partial.dims if len(partial.dims) == len(shape_of(result)) else ((),) * len(shape_of(result))
            stacked = self._left(copy.results[0], Sharding.tiled(mesh, dims, unreduced=axes))
            last = operation(stacked.owner)
        if axes != local.axes:
            with ir.InsertionPoint.after(last):
                stacked = self._summed_over(stacked, axes, local.axes, dims)
                last = operation(stacked.owner)
        self.known[result, local.axes] = stacked
        if op.name in SUMMING:
            with ir.InsertionPoint.after(last):
                total = self.total(stacked, partial)
            result.replace_all_uses_with(total)
        return stacked

    def _tile(self, op: Any, place: int, local: _Local, axes: Axes) -> Any:
        """Build operand ``place`` of ``op`` inside of the region: its tile, or its summand."""
        mesh, value = self.shardings.mesh, op.operands[place]
        assert mesh is not None
        if not is_ranked(value):
            return value
        factors = local.rule.operands[place] if local.rule is not None else ((),) * len(shape_of(value))
        cuts = [local.split.get(dim[0], ()) if len(dim) == 1 else () for dim in factors]
        cut = {axis for split in cuts for axis in split}
        rest = tuple(axis for axis in axes if axis not in cut)
        known = self.shardings.of(value)
        dims_now = known.dims if known is not None else ((),) * len(shape_of(value))
        dims = [
            split + tuple(axis for axis in own if axis not in axes) for split, own in zip(cuts, dims_now, strict=True)
        ]
        open_dims = [] if known is not None else [dim for dim, split in enumerate(cuts) if not split]
        if place not in local.places or not rest or _is_zero(value):
            with _in_block_of(op, value):
                return self._entered(value, dims, cuts, open_dims, axes)
        whole = Sharding.tiled(
            mesh, [tuple(axis for axis in own if axis not in rest) for own in dims_now], unreduced=rest
        )
        stacked = self.stack(value, whole) if self._splits(value, rest) else self._parts_of(value, whole)
        with _in_block_of(op, stacked):
            tile = self._entered(stacked, [rest, *dims], [rest, *cuts], [dim + 1 for dim in open_dims], axes)
            return self._marked(hlo.reshape(retype(tile.type, shape_of(tile)[1:]), tile), axes)

    def _entered(
        self, value: Any, dims: Sequence[Axes], cuts: Sequence[Axes], open_dims: Sequence[int], axes: Axes
    ) -> Any:
        """Build the tile of ``value`` in the region.

        ``dims`` split the value, ``cuts`` are the manual axes of each dimension. Of ``open_dims`` nothing is known, but
        that no axis of the region splits them.
        """
        mesh = self.shardings.mesh
        assert mesh is not None
        notes = {UNSPECIFIED: i64_array(open_dims)} if open_dims else {}
        whole = {SHARDING: ir.StringAttr.get(str(Sharding.tiled(mesh, dims))), **notes}
        used = {axis for own in dims for axis in own}
        if open_dims and (left := tuple(axis for axis in axes if axis not in used)):
            whole[REPLICATED] = replicated_over(mesh, left)
        constrained = make_custom_call(CONSTRAINT, value, value.type, whole)
        shape = [size // count_of(mesh, cut) for size, cut in zip(shape_of(value), cuts, strict=True)]
        kind = retype(value.type, shape)
        if self._scope(axes) == MANUAL:
            attributes = {SHARDING: ir.StringAttr.get(MANUAL)}
        else:
            free = [tuple(axis for axis in own if axis not in axes) for own in dims]
            attributes = {SHARDING: ir.StringAttr.get(str(Sharding.tiled(mesh, free, manual=axes))), **notes}
        return self._marked(make_custom_call(TO_SHARD, constrained, kind, attributes), axes)

    def _left(self, summand: Any, partial: Sharding) -> Any:
        """Build the summands outside of the region that computes ``summand``, at the insertion point."""
        assert partial.mesh is not None
        axes = partial.unreduced
        one = self._marked(hlo.reshape(retype(summand.type, (1, *shape_of(summand))), summand), axes)
        kind = retype(summand.type, (count_of(partial.mesh, axes), *shape_of(summand)))
        free = Sharding.tiled(
            partial.mesh, [tuple(axis for axis in dim if axis not in axes) for dim in partial.dims], unreduced=axes
        )
        return make_custom_call(TO_FULL, one, kind, {SHARDING: ir.StringAttr.get(str(stacked_sharding(free)))})

    def _summed_over(self, stacked: Any, axes: Axes, wanted: Axes, dims: Sequence[Axes]) -> Any:
        """Build the summands over ``wanted`` by adding summands over ``axes``, a superset, at the insertion point."""
        mesh = self.shardings.mesh
        assert mesh is not None
        counts = [count_of(mesh, (axis,)) for axis in axes]
        shape = shape_of(stacked)[1:]
        apart = hlo.reshape(retype(stacked.type, (*counts, *shape)), stacked)
        summed = reduced_sum(apart, [place for place, axis in enumerate(axes) if axis not in wanted])
        joined = hlo.reshape(retype(stacked.type, (count_of(mesh, wanted), *shape)), summed)
        text = ir.StringAttr.get(str(stacked_sharding(Sharding.tiled(mesh, dims, unreduced=wanted))))
        return make_custom_call(CONSTRAINT, joined, joined.type, {SHARDING: text})

    def _scope(self, axes: Axes) -> str:
        mesh = self.shardings.mesh
        assert mesh is not None
        free = mesh.size > count_of(mesh, axes)
        return str(Sharding.tiled(mesh, (), manual=axes)) if free else MANUAL

    def _marked(self, value: Any, axes: Axes) -> Any:
        set_scope(operation(value.owner), self._scope(axes))
        return value

    # ---------------------------------------------------------------- case 5

    def _carried(self, op: Any, value: Any, partial: Sharding) -> Any:
        """Change a loop's or a branch's result, in place, to an array of summands."""
        place = value.result_number
        kind = retype(value.type, (count_of(partial.mesh, partial.unreduced), *shape_of(value)))  # type: ignore[arg-type]
        if op.name == "stablehlo.while":
            op.operands[place] = self.stack(op.operands[place], partial)
            for block in _blocks(op):
                argument = block.arguments[place]
                argument.set_type(kind)
                with ir.InsertionPoint.at_block_begin(block):
                    self._replaced(argument, partial)
            blocks = [op.regions[1].blocks[0]]
        else:
            blocks = _blocks(op)
        for block in blocks:
            end = terminator(block)
            with ir.InsertionPoint(end):
                end.operands[place] = self.stack(end.operands[place], partial)
        value.set_type(kind)
        with ir.InsertionPoint.after(op):
            self._replaced(value, partial)
        return value

    def _replaced(self, summands: Any, partial: Sharding) -> None:
        """Replace uses of ``summands`` as an ordinary value by their sum, built at the insertion point."""
        total = self.total(summands, partial)
        summands.replace_all_uses_except(total, [operation(total.owner)])

    # ---------------------------------------------------------------- case 6

    def _parts_of(self, value: Any, partial: Sharding) -> Any:
        """Build summands of a whole array, or of a sum over fewer axes, by keeping each device's own part."""
        mesh, axes = partial.mesh, partial.unreduced
        assert mesh is not None
        count, shape = count_of(mesh, axes), shape_of(value)
        known = self.shardings.of(value)
        if known is None or known.mesh != mesh:
            known = Sharding.tiled(mesh, ((),) * len(shape))
        summed, whole = tuple(axis for axis in known.unreduced if axis in axes), value
        if summed and self._splits(value, known.unreduced):
            whole = self.stack(value, known)
            if summed != known.unreduced:
                with _behind(whole):
                    whole = self._summed_over(whole, known.unreduced, summed, known.dims)
        else:
            summed = ()
        wanted = partial.dims or ((),) * len(shape)
        split = any(owning_axes(*row, axes) for row in zip(known.dims, wanted, strict=True))
        with _behind(whole):
            if not split and not summed:
                return _first_alone(value, count)
            owned = owned_parts(whole, mesh, known.dims, wanted, summed, axes)
            text = ir.StringAttr.get(str(stacked_sharding(partial)))
            return make_custom_call(CONSTRAINT, owned, owned.type, {SHARDING: text})


@dataclass(frozen=True, slots=True)
class _Local:
    """A summing op as a region in which each device computes its summand.

    ``places``: the operands that are summands too.

    ``split``: the axes, manual in the region, that split the factors which a summing op of ``rule`` adds up along.
    """

    axes: Axes
    places: tuple[int, ...]
    rule: Rule | None = None
    split: Mapping[int, Axes] = field(default_factory=dict)


def _plain(op: Any) -> bool:
    return len(op.results) == 1 and is_ranked(op.results[0]) and op.name in (*LINEAR, *BILINEAR, *SUMMING)


def _blocks(op: Any) -> list[Any]:
    return [block for region in op.regions for block in region.blocks]


def _behind(value: Any) -> Any:
    """Return the insertion point after the op that defines ``value``."""
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(operation(value.owner))


def _in_block_of(op: Any, value: Any) -> Any:
    """Return the insertion point after ``value``'s definition, or, if ``op`` is nested deeper, at its block's start."""
    own = value.owner if isinstance(value.owner, ir.Block) else operation(value.owner).block
    return _behind(value) if own == op.block else ir.InsertionPoint.at_block_begin(op.block)


def _is_zero(value: Any) -> bool:
    while not isinstance(value.owner, ir.Block):
        op = operation(value.owner)
        if custom_call_target(op) != CONSTRAINT and op.name != "stablehlo.broadcast_in_dim":
            break
        value = op.operands[0]
    return is_zero(value)


def _first_alone(value: Any, count: int) -> Any:
    """Build summands at the insertion point: ``value`` as the first, zeros as the others."""
    return grow(hlo.reshape(retype(value.type, (1, *shape_of(value))), value), 0, 0, count - 1)
