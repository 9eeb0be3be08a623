"""Every split that a rule claims, run on XLA and compared with the op on one device: a difference is *incorrect*."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock

import numpy as np

import shardpass
from shardpass.diagnostics import ShardpassError, collect
from shardpass.ops.splits import assign as assignment
from shardpass.ops.splits.factors import Axes, Kind, Rule, unproject
from shardpass.ops.splits.prime_mesh import PrimeMesh, prime_mesh
from shardpass.runtime import interpret
from shardpass.sharding import Mesh
from tools.prove.findings import Findings, agree, sides_of
from tools.prove.rule_samples.sample import Sample, is_float
from tools.values import Array, Fact, rubbish

SINGLE = tuple(Mesh((("x", n),)) for n in (2, 3, 4))

PAIRS = (Mesh((("x", 2), ("y", 2))), Mesh((("x", 2), ("y", 3))))


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


@contextmanager
def forced(rule: Rule, split: dict[int, Axes]) -> Iterator[list[bool]]:
    """The partitioner takes ``split`` for the op with ``rule``; the list that is yielded says whether it did."""
    original, taken = assignment.candidates, [False]

    def only(asked: Rule, operands: Any, results: Any, sizes: Any, *copies: Any) -> list[dict[int, Axes]]:
        if (asked.operands, asked.results) != (rule.operands, rule.results):
            return original(asked, operands, results, sizes, *copies)
        if any(asked.factors[f].kind is Kind.REPLICATED for f in split):
            return original(asked, operands, results, sizes, *copies)  # the partitioner itself gave the split up
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
