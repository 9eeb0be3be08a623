"""All samples of the rule prover, by family.

To add a family, write a function that yields ``Sample`` and put it into ``FAMILIES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tools.prove.rule_samples import (
    dot_general,
    elementwise,
    indexing,
    linear_algebra,
    reductions,
    shapes,
    sources,
    windows,
)
from tools.prove.rule_samples.sample import Sample

FAMILIES: dict[str, Callable[[], Iterator[Sample]]] = {
    "elementwise": elementwise.elementwise,
    "source": sources.source,
    "shape": shapes.shape,
    "dot": dot_general.dot,
    "reduce": reductions.reduce,
    "indexing": indexing.indexing,
    "window": windows.windows,
    "convolution": windows.convolution,
    "gather": windows.gather,
    "scatter": windows.scatter,
    "select_and_scatter": windows.select_and_scatter,
    "straddling": indexing.straddling,
    "argreduce": reductions.argreduce,
    "top_k": reductions.top_k,
    "random": sources.random,
    "solves": linear_algebra.solves,
    "fft": linear_algebra.fft,
    "lapack": linear_algebra.lapack,
    "batch_norm": linear_algebra.batch_norm,
    "mapping": linear_algebra.mapping,
    "bits": linear_algebra.bits,
    "chlo": linear_algebra.chlo,
    "stretched": linear_algebra.stretched,
}


def samples(family: str | None = None) -> list[Sample]:
    """All samples, or those of one family."""
    return [s for name, make in FAMILIES.items() if family in (None, name) for s in make()]
