#!/usr/bin/env python
"""Whether the form that is chosen for an exchange is the fastest: all forms of a plan, timed in turn.

    python -m tools.bench.redistribute_forms --problems 70             of each mesh of 8 devices
    python -m tools.bench.redistribute_forms --mesh 2x4 --problems 5 --repeats 31 --out forms.json

The problems are those of ``tools.bench.redistribute``, of ``--min-mb`` to ``--max-mb`` megabytes, with elements of 1,
2, 4 and 8 bytes in turn. Of each, the plan is built once as it is chosen, and once with each form of its exchanges and
gathers forced (``Builder.cheapest``). Programs that are equal count once; where there is but one, nothing is chosen,
and the problem is left out. They run in turn, each call waited for, in a process that keeps the memory
it frees (``shardpass.calibrating.memory``); a time is the median.

The table says for how many problems the chosen form is within 10% of the fastest, and names the others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardpass.calibrating.memory import keep_freed_memory
from tools.bench.redistribute_samples import MESHES, Problem, sample

ELEMENTS = ("f32", "bf16", "i8", "f64")
BYTES = {"i8": 1, "bf16": 2, "f32": 4, "f64": 8}
NEAR = 1.10
FORMS = 7  # of an exchange, at most


@contextmanager
def forced(number: int) -> Iterator[None]:
    """Every choice of a form falls on the ``number``-th, or the last where there are fewer."""
    from shardpass.redistribute.program.build import Builder

    chosen = Builder.cheapest
    Builder.cheapest = lambda self, forms: forms[min(number, len(forms) - 1)]  # type: ignore[method-assign]
    try:
        yield
    finally:
        Builder.cheapest = chosen  # type: ignore[method-assign]


def plan_of(problem: Problem, element: str, profile: str) -> Any:
    """The plan, built anew: plans are cached by their arguments, and a forced form is none of them."""
    from shardpass.cost.chosen import chosen
    from shardpass.redistribute.planner import solve
    from shardpass.redistribute.problem.checks import make_problem
    from shardpass.redistribute.terms.choice import Terms
    from tools.bench.redistribute_measure import shardings

    made = make_problem(problem.shape, element, *shardings(problem), problem.devices)
    return solve(made, "best", Terms(chosen(profile), "max"))


def forms_of(problem: Problem, element: str, profile: str) -> dict[str, Any]:
    """The plans that differ, by module text; the chosen one first."""
    plans = {}
    chosen = plan_of(problem, element, profile)
    plans[chosen.to_module()] = chosen
    for number in range(FORMS):
        with forced(number):
            plan = plan_of(problem, element, profile)
        plans.setdefault(plan.to_module(), plan)
    return plans


def timed(texts: Sequence[str], tile: tuple[int, ...], element: str, devices: int, repeats: int) -> list[float]:
    """Milliseconds of each program, the median of calls in turn."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from tools.bench.redistribute_measure import compile_text

    made = [compile_text(text, devices) for text in texts]
    places = jax.devices()[:devices]
    one = np.arange(int(np.prod(tile)), dtype=np.int64).reshape(tile).astype(jnp.dtype(NUMPY[element]))
    shards = [jax.device_put(one, place) for place in places]
    mesh = jax.sharding.Mesh(np.array(places), ("d",))
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    value = jax.make_array_from_single_device_arrays((devices * tile[0], *tile[1:]), spec, shards)
    times: list[list[float]] = [[] for _ in made]
    for turn in range(repeats + 2):
        for compiled, known in zip(made, times, strict=True):
            start = time.perf_counter()
            for array in compiled.execute_sharded([value]).disassemble_into_single_device_arrays()[0]:
                array.block_until_ready()
            if turn >= 2:
                known.append(time.perf_counter() - start)
    return [1e3 * statistics.median(known) for known in times]


NUMPY = {"i8": "int8", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def measure(problem: Problem, element: str, profile: str, repeats: int) -> dict[str, Any] | None:
    """What each form takes; None where there is but one."""
    from shardpass.redistribute.program.local_work import local_work

    plans = forms_of(problem, element, profile)
    if len(plans) < 2:
        return None
    tile = next(iter(plans.values())).source_tile
    times = timed(list(plans), tile, element, problem.devices, repeats)
    rows = []
    for plan, ms in zip(plans.values(), times, strict=True):
        work = local_work(plan.program, plan.source_tile, plan.element_type)
        steps = [str(step.kind) for step in plan.steps]
        rows.append({"ms": ms, "steps": steps, "work": list(work), "received": plan.bytes_received})
    return {"name": problem.name, "element": element, "tile": list(tile), "forms": rows}


def problems_of(meshes: Sequence[str], count: int, seed: int, low: float, high: float) -> list[tuple[Problem, str]]:
    """Samples with the elements in turn, each of ``low`` to ``high`` bytes."""
    out = []
    for mesh in meshes:
        for k in range(count):
            element = ELEMENTS[k % len(ELEMENTS)]
            scale = 4 / BYTES[element]
            problem = sample(mesh, seed, k, low * scale, high * scale, False)
            out.append((replace(problem, name=f"{problem.name} {element}"), element))
    return out


def report(results: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    off = sorted(((r["forms"][0]["ms"] / min(f["ms"] for f in r["forms"]), r) for r in results), key=lambda x: -x[0])
    near = sum(ratio <= NEAR for ratio, _ in off)
    console.print(f"chosen form within {NEAR - 1:.0%} of the fastest: {near} of {len(off)}")
    for ratio, r in off:
        if ratio > NEAR:
            others = ", ".join(f"{f['ms']:.1f} ms {f['work']}" for f in r["forms"])
            console.print(f"  {ratio:.2f}x {r['name']} {r['tile']}: {others}", markup=False, soft_wrap=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", action="append", choices=MESHES, help="may be given several times")
    parser.add_argument("--problems", type=int, default=70, help="for each mesh")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--min-mb", type=float, default=8)
    parser.add_argument("--max-mb", type=float, default=64)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--profile", default="cpu", help="by which forms are chosen: a name, or a JSON file")
    parser.add_argument("--out", metavar="FILE", help="write every number as JSON")
    arguments = parser.parse_args()
    import jax
    from rich.progress import track

    keep_freed_memory()
    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", 8)
    jax.config.update("jax_enable_x64", True)
    meshes = arguments.mesh or ["8", "2x4", "2x2x2"]
    low, high = arguments.min_mb * 2**20, arguments.max_mb * 2**20
    results = []
    for problem, element in track(problems_of(meshes, arguments.problems, arguments.seed, low, high), "problems"):
        found = measure(problem, element, arguments.profile, arguments.repeats)
        results += [] if found is None else [found]
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(results, indent=1))
    report(results)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
