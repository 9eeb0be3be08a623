"""Times the sharding language beside XLA's own parser, in one run.

    python -m tools.bench.sharding            # a table; the targets are those of docs/sharding.md

Each figure is the best of several rounds. XLA's column is jaxlib's HloSharding.from_string, str and
tile_assignment_devices on the same texts.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from shardpass.sharding import Mesh, Sharding, parse_sharding

N = 65536


def best(work: Callable[[], object], rounds: int, each: int = 1) -> float:
    """Seconds of one call."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(each):
            work()
        found.append((time.perf_counter() - start) / each)
    return min(found)


def fresh(texts: list[str]) -> Callable[[], str]:
    """A text that was not asked before, each time."""
    left = iter(texts)
    return lambda: next(left)


def long_list(rounds: int) -> list[str]:
    rng = random.Random(0)
    out = []
    for _ in range(rounds):
        devices = list(range(N))
        rng.shuffle(devices)
        out.append(f"{{devices=[256,256]{','.join(map(str, devices))}}}")
    return out


def iotas(count: int, first: int) -> list[str]:
    return [f"{{devices=[{k},16]<=[16,{k}]T(1,0) last_tile_dim_replicate}}" for k in range(first, first + count)]


def rows(rounds: int) -> list[tuple[str, float, float | None, float]]:
    """(what, seconds, seconds in XLA, the target)."""
    try:
        from jaxlib._hlo import HloSharding

        xla = HloSharding.from_string
    except ImportError:
        xla = None
    parse_sharding("{devices=[4,2]<=[2,4]T(1,0)}")

    def beside(work: Callable[[Callable[[str], object]], Callable[[], object]], each: int = 1) -> float | None:
        return None if xla is None else best(work(xla), rounds, each)

    lists = long_list(3 * rounds)
    a, b, c = lists[:rounds], lists[rounds : 2 * rounds], lists[2 * rounds :]
    out = []
    mine, theirs = fresh(a), fresh(b)
    out.append(
        (
            f"a list of {N:,} devices, parsed and printed",
            best(lambda: str(parse_sharding(mine())), rounds),
            beside(lambda read: lambda: str(read(theirs()))),
            30e-3,
        )
    )
    each = 500
    new, other = fresh(iotas(rounds * each, 1000)), fresh(iotas(rounds * each, 1000))
    out.append(
        (
            "an iota form not seen before, parsed and printed",
            best(lambda: str(parse_sharding(new())), rounds, each),
            beside(lambda read: lambda: str(read(other())), each),
            100e-6,
        )
    )
    same = "{devices=[16,16,256]<=[256,256]T(1,0) last_tile_dim_replicate}"
    out.append(
        (
            "a text seen before",
            best(lambda: parse_sharding(same), rounds, 20000),
            beside(lambda read: lambda: read(same), 2000),
            2e-6,
        )
    )
    listed = [parse_sharding(text) for text in c]
    offsets = fresh(listed)  # type: ignore[arg-type]
    out.append(
        (
            f"base offset map of {N:,} devices, arbitrary order",
            best(lambda: offsets().tile_offsets((4096, 4096)), rounds),  # type: ignore[attr-defined]
            None,
            10e-3,
        )
    )
    grids = iter([Mesh((("x", 256), ("y", 128), (f"z{k}", 2))) for k in range(rounds)])

    def iota_offsets() -> object:
        mesh = next(grids)
        return Sharding.tiled(mesh, [["y"], [mesh.names[2], "x"]]).tile_offsets((4096, 4096))

    out.append((f"base offset map of {N:,} devices, mesh axes", best(iota_offsets, rounds), None, 10e-3))
    mesh = Mesh((("x", 8), ("y", 4)))
    out.append(
        ("Sharding.tiled(mesh, dims) and str", best(lambda: str(Sharding.tiled(mesh, (("x",), ("y",)))), rounds, 5000),
         None, 2e-6)
    )  # fmt: skip
    return out


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1e6:.2f} us" if value < 1e-3 else f"{value * 1e3:.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    table = Table("what", "shardpass", "XLA", "target")
    missed = 0
    for what, ours, xla, target in rows(args.rounds):
        missed += ours > target
        table.add_row(what, f"{seconds(ours)}{'' if ours <= target else '  (!)'}", seconds(xla), seconds(target))
    Console().print(table)
    if missed:
        print(f"{missed} above the target; a busy machine slows all of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
