"""``Plan``, the answer of a planner: its steps, their price, and the program that carries them out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

from shardpass.diagnostics.printable import joined
from shardpass.element_types import ElementType
from shardpass.html_table import html_table
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.program.ops import DeviceProgram
from shardpass.redistribute.program.steps import Refusal, Step
from shardpass.redistribute.terms.limit import Limit
from shardpass.sharding import Sharding


@dataclass(frozen=True, eq=False)
class Plan:
    """The steps that convert each device's source tile to its target tile.

    Attributes:
        shape, element_type: the shape and element type of the whole array.
        source, target: the shardings.
        steps: slices and collectives, in order. Empty if every device already has its target tile.
        program: the same steps as ops on the local array (``shardpass.redistribute.program.ops``).
        source_tile, target_tile: the shape of the local array before and after.
        bytes_received: the bytes received by the device that receives most, its own data not counted.
        lower_bound_bytes: a lower bound on the bytes received by any plan for this problem: the part of a device's
            target tile that its source tile lacks, for the device that lacks most.
        peak_bytes: the size of the largest tile of any step.
        peak_live_bytes: the most bytes that are alive at the same time on a device: the operand and result of a step,
            and the buffers that rounds fill (``shardpass.redistribute.program.memory``).
        received: the bytes received by each device, int64 [num_devices].
        profile, memory_limit: the name of the machine and the memory limit with which the plan was chosen.
        seconds: the modeled time on that machine, local work included.
        local_seconds: the part of ``seconds`` spent in slices, transposes and concatenations between the collectives.
        refused: the other candidates, with the reason why each was not chosen.
    """

    shape: tuple[int, ...]
    element_type: ElementType
    source: Sharding
    target: Sharding
    num_devices: int
    planner: str
    steps: tuple[Step, ...]
    program: DeviceProgram
    source_tile: tuple[int, ...]
    target_tile: tuple[int, ...]
    lower_bound_bytes: int
    peak_live_bytes: int
    received: IntArray = field(repr=False)
    profile: str
    memory_limit: Limit
    seconds: float
    local_seconds: float
    refused: tuple[Refusal, ...] = field(repr=False)

    @cached_property
    def bytes_received(self) -> int:
        return int(self.received.max(initial=0))

    @cached_property
    def peak_bytes(self) -> int:
        tiles = [self.source_tile, self.target_tile]
        tiles += [tile for step in self.steps for tile in (step.tile_before, step.tile_after)]
        return max(self.element_type.bytes(math.prod(tile)) for tile in tiles)

    @property
    def is_identity(self) -> bool:
        return not self.program

    def to_module(self) -> str:
        """Return the text of the partitioned module ``main(tile) -> tile`` (docs/architecture.md)."""
        # Imported on the first call: it loads MLIR, which planning does without.
        from shardpass.redistribute.program.module import LocalTile, module_text

        ends = LocalTile(self.source, self.source_tile), LocalTile(self.target, self.target_tile)
        return module_text(self.program, self.shape, self.element_type, self.num_devices, *ends)

    def __repr__(self) -> str:
        first, *_, last = str(self).splitlines()
        steps = "1 step" if len(self.steps) == 1 else f"{len(self.steps)} steps"
        return f"<Plan {first}; {steps}, {last.strip()}>"

    def _repr_html_(self) -> str:
        """Return the steps as a table, for notebooks."""
        first, *_, last = str(self).splitlines()
        rows = [
            (step.kind.value, ", ".join(step.axes), str(list(step.tile_before)), str(list(step.tile_after)), step.bytes)
            for step in self.steps
        ]
        return html_table(first, ("step", "over", "tile before", "after", "bytes received"), rows, last.strip())

    def __str__(self) -> str:
        extent = "x".join(map(str, (*self.shape, self.element_type)))
        lines = [f"{extent}: {self.source} -> {self.target} on {self.num_devices} devices"]
        lines += [f"  {step}" for step in self.steps] or ["  nothing to do"]
        bound = self.lower_bound_bytes
        ratio = f" ({self.bytes_received / bound:.2f}x the least possible {bound})" if bound else ""
        lines.append(
            f"  received {self.bytes_received} bytes{ratio}, peak tile {self.peak_bytes} bytes, "
            f"live together {self.peak_live_bytes} bytes"
        )
        return joined(lines)
