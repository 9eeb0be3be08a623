"""Proves the rules of ops by brute force.

    python -m tools.prove.validate_rules [--family shape] [--quick] [--reference]

For each sample of rule_samples/, each factor of its rule alone, and each pair of factors, on 2, 3 and 4 devices: the
one-op program with operands and results split so is partitioned with that very split, run by XLA with rubbish in the
padding, and compared with the op on one device. A difference is *incorrect*: the rule claims what is wrong.

Ops that share a rule and have no rewrite of their own are proved in full once for each set of shapes, the others of
them by two splits. An op that is written out in others before propagation has no rule of its own: it is run with each
dimension of each operand and result split, and with the same dimension of all of them.

The other way round: with one axis of 2 devices, every way to give each operand and result one dimension (or none, or
a partial result) is tried with the op at local shapes, in StableHLO's reference interpreter. A way that gives the
right tiles without any communication and is no factor of the rule is *missing*. ``REASONS`` says why some are.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from math import prod
from typing import Any
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA warns at every compilation

import numpy as np
from jaxlib.mlir import ir

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ir.annotations import main_of
from shardpass.ir.collectives import KINDS
from shardpass.ir.context import parse_module
from shardpass.ir.tensors import i64_array, ints, operation, retype
from shardpass.ops.registry import find, table
from shardpass.ops.splits import assign as assignment
from shardpass.ops.splits.factors import Axes, DimAxes, Kind, Rule, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.runtime import compile_single, interpret
from shardpass.runtime.interpreter import evaluate
from shardpass.sharding import Mesh
from tools.prove.rule_samples.families import FAMILIES, samples
from tools.prove.rule_samples.sample import Sample, is_float
from tools.values import Array, Fact, rubbish

SINGLE = tuple(Mesh((("x", n),)) for n in (2, 3, 4))
PAIRS = (Mesh((("x", 2), ("y", 2))), Mesh((("x", 2), ("y", 3))))
COMBINERS = {"add": np.add, "maximum": np.maximum, "minimum": np.minimum}
LARGEST_SEARCH = 600
SHARED = 4  # ops that have one rule
SOME, EVERY = 2, 10**6  # splits of a sample


@dataclass(slots=True)
class Findings:
    """What a sample's rule was found to be."""

    sample: Sample
    runs: int = 0
    unsaid: int = 0  # splits that some operand or result cannot say: they do not divide
    incorrect: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def rule_of(sample: Sample) -> Rule | None:
    module = parse_module(sample.text())
    with module.context:
        op = _the_op(module, sample)
        entry = find(sample.op)
        return entry.rule(op) if entry else None


def _the_op(module: Any, sample: Sample) -> Any:
    """The op under test: the last one before the return."""
    ops = [operation(o) for o in main_of(module).regions[0].blocks[0].operations]
    found = ops[-2]
    assert found.name == sample.op
    return found


# ---------------------------------------------------------------- incorrect


def splits(rule: Rule) -> Iterator[tuple[PrimeMesh, dict[int, Axes]]]:
    """Each factor alone, then each pair, on the meshes."""
    free = [i for i, f in enumerate(rule.factors) if f.kind is not Kind.REPLICATED]
    for mesh in map(prime_mesh, SINGLE):
        every = tuple(range(len(mesh.sizes)))
        for factor in free:
            yield mesh, {factor: every}
    for mesh in map(prime_mesh, PAIRS):
        for one, other in itertools.permutations(free, 2):
            yield mesh, {one: (0,), other: (1,)}
        for factor in free:
            yield mesh, {factor: (1, 0)}  # against the order of the mesh


def sides_of(sample: Sample, rule: Rule) -> list[assignment.Side]:
    """Operands made in the module's body (initial values) are scalars."""
    shapes = [t.shape for t in sample.operands] + [()] * len(sample.more) + [t.shape for t in sample.results]
    maps = (*rule.operands, *rule.results)
    return [assignment.Side(s, m, ((),) * len(s), 4) for s, m in zip(shapes, maps, strict=True)]


@contextmanager
def forced(rule: Rule, split: dict[int, Axes]) -> Iterator[list[bool]]:
    """The partitioner takes ``split`` for the op with ``rule``; the list that is yielded says whether it did."""
    original, taken = assignment.candidates, [False]

    def only(asked: Rule, operands: Any, results: Any, sizes: Any) -> list[dict[int, Axes]]:
        if (asked.operands, asked.results) != (rule.operands, rule.results):
            return original(asked, operands, results, sizes)
        if any(asked.factors[f].kind is Kind.REPLICATED for f in split):
            return original(asked, operands, results, sizes)  # the partitioner itself gave the split up
        taken[0] = True
        return [split]

    with mock.patch.object(assignment, "candidates", only):
        yield taken


def prove(sample: Sample, rule: Rule, whole: Sequence[Array], found: Findings, reference: bool, limit: int) -> None:
    """Runs every split of ``rule`` and notes those that give other results. ``limit``: at most so many runs."""
    sides = sides_of(sample, rule)
    arrays = sample.arrays()
    for mesh, split in splits(rule):
        if found.runs >= limit:
            return
        settled = assignment.settle(rule, sides, split, mesh.sizes)
        if settled != split:
            found.unsaid += 1
            continue
        dims = [unproject(rule, s.dim_map, s.shape, split, mesh.sizes) for s in sides]
        count = len(sample.operands)
        texts = [str(mesh.sharding(d)) for d in dims]
        text = sample.text(tuple(texts[:count]), tuple(texts[count + len(sample.more) :]), mesh.num_devices)
        if sample.results and not sample.operands:
            text = sample.text((), tuple(texts), mesh.num_devices)
        problem = run_split(sample, text, rule, split, arrays, whole, reference and not found.runs)
        if problem is None:
            found.unsaid += 1
            continue
        found.runs += 1
        if problem:
            said = ", ".join(f"factor {f} over {mesh.names(a)}" for f, a in split.items())
            found.incorrect.append(f"{mesh.mesh}, {said}: {problem}")


def prove_written_out(sample: Sample, whole: Sequence[Array], found: Findings, reference: bool, limit: int) -> None:
    """As ``prove`` for an op without a rule: its operands and results are split, the op as the partitioner likes."""
    arrays, count = sample.arrays(), len(sample.operands)
    kinds = [*sample.operands, *sample.results]
    rank = max(len(k.shape) for k in kinds)
    ways = [[(i, d)] for i, k in enumerate(kinds) for d in range(len(k.shape))]
    ways += [[(i, d) for i, k in enumerate(kinds) if d < len(k.shape)] for d in range(rank)]
    for mesh, way in itertools.product(map(prime_mesh, SINGLE), ways):
        if found.runs >= limit:
            return
        every = tuple(range(len(mesh.sizes)))
        texts = ["" for _ in kinds]
        for i, dim in way:
            texts[i] = str(mesh.sharding(tuple(every if d == dim else () for d in range(len(kinds[i].shape)))))
        text = sample.text(tuple(texts[:count]), tuple(texts[count:]), mesh.num_devices)
        found.runs += 1
        problem = run_split(sample, text, None, {}, arrays, whole, reference and found.runs == 1)
        if problem:
            found.incorrect.append(f"{mesh.mesh}, {texts}: {problem}")


def run_split(
    sample: Sample, text: str, rule: Rule | None, split: dict[int, Axes], arrays: list[Array], whole: Any,
    reference: bool,
) -> str | None:  # fmt: skip
    """What is wrong with the partitioned program; "" where nothing is, None where the split was not taken."""
    try:
        with collect(), forced(rule, split) if rule is not None else nullcontext([True]) as taken:
            module = shardpass.run_pipeline(text, "partition")
        if not taken[0]:
            return None
        executable = shardpass.compile(module)
        placed = [
            p.place(a, rubbish(Fact(t))) for p, a, t in zip(executable._arguments, arrays, sample.operands, strict=True)
        ]
        ways = [("XLA", executable.run(*placed))]
        if reference and sample.interpreted:
            ways.append(("the interpreter", interpret(module, *arrays, isolated=False)))
    except ShardpassError as error:
        return str(error)
    for way, results in ways:
        for index, (want, got) in enumerate(zip(whole, results, strict=True)):
            if not agree(np.asarray(got), want, is_float(sample)):
                return f"result {index} differs on {way}"
    return ""


def agree(got: Array, want: Array, rough: bool) -> bool:
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not rough:
        return bool(np.array_equal(got, want))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    rate = 0.02 if want.dtype.itemsize == 2 else 1e-5
    return bool(np.allclose(got.astype(wide), want.astype(wide), rtol=rate, atol=rate, equal_nan=True))


# ---------------------------------------------------------------- missing

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
        main, op = main_of(module), _the_op(module, sample)
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


# Why a right split is not claimed: (op, part of the sample's note, part of the description) -> the reason.
REASONS: dict[tuple[str, str, str], str] = {
    ("stablehlo.reduce", "subtract", "partial add"): "a reducer that is not associative is left alone; this one is a "
    "sum in disguise, of one start only",
    ("stablehlo.get_dimension_size", "", "partial add"): "the whole size is known: nothing needs to be added",
}


# Ops that can be split and have no sample: the reason.
NOT_SAMPLED = {
    **dict.fromkeys(
        KINDS,
        "in manual regions alone; tools/fuzz/generators/manual_regions.py makes these, with free axes that split them",
    ),
    "chlo.ragged_dot": "XLA does not run it on CPU, so there is nothing to compare with",
    "rng": "other numbers each time; no dimension is split",
    "uniform_quantize": "JAX's context has no quantized types",
    "uniform_dequantize": "JAX's context has no quantized types",
}


def without_samples() -> list[str]:
    """Ops of the registry that are split or written out, and are neither in a sample nor excused."""
    done = {sample.op for sample in samples()}
    done |= {name if "." in name else f"stablehlo.{name}" for name in NOT_SAMPLED}
    return sorted(name for name, entry in table().items() if entry.family != "replicated" and name not in done)


def reason_for(sample: Sample, missing: str) -> str:
    for (op, note, part), reason in REASONS.items():
        if op == sample.op and note in sample.note and part in missing:
            return reason
    return ""


# ---------------------------------------------------------------- command


def validate(sample: Sample, *, reference: bool = False, limit: int = EVERY) -> Findings:
    """All that can be found about the rule for ``sample``."""
    found = Findings(sample)
    rule = rule_of(sample)
    whole = [np.asarray(x) for x in compile_single(sample.text())(*sample.arrays())]
    if rule is not None:
        prove(sample, rule, whole, found, reference, limit)
    entry = find(sample.op)
    if entry is not None and entry.expand is not None:
        prove_written_out(sample, whole, found, reference, limit)
    elif sample.interpreted:
        search(sample, rule, whole, found)
    return found


def depths(chosen: Sequence[Sample]) -> Iterator[tuple[Sample, int]]:
    """Each sample with how many splits of it to run: few where a rule of the same kind and shapes comes before."""
    sharing = Counter((entry.rule, entry.expand) for entry in table().values() if entry.rewrite is None)
    seen: set[Any] = set()
    for sample in chosen:
        entry = find(sample.op)
        assert entry is not None
        kind = (entry.rule, entry.expand)
        key = (*kind, tuple(t.shape for t in (*sample.operands, *sample.results)))
        known = entry.rewrite is None and sharing[kind] >= SHARED and key in seen
        yield sample, SOME if known else EVERY
        seen.add(key)


def quick_samples() -> list[Sample]:
    """A few of each family, each op once."""
    out: list[Sample] = []
    for name, make in FAMILIES.items():
        seen: set[str] = set()
        for sample in make():
            if sample.op not in seen and (name != "elementwise" or len(seen) < 6):
                seen.add(sample.op)
                out.append(sample)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description="Proves the rules of ops by brute force.")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this family")
    parser.add_argument("--op", help="only ops whose name holds this")
    parser.add_argument("--quick", action="store_true", help="each op once, few splits")
    parser.add_argument("--reference", action="store_true", help="one split of each sample in the interpreter too")
    args = parser.parse_args()
    import jax
    from rich.console import Console
    from rich.progress import track

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 12)
    chosen = quick_samples() if args.quick else samples(args.family)
    chosen = [s for s in chosen if not args.op or args.op in s.op]
    console = Console(stderr=True)
    totals = {"runs": 0, "unsaid": 0, "incorrect": 0, "missing": 0, "reasons": 0}
    try:
        for sample, most in track(depths(chosen), "samples", len(chosen), console=console, transient=True):
            found = validate(sample, reference=args.reference, limit=min(most, 6 if args.quick else EVERY))
            if not console.is_terminal:
                console.print(f"{sample.op}: {found.runs} splits", highlight=False)
            totals["runs"] += found.runs
            totals["unsaid"] += found.unsaid
            for line in found.incorrect:
                totals["incorrect"] += 1
                console.print(f"incorrect: {sample.name}\n    {line}", markup=False, highlight=False, soft_wrap=True)
            for line in found.missing:
                why = reason_for(sample, line)
                totals["reasons" if why else "missing"] += 1
                if not why:
                    console.print(f"missing: {sample.name}\n    {line}", markup=False, highlight=False, soft_wrap=True)
    except KeyboardInterrupt:
        console.print("stopped")
    print(
        f"{len(chosen)} samples, {totals['runs']} splits run, {totals['unsaid']} cannot be said; "
        f"{totals['incorrect']} incorrect, {totals['missing']} missing, {totals['reasons']} missing for a reason"
    )
    return 1 if totals["incorrect"] or totals["missing"] else 0


if __name__ == "__main__":
    sys.exit(main())
