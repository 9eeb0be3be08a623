#!/usr/bin/env python
"""Redistribution: shardpass beside XLA's partitioner and Shardy's passes, on the same arrays, in one run.

    python tools/bench_redistribute.py                          a sample on every mesh
    python tools/bench_redistribute.py --mesh 2x2x2 --problems 50 --min-mb 8 --max-mb 64
    python tools/bench_redistribute.py --hard corpora/hard_reshards.json

Problems are sampled as in section 8 of Rink et al.: every mesh axis is replicated or put on one dimension, on
either side at random. Four programs are made for each: planner rink, planner best, XLA's own
(``jax.jit(out_shardings=)``), and Shardy's passes (reshard-to-collectives, convert-global-to-local). They run
in turn, each call waited for; a time is the median. Bytes received by a device are read from the collectives of
the compiled HLO, by one counter for all four.

Child processes do the work: Shardy's passes, and XLA, can end the process they run in. A problem on which one
does is reported and left out of that column.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MESHES = {
    "2x2x2": (2, 2, 2),
    "2x4": (2, 4),
    "8": (8,),
    "2x3": (2, 3),
    "4x6": (4, 6),
    "2x2x3x2": (2, 2, 3, 2),
}
AXES = "abcdef"
WAYS = ("rink", "best", "xla", "shardy")
PAPER = (  # figure 13, on {a:2, b:2, c:2}; per dimension the axes, major to minor
    ("P1", (360, 368, 320), ("", "c", ""), ("ac", "", "b")),
    ("P2", (80, 80, 72, 64), ("", "c", "", ""), ("b", "", "c", "")),
    ("P3", (296, 360, 312), ("", "", "c"), ("cb", "a", "")),
    ("P4", (16,) * 6, ("c", "", "", "a", "", "b"), ("", "", "", "", "", "a")),
)

Problem = dict[str, Any]  # name, mesh (sizes), shape, source and target (per dimension a string of axes)


# ---------------------------------------------------------------- problems


def sample(mesh: str, seed: int, index: int, low: float, high: float, uneven: bool) -> Problem:
    """A random problem of ``low`` to ``high`` bytes of f32, not an identity."""
    sizes = MESHES[mesh]
    rng = random.Random(f"{mesh}/{seed}/{index}/{low}/{high}/{uneven}")
    while True:
        rank = rng.randint(1, 6)
        sides = []
        for _ in range(2):
            dims = [""] * rank
            for axis in rng.sample(range(len(sizes)), len(sizes)):
                place = rng.randint(-1, rank - 1)
                if place >= 0:
                    dims[place] += AXES[axis]
            sides.append(dims)
        if sides[0] == sides[1]:
            continue
        counts = [[math.prod(sizes[AXES.index(a)] for a in dim) for dim in dims] for dims in sides]
        need = [math.lcm(*pair) for pair in zip(*counts, strict=True)]
        elements = rng.uniform(low, high) / 4
        weights = [rng.uniform(0.3, 1.7) for _ in need]
        free = math.log(max(elements / math.prod(need), 1))
        shape = [n * max(1, round(math.exp(free * w / sum(weights)))) for n, w in zip(need, weights, strict=True)]
        if uneven:
            shape = [max(1, s - (rng.randrange(n) if n > 1 else 0)) for s, n in zip(shape, need, strict=True)]
        if uneven and all(s % n == 0 for s, n in zip(shape, need, strict=True)):
            continue
        if 0.7 * low <= 4 * math.prod(shape) <= 1.4 * high:
            name = f"{mesh}/{'u' if uneven else 'e'}{seed}/{index}"
            return {"name": name, "mesh": list(sizes), "shape": shape, "source": sides[0], "target": sides[1]}


def hard(path: str) -> list[Problem]:
    """The problems of a file of ``{"problem": {mesh, shape, src, dst}}`` entries."""
    return [
        {
            "name": p["id"],
            "mesh": [size for _, size in p["mesh"]],
            "shape": p["shape"],
            "source": ["".join(dim) for dim in p["src"]],
            "target": ["".join(dim) for dim in p["dst"]],
        }
        for p in (entry["problem"] for entry in json.loads(Path(path).read_text()))
    ]


def paper() -> list[Problem]:
    return [
        {"name": name, "mesh": [2, 2, 2], "shape": list(shape), "source": list(s), "target": list(t)}
        for name, shape, s, t in PAPER
    ]


# ---------------------------------------------------------------- the four ways (in a child process)


def shardings(problem: Problem) -> tuple[Any, Any]:
    from shardpass.sharding import Mesh, Sharding

    mesh = Mesh(tuple(zip(AXES, problem["mesh"], strict=False)))
    return tuple(Sharding.tiled(mesh, tuple(map(tuple, problem[side]))) for side in ("source", "target"))  # type: ignore[return-value]


def shardy_module(problem: Problem) -> str:
    """The per-device program that Shardy's own passes make, with the attributes that XLA needs to leave it alone."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager

    from shardpass.ir.context import make_context

    def spec(dims: list[str]) -> str:
        return "[" + ", ".join("{" + ", ".join(f'"{a}"' for a in dim) + "}" for dim in dims) + "]"

    kind = f"tensor<{'x'.join(map(str, problem['shape']))}xf32>"
    axes = ", ".join(f'"{AXES[i]}"={n}' for i, n in enumerate(problem["mesh"]))
    text = f"""module @m {{ sdy.mesh @mesh = <[{axes}]>
      func.func public @main(%x: {kind} {{sdy.sharding = #sdy.sharding<@mesh, {spec(problem["source"])}>}})
          -> ({kind} {{sdy.sharding = #sdy.sharding<@mesh, {spec(problem["target"])}>}}) {{
        %0 = sdy.reshard %x <@mesh, {spec(problem["target"])}> : {kind}
        return %0 : {kind}
      }} }}"""
    with make_context():
        module = ir.Module.parse(text)
        for pipeline in (
            "func.func(sdy-reshard-to-collectives,canonicalize)",
            "func.func(sdy-pad-for-divisibility)",
            "sdy-convert-global-to-local",
            "sdy-drop-sharding-and-mesh",
        ):
            PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
        i32 = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, math.prod(problem["mesh"]))
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)
        main = module.body.operations[0]
        manual = ir.ArrayAttr.get([ir.DictAttr.get({"mhlo.sharding": ir.StringAttr.get("{manual}")})])
        main.attributes["arg_attrs"] = main.attributes["res_attrs"] = manual
        return str(module)


def compile_text(text: str, devices: int) -> Any:
    import jax
    import numpy as np
    from jaxlib import _jax
    from jaxlib import xla_client as xc

    places = tuple(jax.devices()[:devices])
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.device_assignment = xc.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, devices
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    return places[0].client.compile_and_load(text, _jax.DeviceList(places), options)


def compile_xla(problem: Problem) -> Any:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    if problem["uneven"]:  # JAX refuses such arrays, XLA does not
        source, target = shardings(problem)
        kind = f"tensor<{'x'.join(map(str, problem['shape']))}xf32>"
        return compile_text(
            f"""module @m attributes {{mhlo.num_partitions = {math.prod(problem["mesh"])} : i32}} {{
            func.func public @main(%x: {kind} {{mhlo.sharding = "{source}"}})
                -> ({kind} {{mhlo.sharding = "{target}"}}) {{ return %x : {kind} }} }}""",
            math.prod(problem["mesh"]),
        )
    mesh = Mesh(
        np.array(jax.devices()[: math.prod(problem["mesh"])]).reshape(problem["mesh"]),
        tuple(AXES[: len(problem["mesh"])]),
    )
    source, target = (
        NamedSharding(mesh, PartitionSpec(*(tuple(dim) or None for dim in problem[side])))
        for side in ("source", "target")
    )
    argument = jax.ShapeDtypeStruct(tuple(problem["shape"]), np.float32, sharding=source)
    return jax.jit(lambda x: x, out_shardings=target).lower(argument).compile().runtime_executable()


def programs(problem: Problem) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Compiled programs by way, what failed, and what the plans say."""
    from shardpass.redistribute import plan_redistribution

    devices = math.prod(problem["mesh"])
    made: dict[str, Any] = {}
    failed: dict[str, str] = {}
    facts: dict[str, Any] = {}
    source, target = shardings(problem)
    counts = [side.tile_counts(len(problem["shape"])) for side in (source, target)]
    problem["uneven"] = any(n % k for side in counts for n, k in zip(problem["shape"], side, strict=True))
    for planner in ("rink", "best"):
        start = time.perf_counter()
        plan = plan_redistribution(tuple(problem["shape"]), "f32", source, target, planner=planner, num_devices=devices)
        facts[f"plan_ms_{planner}"] = 1e3 * (time.perf_counter() - start)
        facts[f"modelled_{planner}"] = plan.bytes_received
        facts["bound"] = plan.lower_bound_bytes
        facts["limit"] = max(math.prod(plan.source_tile), math.prod(plan.target_tile)) * 4
        facts["tiles"] = [plan.source_tile, plan.target_tile]
        facts[f"steps_{planner}"] = [step.kind for step in plan.steps]
        made[planner] = compile_text(plan.to_module(), devices)
    for way, make in (
        ("xla", lambda: compile_xla(problem)),
        ("shardy", lambda: compile_text(problem["shardy"], devices) if "shardy" in problem else None),
    ):
        try:
            found = make()
        except Exception as error:  # a peer may refuse anything in any way
            failed[way] = str(error).splitlines()[0][:200]
        else:
            if found is not None:
                made[way] = found
    return made, failed, facts


def measure(problem: Problem, repeats: int) -> dict[str, Any]:
    """Times, temporary memory, bytes on the wire and correctness of the ways on one problem."""
    import jax
    import numpy as np

    made, failed, facts = programs(problem)
    devices = jax.devices()[: math.prod(problem["mesh"])]
    source, target = shardings(problem)
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 1 << 24, problem["shape"]).astype(np.float32)
    arguments = _tiles(whole, source, facts["tiles"][0], len(devices))
    wanted = _tiles(whole, target, facts["tiles"][1], len(devices))
    shards = [jax.device_put(x, d) for x, d in zip(arguments, devices, strict=True)]
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    shape = (len(devices) * arguments[0].shape[0], *arguments[0].shape[1:])
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    value = jax.make_array_from_single_device_arrays(shape, spec, shards)
    out: dict[str, Any] = {"name": problem["name"], "failed": failed, "facts": facts, "ways": {}}
    times: dict[str, list[float]] = {way: [] for way in made}
    for way, compiled in list(made.items()):
        got = compiled.execute_sharded([value]).disassemble_into_single_device_arrays()[0]
        if not _same(got, wanted, target, problem):
            failed[way] = "wrong data"
            del made[way]
            continue
        text = compiled.hlo_modules()[0].to_string()
        wire, count = wire_bytes(text)
        temp = compiled.get_compiled_memory_stats().temp_size_in_bytes
        out["ways"][way] = {"wire": wire, "collectives": count, "temp": temp}
    for turn in range(repeats + 2):
        for way, compiled in made.items():
            start = time.perf_counter()
            for array in compiled.execute_sharded([value]).disassemble_into_single_device_arrays()[0]:
                array.block_until_ready()
            if turn >= 2:
                times[way].append(time.perf_counter() - start)
    for way in made:
        out["ways"][way]["ms"] = 1e3 * statistics.median(times[way])
    return out


def _tiles(whole: Any, sharding: Any, tile: Any, devices: int) -> list[Any]:
    import numpy as np

    out = []
    for base in sharding.tile_offsets(whole.shape, devices):
        local = np.zeros(tile, whole.dtype)
        part = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(base, tile, strict=True))]
        local[tuple(slice(n) for n in part.shape)] = part
        out.append(local)
    return out


def _same(got: Any, wanted: list[Any], sharding: Any, problem: Problem) -> bool:
    """Whether all but the padding is right."""
    import numpy as np

    shape = problem["shape"]
    for base, have, want in zip(sharding.tile_offsets(shape, len(wanted)), got, wanted, strict=True):
        real = tuple(slice(max(0, min(t, n - int(b)))) for t, n, b in zip(want.shape, shape, base, strict=True))
        if not np.array_equal(np.asarray(have)[real], want[real]):
            return False
    return True


# ---------------------------------------------------------------- counting in the compiled HLO

_BITS = {"f32": 32, "s32": 32, "u32": 32, "pred": 8}
_OP = re.compile(
    r"= (?P<type>\(.*?\)|\S+) (?P<op>all-gather|all-to-all|collective-permute|all-reduce|reduce-scatter)(?:-start)?\("
    r"(?P<rest>.*)"
)


def wire_bytes(hlo: str) -> tuple[int, int]:
    """Bytes that a device receives in the collectives of an HLO module, and how many collectives there are."""
    total, count = 0.0, 0
    for line in hlo.splitlines():
        match = _OP.search(line)
        if match is None:
            continue
        size = sum(
            math.prod(int(n) for n in dims.split(",") if n) * _BITS.get(kind, 32) // 8
            for kind, dims in re.findall(r"([a-z]+\d*)\[([\d,]*)\]", match["type"])
        )
        count += 1
        if match["op"] == "collective-permute":
            total += size
            continue
        group = group_size(match["rest"])
        factor = {"all-gather": 1, "all-to-all": 1, "all-reduce": 2, "reduce-scatter": group}[match["op"]]
        total += factor * size * (group - 1) / group
    return round(total), count


def group_size(attributes: str) -> int:
    """The size of a replica group in any of the three texts that XLA prints."""
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", attributes):
        return match[1].count(",") + 1
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]<=", attributes):
        return int(match[2])
    if match := re.search(r"replica_groups=mesh\[([^\]]*)\][^{]*\{([^}]*)\}", attributes):
        sizes = {name: int(n) for name, n in re.findall(r"'([^']+)'=(\d+)", match[1])}
        parts = re.findall(r"'([^']+)'(?::\(\d+\)(\d+))?", match[2])
        return math.prod(int(size) if size else sizes[name] for name, size in parts)
    raise ValueError(f"replica groups in {attributes[:200]}")


# ---------------------------------------------------------------- children


def child(task: str, repeats: int) -> None:
    """Reads problems as JSON lines on stdin; answers each with one line on stdout."""
    for line in sys.stdin:
        problem = json.loads(line)
        try:
            answer = {"text": shardy_module(problem)} if task == "shardy" else measure(problem, repeats)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print("@" + json.dumps(answer), flush=True)


class Child:
    """A child process that is started when first needed, and again after it has died."""

    def __init__(self, task: str, devices: int, repeats: int) -> None:
        self.task, self.devices, self.repeats = task, devices, repeats
        self.process: subprocess.Popen[str] | None = None

    def ask(self, problem: Problem) -> dict[str, Any]:
        if self.process is None:
            flags = f"--xla_force_host_platform_device_count={self.devices}"
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--child", self.task, "--repeats", str(self.repeats)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(problem) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self.process.stdout:
            if line.startswith("@"):
                answer: dict[str, Any] = json.loads(line[1:])
                return answer
        code = self.process.wait()
        self.process = None
        return {"error": f"the process ended with status {code}"}

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()


# ---------------------------------------------------------------- report


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def report(results: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    moving = [r for r in results if r["facts"]["bound"]]
    table = Table(title=f"{len(results)} problems, {len(moving)} with communication", box=None)
    for name in ("", "n", "ms", "bytes / bound", "worst", "collectives", "temp / limit", "worst temp"):
        table.add_column(name, justify="right")
    for way in WAYS:
        rows = [r for r in moving if way in r["ways"]]
        if not rows:
            continue
        ratio = [max(r["ways"][way]["wire"], 1) / r["facts"]["bound"] for r in rows]
        limits = [r["facts"]["limit"] + 4 * math.prod(r["facts"]["tiles"][1]) for r in rows]
        temps = [max(r["ways"][way]["temp"], 1) / n for r, n in zip(rows, limits, strict=True)]
        table.add_row(
            way,
            str(len(rows)),
            f"{geometric_mean([r['ways'][way]['ms'] for r in rows]):.2f}",
            f"{geometric_mean(ratio):.3f}",
            f"{max(ratio):.2f}",
            f"{statistics.mean(r['ways'][way]['collectives'] for r in rows):.2f}",
            f"{geometric_mean(temps):.2f}",
            f"{max(temps):.2f}",
        )
    console.print(table)
    for base in ("xla", "shardy", "rink"):
        both = [r for r in moving if base in r["ways"] and "best" in r["ways"]]
        ratios = sorted((r["ways"][base]["ms"] / r["ways"]["best"]["ms"], r["name"]) for r in both)
        if ratios:
            mean = geometric_mean([x for x, _ in ratios])
            slower = sum(x < 1 / 1.1 for x, _ in ratios) / len(ratios)
            console.print(
                f"{base} / best: geometric mean {mean:.2f}x, worst {ratios[0][0]:.2f}x ({ratios[0][1]}), "
                f"best {ratios[-1][0]:.2f}x, more than 10% slower on {slower:.0%}"
            )
    few = [sum(k != "dynamic_slice" for k in r["facts"]["steps_best"]) <= 3 for r in results]
    planning = sorted(r["facts"]["plan_ms_best"] for r in results)
    console.print(
        f"best: at most 3 collectives in {sum(few) / len(few):.0%}; "
        f"planning median {planning[len(planning) // 2]:.2f} ms, worst {planning[-1]:.2f} ms"
    )
    for r in results:
        for way, reason in r["failed"].items():
            console.print(f"{r['name']}: {way}: {reason}", markup=False)


def scatter(results: list[dict[str, Any]], path: str) -> None:
    """The picture of figure 14a: a point for each problem, best against each other way."""
    try:
        import matplotlib as mpl
    except ImportError:
        print("no picture: matplotlib is not installed", file=sys.stderr)
        return
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 6))
    for way, colour in (("xla", "tab:blue"), ("shardy", "tab:orange"), ("rink", "tab:green")):
        points = [(r["ways"][way]["ms"], r["ways"]["best"]["ms"]) for r in results if {way, "best"} <= set(r["ways"])]
        if points:
            axes.scatter(*zip(*points, strict=True), s=12, label=way, color=colour)
    low, high = axes.get_xlim()
    axes.plot([max(low, 0.1), high], [max(low, 0.1), high], color="grey")
    axes.set(xscale="log", yscale="log", xlabel="the other way, ms", ylabel="best, ms")
    axes.legend()
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", action="append", choices=MESHES, help="may be given several times; default: all")
    parser.add_argument("--problems", type=int, default=10, help="for each mesh")
    parser.add_argument("--uneven", type=int, default=2, help="more problems for each mesh, that do not divide")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-mb", type=float, default=8)
    parser.add_argument("--max-mb", type=float, default=64)
    parser.add_argument("--hard", metavar="FILE", help="only the problems of this file")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", metavar="FILE", help="write every number as JSON")
    parser.add_argument("--picture", metavar="FILE", help="draw the scatter of times")
    parser.add_argument("--child", choices=("shardy", "measure"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.repeats)
        return 0
    low, high = arguments.min_mb * 2**20, arguments.max_mb * 2**20
    if arguments.hard:
        problems = hard(arguments.hard)
    else:
        problems = [] if arguments.mesh else paper()
        for mesh in arguments.mesh or MESHES:
            problems += [sample(mesh, arguments.seed, k, low, high, False) for k in range(arguments.problems)]
            problems += [sample(mesh, arguments.seed, k, low, high, True) for k in range(arguments.uneven)]
    results = run(problems, arguments.repeats)
    report(results)
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(results, indent=1))
    if arguments.picture:
        scatter(results, arguments.picture)
    return 0


def run(problems: list[Problem], repeats: int) -> list[dict[str, Any]]:
    from rich.progress import track

    results = []
    batches = itertools.groupby(sorted(problems, key=lambda p: math.prod(p["mesh"])), lambda p: math.prod(p["mesh"]))
    for devices, batch in batches:
        shardy, runner = Child("shardy", devices, repeats), Child("measure", devices, repeats)
        for problem in track(list(batch), f"{devices} devices"):
            made = shardy.ask(problem)
            if "text" in made:
                problem["shardy"] = made["text"]
            result = runner.ask(problem)
            if "error" in result and "shardy" in problem:  # perhaps only that program ends the process
                del problem["shardy"]
                made = {"error": "XLA did not survive its program"}
                result = runner.ask(problem)
            if "error" in result:
                print(f"{problem['name']}: {result['error']}", file=sys.stderr)
                continue
            if "error" in made:
                result["failed"]["shardy"] = made["error"]
            results.append(result)
        shardy.close()
        runner.close()
    return results


if __name__ == "__main__":
    raise SystemExit(main())
