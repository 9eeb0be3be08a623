"""The picture of measured redistributions: bytes and time at once, a point for each problem and each other way.

To the right of the middle the other way receives more bytes than shardpass, above the middle it takes more time. Axes
are ratios, on a logarithmic scale: a point at (2, 3) is a problem on which the other way receives twice as much and
takes three times as long.

    python -m tools.bench.redistribute_picture found.json docs/images/redistribution.svg
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WAYS = (("xla", "XLA's partitioner", "#3b6fb6"), ("shardy", "Shardy's passes", "#d9822b"), ("rink", "rink", "#3a8f5c"))
LEAST = 1 << 12  # bytes that a device receives, below which a ratio says nothing
SIDES = (
    (0.98, 0.97, "right", "top", "shardpass: fewer bytes, less time"),
    (0.98, 0.03, "right", "bottom", "shardpass: fewer bytes, more time"),
    (0.02, 0.97, "left", "top", "shardpass: less time"),
    (0.02, 0.03, "left", "bottom", "the other way: less time"),
)


def points(results: Sequence[dict[str, Any]], way: str) -> list[tuple[float, float]]:
    """(bytes, time) of ``way`` over those of shardpass, for each problem with communication that both get right."""
    both = [r["ways"] for r in results if {way, "best"} <= set(r["ways"]) and r["facts"]["bound"] >= LEAST]
    return [(w[way]["wire"] / w["best"]["wire"], w[way]["ms"] / w["best"]["ms"]) for w in both if w["best"]["wire"]]


def mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def draw(results: Sequence[dict[str, Any]], path: str) -> None:
    """Writes the picture to ``path``. Raises ImportError without matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "shardpass"  # the same numbers make the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 6))
    axes.axhline(1, color="#999999", linewidth=1)
    axes.axvline(1, color="#999999", linewidth=1)
    problems = 0
    for way, name, colour in WAYS:
        found = points(results, way)
        if not found:
            continue
        problems = max(problems, len(found))
        bytes_, times = zip(*found, strict=True)
        label = f"{name}: {mean(bytes_):.2f}x the bytes, {mean(times):.2f}x the time"
        axes.scatter(bytes_, times, s=14, alpha=0.7, linewidths=0, color=colour, label=label)
    for x, y, ha, va, text in SIDES:
        axes.text(x, y, text, transform=axes.transAxes, ha=ha, va=va, color="#666666", fontsize=9)
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("bytes received, the other way / shardpass")
    axes.set_ylabel("time, the other way / shardpass")
    axes.set_title(f"{problems} reshards on 8 devices: right and above the lines, shardpass is better", fontsize=11)
    ticks = [0.5, 1, 2, 4, 8, 16]
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(ticks, [f"{tick:g}x" for tick in ticks])
        axis.set_minor_formatter(mpl.ticker.NullFormatter())
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=9)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None} if path.endswith(".svg") else None)
    plt.close(figure)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("found", help="what python -m tools.bench.redistribute --out wrote")
    parser.add_argument("picture", help="a file ending in .svg or .png")
    arguments = parser.parse_args()
    draw(json.loads(Path(arguments.found).read_text()), arguments.picture)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
