#!/usr/bin/env python
"""A weight-gathered layer with its products in turn with the collectives, beside plain and beside XLA's own option.

    python -m tools.bench.collective_matmul                  meshes 8x1 and 4x2, forward and backward
    python -m tools.bench.collective_matmul --markdown docs/collective_matmul.md
    python -m tools.bench.collective_matmul --plan           what the plan says, beside XLA's memory; nothing is run

The layer is ``relu(x @ w1) @ w2``: x f32[1024,1024] is split by batch over x, the hidden values by batch over x and
by column over y. The weights, f32[1024,4096] and f32[4096,1024], are split over both axes in two dimensions, and
gathered over x where they are used. ``temp`` is ``temp_size_in_bytes`` of XLA's compiled memory stats of one device,
``time`` the best of five runs on virtual CPU devices, which share the cores of one machine: it says what loops cost
there, and nothing of a network.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tools.bench.report import write_between

MARKS = ("<!-- table: tools/bench/collective_matmul.py -->", "<!-- end of the table -->")
MESHES = ((8, 1), (4, 2))
BATCH, MODEL, HIDDEN = 1024, 1024, 4096
OPTIONS = (
    ("apart", ""),
    ("in turn, where it holds less", "{matmul-loops=memory}"),
    ("in turn, all", "{matmul-loops=all}"),
    ("in turn, all, one way", "{matmul-loops=all matmul-one-way}"),
    ("all, one way, written out", "{matmul-loops=all matmul-one-way matmul-unroll=8}"),
)
XLAS = (
    ("XLA", None),
    ("XLA, xla_jf_spmd_threshold_for_windowed_einsum_mib=0", "xla_jf_spmd_threshold_for_windowed_einsum_mib"),
    ("XLA, xla_gpu_threshold_for_windowed_einsum_mib=0", "xla_gpu_threshold_for_windowed_einsum_mib"),
)
PLAN_MARKS = ("<!-- table: tools/bench/collective_matmul.py --plan -->", "<!-- end of the plan's table -->")
PLAN_HEAD = ("mesh", "pass", "matmul-loops", "loops", "collectives beside products, us", "plan, MiB", "XLA, MiB")
HEAD = ("mesh", "pass", "way", "temp, MiB", "time, ms", "all_gathers", "permutes")


def main(argv: Sequence[str] | None = None) -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        "collective_matmul", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table into this page")
    parser.add_argument("--plan", action="store_true", help="modelled time and memory of the plan; XLA's memory")
    args = parser.parse_args(argv)
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    head, rows, marks = (PLAN_HEAD, planned, PLAN_MARKS) if args.plan else (HEAD, measured, MARKS)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for mesh in MESHES:
        for backward in (False, True):
            for row in rows(mesh, backward):
                lines.append("| " + " | ".join(("x".join(map(str, mesh)), *row)) + " |")
                print(lines[-1], flush=True)
    if args.markdown:
        write_between(args.markdown, marks, "\n".join(lines))
    return 0


def measured(mesh: tuple[int, int], backward: bool) -> Iterator[tuple[str, ...]]:
    import jax
    import numpy as np

    import shardpass
    from shardpass.diagnostics import collect

    lowered = layer(mesh, backward)
    rng = np.random.default_rng(0)
    shapes = (MODEL, HIDDEN), (HIDDEN, MODEL), (BATCH, MODEL)
    arrays = [(rng.standard_normal(shape) / 32).astype(np.float32) for shape in shapes]
    which = "backward" if backward else "forward"
    for way, options in OPTIONS:
        with collect():
            module = shardpass.run_pipeline(lowered.as_text(debug_info=True), f"partition{options}")
        executable = shardpass.compile(module)
        placed = executable.place(*arrays)
        seconds = best(lambda run=executable.run, given=placed: run(*given))
        yield which, way, *_counted(executable.memory_stats(), executable.hlo_text(), seconds)
    for way, flag in XLAS:
        try:
            compiled = lowered.compile(compiler_options={flag: "0"} if flag else None)
        except jax.errors.JaxRuntimeError:  # the flag is another platform's
            yield which, way, "refused: no such option", "", "", ""
        else:
            yield which, way, *_counted(compiled.memory_analysis(), compiled.as_text(), None)


def planned(mesh: tuple[int, int], backward: bool) -> Iterator[tuple[str, ...]]:
    """What the plan says of the layer, and XLA's arguments, results and temporaries together."""
    import shardpass
    from shardpass.diagnostics import collect
    from shardpass.pipeline.plan import plan_module

    text = layer(mesh, backward).as_text(debug_info=True)
    for which in ("off", "memory", "all"):
        with collect():
            plan = plan_module(text, matmul_loops=which)
            module = shardpass.run_pipeline(text, f"partition{{matmul-loops={which}}}")
        stats = shardpass.compile(module).memory_stats()
        xla = stats.temp_size_in_bytes + stats.argument_size_in_bytes + stats.output_size_in_bytes
        loops, sizes = len(plan.loops or ()), [f"{size / 2**20:.1f}" for size in (plan.alive.peak, xla)]
        yield "backward" if backward else "forward", which, str(loops), f"{plan.seconds() * 1e6:.0f}", *sizes


def layer(shape: tuple[int, int], backward: bool) -> Any:
    """The layer, or the gradient of the mean of its squares by both weights, as JAX lowers it."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    mesh = jax.make_mesh(shape, ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def over(*spec: Any) -> Any:
        return NamedSharding(mesh, PartitionSpec(*spec))

    pinned = jax.lax.with_sharding_constraint

    def forward(weights: Any, x: Any) -> Any:
        one, other = pinned(weights[0], over(None, "y")), pinned(weights[1], over("y", None))
        hidden = pinned(jax.nn.relu(pinned(x, over("x", None)) @ one), over("x", "y"))
        return pinned(hidden @ other, over("x", None))

    def loss(weights: Any, x: Any) -> Any:
        return (forward(weights, x) ** 2).mean()

    weights, batch = (over("x", "y"), over("y", "x")), over("x", None)
    function, out = (jax.grad(loss), weights) if backward else (forward, batch)
    kinds = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((MODEL, HIDDEN), (HIDDEN, MODEL), (BATCH, MODEL))]
    return jax.jit(function, in_shardings=(weights, batch), out_shardings=out).lower((kinds[0], kinds[1]), kinds[2])


def best(run: Any) -> float:
    found = []
    for _ in range(6):
        begun = time.perf_counter()
        run()
        found.append(time.perf_counter() - begun)
    return min(found[1:])


def _counted(memory: Any, hlo: str, seconds: float | None) -> tuple[str, ...]:
    return (
        f"{memory.temp_size_in_bytes / 2**20:.1f}",
        "" if seconds is None else f"{seconds * 1e3:.0f}",
        str(hlo.count(" all-gather(")),
        str(hlo.count(" collective-permute(")),
    )


if __name__ == "__main__":
    sys.exit(main())
