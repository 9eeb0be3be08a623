"""Random manual regions with collectives, over all axes of the mesh or over some.

A region has two texts: the lines that each device runs on its tile, and the lines that compute the same result from the
whole array on one device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shardpass.sharding import AxisRef, Mesh, Sharding
from tools.fuzz.maker import Emitter, Maker, Unsuited
from tools.fuzz.programs import Node, in_sdy
from tools.stablehlo_text import array, body, fits, literal
from tools.values import Fact, Type

_Dims = tuple[tuple[AxisRef, ...], ...]


@dataclass(frozen=True, slots=True)
class _Region:
    """A tile of ``fact`` goes in, split along ``dim`` over the manual axis ``axis`` of ``parts`` devices."""

    make: Maker
    fact: Fact
    dim: int
    axis: str
    manual: tuple[str, ...]

    @property
    def mesh(self) -> Mesh:
        return self.make.mesh

    @property
    def parts(self) -> int:
        return dict(self.mesh.axes)[self.axis]

    @property
    def tile(self) -> Type:
        return self.divided(self.fact.type, self.dim)

    def divided(self, kind: Type, dim: int) -> Type:
        return Type(tuple(n // self.parts if d == dim else n for d, n in enumerate(kind.shape)), kind.element)

    def groups(self) -> str:
        index = [name for name, _ in self.mesh.axes].index(self.axis)
        rows = np.moveaxis(self.mesh.devices, index, -1).reshape(-1, self.parts)
        return f"replica_groups = dense<{rows.tolist()}> : tensor<{rows.shape[0]}x{self.parts}xi64>, {self.channel()}"

    def channel(self) -> str:
        return f"channel_handle = #stablehlo.channel_handle<handle = {self.make.rng.randint(1, 10**6)}, type = 1>"

    def sharding(self, dim: int | None, rank: int) -> str:
        """``dim`` over the axis, at times another one over an axis that is free."""
        dims: list[tuple[AxisRef, ...]] = [()] * rank
        if dim is not None:
            dims[dim] = (AxisRef(self.axis),)
        return str(Sharding.tiled(self.mesh, tuple(dims)))

    def inside(self, dims: _Dims) -> str:
        if len(self.manual) == len(self.mesh.axes):
            return "{manual}"
        return str(Sharding.tiled(self.mesh, dims, manual=tuple(map(AxisRef, self.manual))))


@dataclass(frozen=True, slots=True)
class _Work:
    """What a region does to ``%@t`` of ``tile``, the tile that comes out as ``%@u``, and what it is on whole arrays."""

    lines: tuple[str, ...]
    tile: Type
    whole: tuple[str, ...]
    result: Fact
    out: int | None  # the dimension of the result that is split over the axis


def region(make: Maker) -> None:
    axes = [name for name, _ in make.mesh.axes]
    rng = make.rng
    axis = rng.choice(axes)
    parts = dict(make.mesh.axes)[axis]

    def splits(fact: Fact) -> bool:
        return fact.type.count > 0 and any(n % parts == 0 for n in fact.type.shape)

    at = make.pick(lambda f: f.type.element in ("f32", "i32", "bf16", "i64") and f.bound < 2**20 and splits(f))
    fact = make.facts[at]
    dim = rng.choice([d for d, n in enumerate(fact.type.shape) if n % parts == 0])
    others = [name for name in axes if name != axis]
    manual = tuple(a for a in axes if a == axis or (rng.random() < 0.5 or not others))
    where = _Region(make, fact, dim, axis, manual)
    work = rng.choice(WORKS)(where)
    if work is None or not fits(fact.type.element, work.result.bound):
        raise Unsuited
    rank, out_rank = len(fact.type.shape), len(work.tile.shape)
    enter, leave = where.inside(((),) * rank), where.inside(((),) * out_rank)
    t, u = where.tile, work.tile
    note = ""
    if enter != "{manual}" and rng.random() < 0.5:
        note = f"unspecified_dims=[{','.join(map(str, range(rank)))}]"
    free = _free(where, t)
    said = _same("%@t", "%@i", t) if free is None else _annotated("Sharding", "%@t", "%@i", t, t, where.inside(free))
    lines = [
        _annotated("Sharding", "%@s", "$0", fact.type, fact.type, where.sharding(dim, rank), note),
        _annotated("SPMDFullToShardShape", "%@i", "%@s", fact.type, t, enter, note),
        said,
        *work.lines,
        _annotated("Sharding", "%@o", "%@u", u, u, leave),
        _annotated("SPMDShardToFullShape", "$r", "%@o", u, work.result.type, where.sharding(work.out, out_rank)),
    ]
    sdy = _in_sdy(where, work, free)
    make.append(Node("manual", (at,), (work.result,), lines=tuple(lines), whole=work.whole, sdy=sdy))


def _in_sdy(where: _Region, work: _Work, free: _Dims | None) -> tuple[str, ...]:
    """The region as one op."""
    t, u, fact, result = where.tile, work.tile, where.fact.type, work.result.type
    first = _same("%@t", "%@i", t)
    if free is not None:
        split = in_sdy(str(Sharding.tiled(where.mesh, free)), where.mesh, len(free))
        first = f'%@t = "sdy.sharding_constraint"(%@i) {{sharding = #sdy.sharding<{split}>}} : ({t}) -> {t}'

    def said(sharding: str, rank: int) -> str:
        return f"#sdy.sharding_per_value<[<{in_sdy(sharding, where.mesh, rank)}>]>"

    enter, leave = where.sharding(where.dim, len(fact.shape)), where.sharding(work.out, len(u.shape))
    axes = ", ".join(f'"{name}"' for name in where.manual)
    return (
        f'$r = "sdy.manual_computation"($0) ({{ ^bb0(%@i: {t}):',
        first,
        *work.lines,
        f'"sdy.return"(%@u) : ({u}) -> () }}) {{in_shardings = {said(enter, len(fact.shape))}, '
        f"out_shardings = {said(leave, len(u.shape))}, manual_axes = #sdy<manual_axes{{{axes}}}>}} "
        f": ({fact}) -> {result}",
    )


def _annotated(target: str, result: str, operand: str, takes: Type, gives: Type, said: str, note: str = "") -> str:
    return (
        f'{result} = "stablehlo.custom_call"({operand}) {{call_target_name = "{target}", backend_config = "{note}", '
        f'mhlo.sharding = "{said}"}} : ({takes}) -> {gives}'
    )


def _free(where: _Region, tile: Type) -> _Dims | None:
    """A split of the tile over the axes that the region leaves free; None for none."""
    free = [name for name, _ in where.mesh.axes if name not in where.manual]
    if not free or not tile.shape or where.make.rng.random() < 0.4:
        return None
    dims: list[tuple[AxisRef, ...]] = [()] * len(tile.shape)
    dims[where.make.rng.randrange(len(dims))] = tuple(map(AxisRef, free))
    return tuple(dims)


def _same(result: str, operand: str, kind: Type) -> str:
    return f'{result} = "stablehlo.optimization_barrier"({operand}) : ({kind}) -> {kind}'


# ---------------------------------------------------------------- what regions do


def _local(r: _Region) -> _Work:
    """Elementwise, and a turn of each tile along a dimension that is not split."""
    others = [d for d in range(len(r.fact.type.shape)) if d != r.dim and r.make.rng.random() < 0.5]

    def lines(kind: Type, start: str, end: str, own: str) -> tuple[str, ...]:
        turn = f"{{dimensions = {array(others)}}}"
        return (
            f'{own}n = "stablehlo.negate"({start}) : ({kind}) -> {kind}',
            f'{end} = "stablehlo.reverse"({own}n) {turn} : ({kind}) -> {kind}',
        )

    return _Work(
        lines(r.tile, "%@t", "%@u", "%@"), r.tile, lines(r.fact.type, "$0", "$r", "%@w"), r.fact, r.dim
    )  # fmt: skip


def _summed(r: _Region) -> tuple[Fact, tuple[str, ...]]:
    """The sum of the tiles, and the lines that compute it from the whole."""
    kind, n, d = r.fact.type, r.parts, r.dim
    apart = Type((*kind.shape[:d], n, kind.shape[d] // n, *kind.shape[d + 1 :]), kind.element)
    scalar = Type((), kind.element)
    lines = (
        f'%@p = "stablehlo.reshape"($0) : ({kind}) -> {apart}',
        f"%@z = stablehlo.constant dense<{literal(kind.element, 0)}> : {scalar}",
        f'$r = "stablehlo.reduce"(%@p, %@z) ({body(kind.element, "add")}) {{dimensions = {array([d])}}} : '
        f"({apart}, {scalar}) -> {r.tile}",
    )
    return replace(r.fact, type=r.tile, bound=r.fact.bound * n), lines


def _all_reduce(r: _Region) -> _Work:
    result, whole = _summed(r)
    line = (
        f'%@u = "stablehlo.all_reduce"(%@t) ({body(r.tile.element, "add")}) {{{r.groups()}, use_global_device_ids}} : '
        f"({r.tile}) -> {r.tile}"
    )
    return _Work((line,), r.tile, whole, result, None)


def _reduce_scatter(r: _Region) -> _Work | None:
    result, whole = _summed(r)
    along = [d for d, n in enumerate(r.tile.shape) if n % r.parts == 0 and n]
    if not along:
        return None
    dim = r.make.rng.choice(along)
    tile = r.divided(r.tile, dim)
    line = (
        f'%@u = "stablehlo.reduce_scatter"(%@t) ({body(r.tile.element, "add")}) {{{r.groups()}, '
        f"use_global_device_ids, scatter_dimension = {dim} : i64}} : ({r.tile}) -> {tile}"
    )
    return _Work((line,), tile, whole, result, dim)


def _all_gather(r: _Region) -> _Work:
    line = (
        f'%@u = "stablehlo.all_gather"(%@t) {{{r.groups()}, use_global_device_ids, all_gather_dim = {r.dim} : i64}} : '
        f"({r.tile}) -> {r.fact.type}"
    )
    return _Work((line,), r.fact.type, (_same("$r", "$0", r.fact.type),), r.fact, None)


def _all_to_all(r: _Region) -> _Work | None:
    others = [d for d, n in enumerate(r.fact.type.shape) if d != r.dim and n % r.parts == 0]
    if not others:
        return None
    dim = r.make.rng.choice(others)
    tile = r.divided(r.fact.type, dim)
    line = (
        f'%@u = "stablehlo.all_to_all"(%@t) {{{r.groups()}, split_dimension = {dim} : i64, '
        f"concat_dimension = {r.dim} : i64, split_count = {r.parts} : i64}} : ({r.tile}) -> {tile}"
    )
    return _Work((line,), tile, (_same("$r", "$0", r.fact.type),), r.fact, dim)


def _slice(r: _Region, result: str, low: int, high: int) -> tuple[str, Type]:
    shape = r.fact.type.shape
    starts = [low if d == r.dim else 0 for d in range(len(shape))]
    limits = [high if d == r.dim else n for d, n in enumerate(shape)]
    kind = Type(tuple(b - a for a, b in zip(starts, limits, strict=True)), r.fact.type.element)
    said = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array([1] * len(shape))}"
    return f'{result} = "stablehlo.slice"($0) {{{said}}} : ({r.fact.type}) -> {kind}', kind


def _permute(r: _Region) -> _Work:
    """Each tile goes to the next device of the ring."""
    index = [name for name, _ in r.mesh.axes].index(r.axis)
    devices = r.mesh.devices
    pairs = np.stack([devices.reshape(-1), np.roll(devices, -1, index).reshape(-1)], 1).tolist()
    line = (
        f'%@u = "stablehlo.collective_permute"(%@t) {{source_target_pairs = dense<{pairs}> : '
        f"tensor<{len(pairs)}x2xi64>, {r.channel()}}} : ({r.tile}) -> {r.tile}"
    )
    size, tile = r.fact.type.shape[r.dim], r.tile.shape[r.dim]
    (last, a), (first, b) = _slice(r, "%@l", size - tile, size), _slice(r, "%@f", 0, size - tile)
    joined = f'$r = "stablehlo.concatenate"(%@l, %@f) {{dimension = {r.dim} : i64}} : ({a}, {b}) -> {r.fact.type}'
    return _Work((line,), r.tile, (last, first, joined), r.fact, r.dim)


def _numbered(r: _Region) -> _Work | None:
    """Each tile and the place of its device on the axis (``lax.axis_index``)."""
    if r.mesh.device_ids is not None:
        return None
    index = [name for name, _ in r.mesh.axes].index(r.axis)
    step = int(np.prod([n for _, n in r.mesh.axes[index + 1 :]], dtype=int))
    s, e, tile, whole = "tensor<ui32>", r.fact.type.element, r.tile, r.fact.type
    scalar = Type((), e)
    lines = (
        f'%@d = "stablehlo.partition_id"() : () -> {s}',
        f"%@c = stablehlo.constant dense<{step}> : {s}",
        f"%@k = stablehlo.constant dense<{r.parts}> : {s}",
        f"%@q = stablehlo.divide %@d, %@c : {s}",
        f"%@m = stablehlo.remainder %@q, %@k : {s}",
        f"%@e = stablehlo.convert %@m : ({s}) -> {scalar}",
        f"%@b = stablehlo.broadcast_in_dim %@e, dims = [] : ({scalar}) -> {tile}",
        f"%@u = stablehlo.add %@t, %@b : {tile}",
    )
    i = Type(whole.shape, "i32")
    same = (
        f"%@i = stablehlo.iota dim = {r.dim} : {i}",
        f"%@n = stablehlo.constant dense<{tile.shape[r.dim]}> : {i}",
        f"%@q = stablehlo.divide %@i, %@n : {i}",
        f"%@e = stablehlo.convert %@q : ({i}) -> {whole}",
        f"$r = stablehlo.add $0, %@e : {whole}",
    )
    return _Work(lines, tile, same, replace(r.fact, bound=r.fact.bound + r.parts), r.dim)


WORKS: tuple[Callable[[_Region], _Work | None], ...] = (
    _local, _all_reduce, _reduce_scatter, _all_gather, _all_to_all, _permute, _numbered,
)  # fmt: skip
EMITTERS: dict[Emitter, int] = {region: 6}
