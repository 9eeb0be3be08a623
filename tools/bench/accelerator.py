"""The work of one device, modelled and measured: programs of practice's sizes on the accelerator that JAX has here.

    python -m tools.bench.accelerator --machine h100              model and time, a row a program
    python -m tools.bench.accelerator --machine h100 --model      the model alone, on any machine
    python -m tools.bench.accelerator --only attention --json work.json

Nothing is sent between devices: what is compared is the price of work (flops, memory traffic behind fusions, a call)
and the account of memory, which decide how much a collective may cost. Each program is called in rounds of ten without
waiting between; its time is the least round, a call.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tools.bench.report import geometric_mean, show_table

ROUNDS, CALLS = 5, 10
HEADS = ("program", "modelled ms", "measured ms", "measured/modelled", "account MiB", "XLA MiB", "account/XLA")


@dataclass(frozen=True, slots=True)
class Row:
    """One program: seconds of a call, and bytes of its temporaries; None where nothing was measured."""

    name: str
    modelled: float
    account: int
    measured: float | None = None
    xla: int | None = None


def programs() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions with the shapes of their arguments, by name."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    b16, f32, i32 = jnp.bfloat16, jnp.float32, jnp.int32

    def of(dtype: Any, *shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    def product(x: Any, y: Any) -> Any:
        return x @ y

    def norm(x: Any, scale: Any) -> Any:
        wide = x.astype(f32)
        wide = wide * lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
        return wide.astype(x.dtype) * scale

    def mlp(x: Any, up: Any, down: Any) -> Any:
        return jax.nn.gelu(x @ up) @ down

    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(f32) * q.shape[-1] ** -0.5
        length = q.shape[1]
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(q.dtype), v)

    def block(x: Any, w: dict[str, Any]) -> Any:
        h = norm(x, w["scale"])
        q, k, v = (jnp.einsum("btm,mhd->bthd", h, w[name]) for name in "qkv")
        x = x + jnp.einsum("bthd,hdm->btm", attention(q, k, v), w["o"])
        return x + mlp(norm(x, w["scale"]), w["up"], w["down"])

    def loss(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: jnp.sum(jnp.square(f(*args).astype(f32)))

    def layers(x: Any, w: Any) -> Any:
        return lax.scan(lambda h, one: (jax.checkpoint(block)(h, one), None), x, w)[0]

    def entropy(h: Any, table: Any, labels: Any) -> Any:
        logits = (h @ table.T).astype(f32)
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, labels[:, None], 1)[:, 0])

    def lookup(table: Any, tokens: Any) -> Any:
        return jnp.sum(jnp.square(table[tokens]))

    def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), m, v

    def convolution(x: Any, w: Any) -> Any:
        return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))

    def experts(x: Any, gates: Any, up: Any, down: Any) -> Any:
        inside = jnp.einsum("tm,tec->ecm", x, gates)
        return jnp.einsum("ecm,tec->tm", jax.vmap(mlp)(inside, up, down), gates)

    def decode(q: Any, keys: Any, values: Any) -> Any:
        scores = jnp.einsum("bhd,bkhd->bhk", q, keys).astype(f32)
        return jnp.einsum("bhk,bkhd->bhd", jax.nn.softmax(scores).astype(q.dtype), values)

    heads, width, inner = 32, 4096, 16384
    weights = {name: of(b16, width, heads, width // heads) for name in "qkv"}
    weights |= {"o": of(b16, heads, width // heads, width), "scale": of(b16, width)}
    weights |= {"up": of(b16, width, inner), "down": of(b16, inner, width)}
    stacked = {name: of(b16, 4, *shape.shape) for name, shape in weights.items()}
    x, rows = of(b16, 4, 2048, width), of(b16, 8192, width)
    qkv = (of(b16, 4, 2048, heads, 128),) * 3
    ffn = (of(b16, width, inner), of(b16, inner, width))
    return {
        "product bf16": (product, (of(b16, 8192, 8192),) * 2),
        "product f32": (product, (of(f32, 8192, 8192),) * 2),
        "product small": (product, (of(b16, 512, 512),) * 2),
        "product thin": (product, (of(b16, 16, 8192), of(b16, 8192, 8192))),
        "norm": (norm, (rows, of(b16, width))),
        "norm grad": (jax.grad(loss(norm)), (rows, of(b16, width))),
        "softmax": (jax.nn.softmax, (of(f32, 65536, 2048),)),
        "sum": (jnp.sum, (of(f32, 1 << 28),)),
        "transpose": (jnp.transpose, (of(f32, 16384, 8192),)),
        "mlp": (mlp, (rows, *ffn)),
        "mlp grad": (jax.grad(loss(mlp), (0, 1, 2)), (rows, *ffn)),
        "attention": (attention, qkv),
        "attention grad": (jax.grad(loss(attention), (0, 1, 2)), qkv),
        "block": (block, (x, weights)),
        "block grad": (jax.grad(loss(block), (0, 1)), (x, weights)),
        "four layers remat": (jax.grad(loss(layers), (0, 1)), (of(b16, 2, 2048, width), stacked)),
        "cross entropy grad": (jax.grad(entropy, (0, 1)), (rows, of(b16, 32768, width), of(i32, 8192))),
        "lookup grad": (jax.grad(lookup), (of(f32, 131072, 2048), of(i32, 65536))),
        "adam": (adam, (of(f32, 1 << 28),) * 4),
        "convolution": (convolution, (of(b16, 256, 56, 56, 64), of(b16, 3, 3, 64, 64))),
        "convolution grad": (
            jax.grad(loss(convolution), (0, 1)),
            (of(b16, 256, 28, 28, 256), of(b16, 3, 3, 256, 256)),
        ),
        "experts": (
            experts,
            (of(b16, 4096, 1024), of(b16, 4096, 8, 1024), of(b16, 8, 1024, 4096), of(b16, 8, 4096, 1024)),
        ),
        "decode": (decode, (of(b16, 64, 32, 128), of(b16, 64, 4096, 32, 128), of(b16, 64, 4096, 32, 128))),
        "sort": (jnp.sort, (of(f32, 1 << 24),)),
        "cumsum": (jnp.cumsum, (of(f32, 1 << 24),)),
    }


def model(name: str, f: Any, shapes: Any, machine: str) -> Row:
    """What the price and the account say of a program of one device."""
    import jax

    import shardpass

    report = shardpass.explain(jax.jit(f).lower(*shapes).as_text(), machine=machine)
    assert report.compute_seconds is not None
    assert report.memory is not None
    return Row(name, report.compute_seconds, report.memory.temporaries)


def measured(row: Row, f: Any, shapes: Any) -> Row:
    """The same row with what the device took."""
    import jax
    import jax.numpy as jnp

    def fill(at: int, shape: Any) -> Any:
        if jnp.issubdtype(shape.dtype, jnp.integer):
            return jax.random.randint(jax.random.key(at), shape.shape, 0, 32768, shape.dtype)
        return jax.random.normal(jax.random.key(at), shape.shape, shape.dtype) * 0.02

    leaves, tree = jax.tree.flatten(shapes)
    arguments = jax.tree.unflatten(tree, [fill(at, leaf) for at, leaf in enumerate(leaves)])
    compiled = jax.jit(f).lower(*shapes).compile()
    jax.block_until_ready(compiled(*arguments))
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(CALLS):
            result = compiled(*arguments)
        jax.block_until_ready(result)
        times.append((time.perf_counter() - begun) / CALLS)
    bytes_of_xla = int(compiled.memory_analysis().temp_size_in_bytes)
    return Row(row.name, row.modelled, row.account, min(times), bytes_of_xla)


def cells(row: Row) -> list[str]:
    """A line of the table."""
    out = [row.name, f"{row.modelled * 1e3:.3f}"]
    out += [f"{row.measured * 1e3:.3f}", f"{row.measured / row.modelled:.2f}"] if row.measured else ["-", "-"]
    out += [f"{row.account / 2**20:.1f}", f"{row.xla / 2**20:.1f}" if row.xla is not None else "-"]
    return [*out, f"{row.account / row.xla:.2f}" if row.xla else "-"]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", default="h100")
    parser.add_argument("--model", action="store_true", help="measure nothing")
    parser.add_argument("--only", default="", help="programs whose names contain this")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    rows = []
    for name, (f, shapes) in programs().items():
        if options.only not in name:
            continue
        row = model(name, f, shapes, options.machine)
        rows.append(row if options.model else measured(row, f, shapes))
        print("  ".join(cells(rows[-1])), file=sys.stderr, flush=True)
    both = [row.measured / row.modelled for row in rows if row.measured]
    lines = [f"measured/modelled: geometric mean {geometric_mean(both):.2f}, median {statistics.median(both):.2f}"]
    show_table(f"the work of one device, {options.machine}", HEADS, [cells(row) for row in rows], lines if both else ())
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
