"""Measure samples in turns, blocking on each call; return the median of the repeats."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import jax
import ml_dtypes
import numpy as np

from shardpass.calibrating.samples import Sample
from shardpass.diagnostics import ShardpassError
from shardpass.runtime.compiling import compile

DTYPES: Mapping[str, type] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "ui16": np.uint16,
    "i8": np.int8,
}
Show = Callable[[str], None]


def silent(text: str) -> None:
    """Ignore ``text``: the default of ``show``."""


def measure(samples: Sequence[Sample], repeats: int, show: Show = silent) -> list[float | None]:
    """Return the median seconds of each sample; None if XLA refuses it. ``show``: called with each piece of work."""
    ready = []
    for at, sample in enumerate(samples):
        show(f"compiling {sample.name}")
        try:
            program = compile(sample.module)
            placed = program.place(np.zeros(sample.shape, DTYPES[sample.element]))
            jax.block_until_ready(program.run(*placed))
        except ShardpassError:  # of a backend without the collective, or without the element type
            continue
        ready.append((at, program, placed))
    times: dict[int, list[float]] = {at: [] for at, _, _ in ready}
    for turn in range(repeats):
        show(f"turn {turn + 1} of {repeats}")
        for at, program, placed in ready:
            start = time.perf_counter()
            jax.block_until_ready(program.run(*placed))
            times[at].append(time.perf_counter() - start)
    return [statistics.median(times[at]) if at in times else None for at in range(len(samples))]
