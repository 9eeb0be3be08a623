"""How long the passes take: ours, pass by pass, beside Shardy's C++ passes on the same program, interleaved.

    python tools/bench_compile.py [--layers 2 12] [--repeat 5] [--json FILE]

The program is a transformer's training step on a 4x2 mesh (data and tensor parallel), lowered by JAX. Prints medians in
milliseconds and microseconds an op. Shardy's pipeline: propagation, explicit reshards, collectives, local shapes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from jaxlib.mlir import passmanager
from rich.console import Console
from rich.progress import track
from rich.table import Table

import shardpass
from shardpass.importing.inline_calls import inline_calls
from shardpass.ir.context import parse_module
from shardpass.pipeline.named import NAMED

OURS = NAMED["partition"].split(",")
SHARDY = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
    "sdy-convert-global-to-local",
)
MODEL, HEADS, LENGTH, BATCH, HIDDEN = 256, 8, 128, 8, 1024
SHAPES = {
    "q": (MODEL, HEADS, MODEL // HEADS), "k": (MODEL, HEADS, MODEL // HEADS), "v": (MODEL, HEADS, MODEL // HEADS),
    "o": (HEADS, MODEL // HEADS, MODEL), "up": (MODEL, HIDDEN), "down": (HIDDEN, MODEL),
}  # fmt: skip
SPECS = {"q": (None, "model"), "k": (None, "model"), "v": (None, "model"), "o": ("model",),
         "up": (None, "model"), "down": ("model",)}  # fmt: skip


def _normalised(x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def _block(x: Any, p: dict[str, Any]) -> Any:
    h = _normalised(x)
    q, k, v = (jnp.einsum("btd,dhk->bthk", h, p[name]) for name in "qkv")
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / np.sqrt(MODEL // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(scores, -1), v)
    x = x + jnp.einsum("bthk,hkd->btd", mixed, p["o"])
    return x + jax.nn.gelu(_normalised(x) @ p["up"]) @ p["down"]


def program(layers: int) -> str:
    """The training step as StableHLO text with sdy shardings."""
    devices = np.array(jax.devices()[:8]).reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def named(*spec: str | None) -> NamedSharding:
        return NamedSharding(mesh, PartitionSpec(*spec))

    def loss(parameters: Any, x: Any) -> Any:
        for p in parameters:
            x = _block(x, p)
        return (x * x).mean()

    def step(parameters: Any, x: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, x)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients)

    shapes = [{name: jax.ShapeDtypeStruct(s, jnp.float32) for name, s in SHAPES.items()} for _ in range(layers)]
    shardings = [{name: named(*spec) for name, spec in SPECS.items()} for _ in range(layers)]
    jitted = jax.jit(step, in_shardings=(shardings, named("data")), out_shardings=(None, shardings))
    return jitted.lower(shapes, jax.ShapeDtypeStruct((BATCH, LENGTH, MODEL), jnp.float32)).as_text()


def ours(text: str) -> dict[str, float]:
    """Seconds of each pass."""
    module, times = parse_module(text), {}
    for name in OURS:
        start = time.perf_counter()
        module = shardpass.run_pipeline(module, f"builtin.module({name})")
        times[name] = times.get(name, 0.0) + time.perf_counter() - start  # cse runs twice
    return times


def shardys(text: str) -> dict[str, float]:
    """Seconds of each pass. The calls are inlined before: ``convert-global-to-local`` does not take them."""
    module, times = parse_module(text), {}
    with module.context:
        inline_calls(module)
        for name in SHARDY:
            manager = passmanager.PassManager.parse(f"builtin.module({name})")
            start = time.perf_counter()
            manager.run(module.operation)
            times[name.removeprefix("func.func(").partition("{")[0].rstrip(")")] = time.perf_counter() - start
    return times


def count_ops(text: str) -> int:
    module = shardpass.run_pipeline(text, "import")
    return len(list(module.body.operations[0].regions[0].blocks[0].operations))


def measure(layers: int, repeat: int) -> dict[str, Any]:
    text = program(layers)
    runs: list[tuple[dict[str, float], dict[str, float]]] = []
    for _ in track(range(repeat), f"{layers} layers"):
        runs.append((ours(text), shardys(text)))
    medians = [{name: statistics.median(run[side][name] for run in runs) for name in runs[0][side]} for side in (0, 1)]
    return {"layers": layers, "ops": count_ops(text), "shardpass": medians[0], "shardy": medians[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[2, 12])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    jax.config.update("jax_num_cpu_devices", 8)
    results = [measure(layers, arguments.repeat) for layers in arguments.layers]
    table = Table("program", "ops", "who", "pass", "ms", "us an op", title="compile time, medians")
    for result in results:
        for who in ("shardpass", "shardy"):
            total = sum(result[who].values())
            for name, seconds in [*result[who].items(), ("all", total)]:
                row = (f"{result['layers']} layers", str(result["ops"]), who, name)
                table.add_row(
                    *row, f"{seconds * 1e3:.1f}", f"{seconds * 1e6 / result['ops']:.1f}", end_section=name == "all"
                )
    Console().print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
