"""The picture of compile times: time against ops, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import matplotlib as mpl
from matplotlib.figure import Figure

from tools.bench.compile_programs import unrolled

OURS, PEER = "tab:blue", "tab:orange"


class Measured(Protocol):
    """A row of tools/bench/compile.py."""

    @property
    def program(self) -> str: ...
    @property
    def mesh(self) -> str: ...
    @property
    def ops(self) -> int: ...
    @property
    def total(self) -> float: ...
    @property
    def passes(self) -> dict[str, float]: ...
    @property
    def shardy(self) -> dict[str, float]: ...


def draw(results: Sequence[Measured], path: Path) -> None:
    """One line for shardpass, one for Shardy, a thin one for each pass of shardpass, over the unrolled transformers.

    Other programs are single points, beside their names.
    """
    figure = Figure(figsize=(9, 6))
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log")
    names = unrolled([r.program for r in results])
    series = sorted((r for r in results if r.program in names), key=lambda r: r.ops)
    others = [r for r in results if r.program not in names]
    if series:
        _passes(axes, series)
        axes.plot([r.ops for r in series], [1e3 * r.total for r in series], "o-", color=OURS, linewidth=2.5)
        peers = [(r.ops, 1e3 * sum(r.shardy.values())) for r in series if r.shardy]
        axes.plot([x for x, _ in peers], [y for _, y in peers], "s-", color=PEER, linewidth=2.5)
    for r in others:
        axes.plot([r.ops], [1e3 * r.total], "o", color=OURS, markerfacecolor="white")
        if r.shardy:
            axes.plot([r.ops], [1e3 * sum(r.shardy.values())], "s", color=PEER, markerfacecolor="white")
    for ops in {r.ops for r in others}:  # programs with as many ops share a label
        here = [r for r in others if r.ops == ops]
        place, name = (ops, 1e3 * max(r.total for r in here)), ", ".join(r.program for r in here)
        axes.annotate(name, place, (-5, 8), textcoords="offset points", fontsize=8, ha="right")
    axes.plot([], [], "o-", color=OURS, linewidth=2.5, label="shardpass, all passes in one call")
    axes.plot([], [], "s-", color=PEER, linewidth=2.5, label="Shardy's C++ passes")
    axes.plot([], [], "-", color="0.65", label="one pass of shardpass")
    axes.set(
        xlabel="ops of the program",
        ylabel="time, ms (lower is better)",
        title=f"Time to partition a training step for {results[0].mesh} devices",
    )
    axes.grid(which="major", color="0.9")
    axes.legend(loc="upper left", frameon=False)
    axes.text(
        0.99, 0.01, "lines: transformers of 2 to 96 layers; open marks: other programs",
        transform=axes.transAxes, ha="right", fontsize=8, color="0.35",
    )  # fmt: skip
    figure.tight_layout()
    with mpl.rc_context({"svg.hashsalt": "shardpass"}):  # the same picture for the same numbers
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _passes(axes: Any, series: Sequence[Measured]) -> None:
    """Thin lines, named at their last point; names keep a distance from each other."""
    last, floor = series[-1], 0.0
    for name in sorted(last.passes, key=lambda name: last.passes[name]):
        times = [1e3 * r.passes[name] for r in series]
        axes.plot([r.ops for r in series], times, "-", color="0.65", linewidth=0.8)
        floor = max(times[-1], 1.22 * floor)
        axes.annotate(
            name.removeprefix("shardpass-"), (1.05 * last.ops, floor), fontsize=7, color="0.45", va="center"
        )  # fmt: skip
    axes.set_xlim(right=1.7 * last.ops)
