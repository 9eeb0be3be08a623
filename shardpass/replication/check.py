"""Report outputs of manual regions that may be less replicated than declared.

``shard_map``'s document asks for a static check that raises an error on all programs that may be incorrect. A program
is refused here exactly if ``flow`` cannot show that devices with one tile of an output hold equal values of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shardpass.diagnostics import Diagnostic, note
from shardpass.diagnostics.table_passes import NOT_REPLICATED
from shardpass.ir.annotations import TO_FULL, custom_call_target
from shardpass.ir.locations import place_of
from shardpass.ir.tensors import operation
from shardpass.program.manual_regions import marked_scope
from shardpass.replication.agreement import Ints
from shardpass.replication.flow import Exit, Flow
from shardpass.replication.reasons import Pair, ReasonStep, reasons
from shardpass.sharding import Mesh

MOST_NOTES = 8


def check_replication(main: Any, devices: int, mesh: Mesh) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each output of a manual region of ``main`` that may not be replicated as declared."""
    flow = Flow(main, devices)
    returned = {
        value: index for index, value in enumerate(operation(main.regions[0].blocks[0].operations[-1]).operands)
    }
    for exit_ in flow.exits.values():
        broken = _broken(exit_, mesh)
        if broken is None:
            continue
        axes, pair = broken
        value = exit_.op.operands[0]
        index = returned.get(exit_.op.results[0])
        what = f"the output {exit_.op.results[0].type}" + ("" if index is None else f" (result {index} of @main)")
        yield NOT_REPLICATED.at(
            place_of(exit_.op.location),
            what=what,
            axes=_quoted(axes),
            one=pair[0],
            other=pair[1],
            notes=_notes(flow, reasons(flow, value, pair), mesh),
        )


def varying(main: Any, devices: int, mesh: Mesh) -> Iterator[str]:
    """Yield, for each value in manual regions of ``main``, a line with the mesh axes over which it may vary."""
    flow = Flow(main, devices)
    for value, (op, index) in flow.made_by.items():
        if index < 0 or marked_scope(op) is None or custom_call_target(op) == TO_FULL:
            continue
        axes = _axes_of(flow.of(value).agreement.labels, mesh)
        name = custom_call_target(op) or op.name
        number = f"#{index}" if len(op.results) > 1 else ""
        variation = f"may vary over {_quoted(axes)}" if axes else "is the same on all devices"
        yield f"{place_of(op.location)}: {name}{number} {value.type} {variation}"


def _axes_of(labels: Ints, mesh: Mesh) -> list[str]:
    """Return the mesh axes along which the value may vary."""
    grid = labels[mesh.devices]
    return [name for axis, name in enumerate(mesh.names) if np.ptp(grid, axis=axis).any()]


def _broken(exit_: Exit, mesh: Mesh) -> tuple[Sequence[str], Pair] | None:
    """Return the axes on which a declared replication fails, and two devices that differ; None if it holds."""
    claimed, actual = exit_.claimed.labels, exit_.actual.labels
    axes: list[str] = []
    pairs: list[Pair] = []
    for axis, name in enumerate(mesh.names):
        pair = _pair_along(mesh.devices, axis, claimed, actual)
        if pair is not None:
            axes.append(name)
            pairs.append(pair)
    if pairs:
        return axes, pairs[0]
    first = np.zeros(len(claimed), dtype=np.int64)
    first[claimed[::-1]] = np.arange(len(claimed))[::-1]  # of each tile the first device that holds it
    wrong = np.flatnonzero(actual != actual[first[claimed]])
    if not len(wrong):
        return None
    one, other = int(first[claimed[wrong[0]]]), int(wrong[0])
    return _axes_between(mesh, (one, other)), (one, other)


def _pair_along(grid: Ints, axis: int, claimed: Ints, actual: Ints) -> Pair | None:
    """Find the first two devices along ``axis`` that should agree and may differ."""
    pairs: list[Pair] = []
    for shift in range(1, grid.shape[axis]):
        other = np.roll(grid, -shift, axis)
        wrong = (claimed[grid] == claimed[other]) & (actual[grid] != actual[other])
        if wrong.any():
            both = np.sort(np.stack([grid[wrong], other[wrong]], axis=1), axis=1)
            pairs.append(min(map(tuple, both.tolist())))
    return min(pairs, default=None)


def _axes_between(mesh: Mesh, pair: Pair) -> list[str]:
    """Return the axes on which the two devices differ."""
    one, other = (np.unravel_index(mesh.position[device], mesh.shape) for device in pair)
    return [name for name, a, b in zip(mesh.names, one, other, strict=True) if a != b]


def _quoted(axes: Sequence[str]) -> str:
    return " and ".join(f"'{name}'" for name in axes)


def _notes(flow: Flow, steps: Sequence[ReasonStep], mesh: Mesh) -> tuple[Diagnostic, ...]:
    """Return notes that explain the difference, one for each source line; long explanations are shortened."""
    rows: list[Diagnostic] = []
    for step in steps:
        over = _quoted(_axes_between(mesh, step.pair))
        text = f"{step.op.name} may differ between devices {step.pair[0]} and {step.pair[1]}, which differ in {over}"
        row = note(f"{text}: {step.why}" if step.why else text, place_of(step.op.location))
        if rows and not step.why and rows[-1].place == row.place:
            continue
        rows.append(row)
    if len(rows) > MOST_NOTES:
        left_out = note(f"({len(rows) - MOST_NOTES} steps are left out)")
        half = MOST_NOTES // 2
        rows = [*rows[:half], left_out, *rows[-half:]]
    return tuple(rows)
