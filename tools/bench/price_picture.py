"""The picture of tools/bench/price.py: measured over modelled time, a point for each plan, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import matplotlib as mpl
from matplotlib.figure import Figure

NAMED, DECADES = 6, 1e5  # programs with a name; between the ends of an axis
COLOURS = {"models": "#3b6fb6", "underspecified": "#d9822b", "examples": "#3a8f5c"}


class Plan(Protocol):
    @property
    def modelled(self) -> float: ...
    @property
    def seconds(self) -> float: ...


class Program(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def plans(self) -> Sequence[Plan]: ...


def draw(rows: Sequence[Program], path: Path) -> None:
    """A line joins the plans of one program: where it falls, the model has the order of two of them wrong.

    Programs that are furthest from the diagonal are named; those that do next to nothing may lie outside.
    """
    figure = Figure(figsize=(7.5, 6.5))
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="modelled, ms", ylabel="measured, ms", title="Steps on 8 CPU devices")
    every: list[tuple[float, float]] = []
    furthest: list[tuple[float, tuple[float, float], str]] = []
    for row in rows:
        points = sorted((1e3 * plan.modelled, 1e3 * plan.seconds) for plan in row.plans if plan.modelled)
        if not points:
            continue
        every += points
        off, place = max((abs(math.log(y / x)), (x, y)) for x, y in points)
        furthest.append((off, place, row.name.partition(".")[2]))
        colour = COLOURS.get(row.name.partition(".")[0], "#666666")
        axes.plot([x for x, _ in points], [y for _, y in points], "o-", color=colour, markersize=4, linewidth=0.8)
    if every:
        high = 2 * max(map(max, every))
        low = max(min(map(min, every)) / 2, high / DECADES)
        axes.plot([low, high], [low, high], "-", color="0.7", linewidth=1, zorder=0)
        axes.set(xlim=(low, high), ylim=(low, high))
    for _, place, name in sorted(furthest, reverse=True)[:NAMED]:
        axes.annotate(name, place, (5, 4), textcoords="offset points", fontsize=7, color="0.35")
    for name, colour in COLOURS.items():
        axes.plot([], [], "o", color=colour, label=name)
    axes.grid(which="major", color="0.92")
    axes.legend(loc="upper left", frameon=False)
    figure.tight_layout()
    with mpl.rc_context({"svg.hashsalt": "shardpass"}):  # the same picture for the same numbers
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
