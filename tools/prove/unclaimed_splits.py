"""Splits that need no communication and give the right tiles, found by trying all of them.

A split of this kind that no factor of the rule stands for is *missing* from the rule.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.annotations import main_of
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import i64_array, ints, retype
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule, unproject
from shardpass.runtime.interpreter import evaluate
from tools.prove.findings import Findings, agree, sides_of, the_op
from tools.prove.rule_samples.sample import Sample
from tools.values import Array

COMBINERS = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}

LARGEST_SEARCH = 600

Way = tuple[int | None, ...]  # for each operand, then each result, the dimension that is split


def search(sample: Sample, rule: Rule | None, whole: Sequence[Array], found: Findings) -> None:
    """Every way to split over two devices that is right with no communication and is no factor of the rule."""
    claimed = claims(sample, rule)
    kinds = [*sample.operands, *sample.results]
    choices = [[None, *(d for d, n in enumerate(k.shape) if n % 2 == 0 and n)] for k in kinds]
    if prod(map(len, choices)) > LARGEST_SEARCH:
        return
    arrays = sample.arrays()
    for way in itertools.product(*choices):
        inputs, outputs = way[: len(sample.operands)], way[len(sample.operands) :]
        if not any(d is not None for d in way):
            continue
        locals_ = [run_local(sample, way, tiles) for tiles in _tiles(arrays, inputs)]
        one, other = locals_
        if one is None or other is None:
            continue
        combiner = _right(one, other, whole, outputs)
        if combiner is None or (way, combiner) in claimed:
            continue
        found.missing.append(say(sample, way, combiner))


def claims(sample: Sample, rule: Rule | None) -> set[tuple[Way, str]]:
    """The ways, over one axis of two devices, that the rule's factors stand for."""
    out: set[tuple[Way, str]] = set()
    if rule is None:
        return out
    sides = sides_of(sample, rule)
    keep = [i for i in range(len(sides)) if not len(sample.operands) <= i < len(sample.operands) + len(sample.more)]
    free = [i for i, f in enumerate(rule.factors) if f.kind is not Kind.REPLICATED]
    sets: list[tuple[int, ...]] = [(index,) for index in free]
    if rule.independent:  # operands that have nothing to do with each other share the axis: one factor of each
        apart = [[f for f in free if any(f in dim for dim in side)] for side in rule.operands]
        sets = [tuple(f for f in row if f is not None) for row in itertools.product(*([None, *fs] for fs in apart))]
    for chosen in filter(None, sets):
        axes: dict[int, Axes] = dict.fromkeys(chosen, (0,))
        dims: list[DimAxes] = [unproject(rule, s.dim_map, s.shape, axes, (2,)) for s in sides]
        way = tuple(next((d for d, split in enumerate(dims[i]) if split), None) for i in keep)
        reduces = any(rule.factors[f].kind is Kind.REDUCTION for f in chosen)
        out.add((way, rule.combiner if reduces else ""))
    return out


def _tiles(arrays: list[Array], dims: Way) -> Iterator[list[Array]]:
    for device in (0, 1):
        yield [a if d is None else np.split(a, 2, d)[device] for a, d in zip(arrays, dims, strict=True)]


def _right(one: Sequence[Array], other: Sequence[Array], whole: Sequence[Array], dims: Way) -> str | None:
    """ "" where the local results are tiles of ``whole``, a combiner where they are partial, None where neither."""
    pairs = list(zip(one, other, whole, dims, strict=True))
    tiles = [(want, want) if d is None else tuple(np.split(want, 2, d)) for _, _, want, d in pairs]
    if all(agree(a, s, True) and agree(b, t, True) for (a, b, _, _), (s, t) in zip(pairs, tiles, strict=True)):
        return ""
    if len(pairs) == 1 and dims[0] is None and whole[0].dtype.kind in "iuf":
        for name, combine in COMBINERS.items():
            if agree(combine(one[0], other[0]), whole[0], True):
                return name
    return None


def run_local(sample: Sample, way: Way, tiles: list[Array]) -> list[Array] | None:
    """The op at local shapes in the reference interpreter; None where it is not valid there."""
    module = parse_module(sample.text())
    with module.context, ir.Location.unknown():
        main, op = main_of(module), the_op(module, sample)
        block = main.regions[0].blocks[0]
        for argument, dim in zip(block.arguments, way, strict=False):
            argument.set_type(_halved(argument.type, dim))
        before = [tuple(op.operands[0].type.shape)] if len(op.operands) else []
        for result, dim in zip(op.results, way[len(sample.operands) :], strict=True):
            result.set_type(_halved(result.type, dim))
        if sample.op in ADJUST:
            ADJUST[sample.op](op, way, before)
        kinds = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in op.results])
        main.attributes["function_type"] = ir.TypeAttr.get(kinds)
        if len(op.results) == 1 and sample.op == "stablehlo.constant":
            return None  # a constant has no shape but its own
        try:
            module.operation.verify()
        except ir.MLIRError:
            return None
        text = module.operation.get_asm(binary=True)
    return evaluate(text, [np.ascontiguousarray(t) for t in tiles])


def _halved(kind: Any, dim: int | None) -> Any:
    shape = list(kind.shape)
    if dim is not None:
        shape[dim] //= 2
    return retype(kind, shape)


def _slice(op: Any, way: Way, _: Any) -> None:
    """A dimension that is taken whole is taken whole of the tile."""
    limits = list(ints(op.attributes["limit_indices"]))
    if way[0] is not None and way[0] == way[1] and limits[way[0]] == 2 * op.operands[0].type.shape[way[0]]:
        limits[way[0]] //= 2
    op.attributes["limit_indices"] = i64_array(limits)


def _dynamic_slice(op: Any, way: Way, _: Any) -> None:
    op.attributes["slice_sizes"] = i64_array(list(op.results[0].type.shape))


ADJUST = {"stablehlo.slice": _slice, "stablehlo.dynamic_slice": _dynamic_slice}


def say(sample: Sample, way: Way, combiner: str) -> str:
    """``operand 0: dim 1, result: partial add``"""
    names = [f"operand {i}" for i in range(len(sample.operands))] + [f"result {i}" for i in range(len(sample.results))]
    parts = [f"{name} dim {dim}" for name, dim in zip(names, way, strict=True) if dim is not None]
    return ", ".join([*parts, *([f"partial {combiner}"] if combiner else [])])
