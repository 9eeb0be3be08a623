"""Small programs that measure collectives and local work.

One plan of one step for each kind that redistributions use, an all_reduce, a reduce_scatter and a
collective_broadcast, in groups of two devices up to all; one and several permutes in a row, which tell the latency of
a collective from that of a call; a transpose alone; and all_to_alls whose pieces are joined in runs of several
lengths, or one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardpass.cost.collective import ALL_REDUCE, BROADCAST, FACTS, REDUCE_SCATTER, bytes_received
from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine
from shardpass.redistribute import plan_redistribution
from shardpass.redistribute.program.local_work import LocalWork, local_work

CHAIN = 8  # permutes in a row
RUNS = (12, 252, 4092)  # bytes, of joined pieces; no powers of two, by which division is a shift
# Machines that make the planner build one form or another.
BYTES = Machine("bytes", "", math.inf, math.inf, {"f32": 1e12}, (Switch(None, 0.0, 1e9),), {}, ())
IN_LOOPS = replace(BYTES, name="in loops")
IN_RUNS = replace(BYTES, name="in runs", local={"elements": 1.0, "places": 1.0})
ONE_BY_ONE = replace(BYTES, name="one by one", local={"runs": 1.0})
PIECES = replace(IN_RUNS, name="by pieces", local={**IN_RUNS.local, "gathers_by_pieces": True})
SLICES = replace(IN_RUNS, name="by slices", local={**IN_RUNS.local, "cuts_by_slices": True})
SUM = """({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        })"""


@dataclass(frozen=True)
class Sample:
    """A program to measure: its collectives, the bytes a device receives, and its local work.

    ``reduced``: bytes received by all_reduces, for which switches may have a rate of its own. ``traffic``: bytes that
    go through memory beside the local work.
    """

    name: str
    module: str
    shape: tuple[int, ...]  # of the whole argument
    collectives: int
    received: int
    work: LocalWork
    element: str = "f32"
    reduced: int = 0
    traffic: int = 0

    @property
    def row(self) -> tuple[float, ...]:
        """Return the amount of each coefficient of ``fit.Fit``."""
        return (1.0, self.collectives, self.received, self.reduced, *self.work)


def groups_of(devices: int) -> list[int]:
    """List sizes of groups: 2, 4, ... and all."""
    return sorted({devices, *(2**k for k in range(1, devices.bit_length()) if devices % 2**k == 0)})


def samples(devices: int, sizes: Sequence[int]) -> Iterator[Sample]:
    """Make samples of tiles of ``sizes`` bytes."""
    for size in sizes:
        yield _transpose(devices, size)
        for group in groups_of(devices):
            mesh = f"mesh['g'={group},'rest'={devices // group}]" if group < devices else f"mesh['g'={devices}]"
            rows = max(1, math.isqrt(size // 4) // devices) * devices
            shape = (max(1, size // 4 // rows) * group, rows)  # tiles of whole rows, and rows that divide
            split = f"{{{mesh}, [{{'g'}}, {{}}]}}"
            yield planned("all_gather", shape, split, f"{{{mesh}, [{{}}, {{}}]}}", group)
            yield planned("all_to_all", shape, split, f"{{{mesh}, [{{}}, {{'g'}}]}}", group)
            for kind in (ALL_REDUCE, REDUCE_SCATTER, BROADCAST):
                yield _collective(kind, devices, group, size)
        yield from _joined(devices, size)
        for count in (1, CHAIN):
            yield _permutes(devices, size, count)


def _joined(devices: int, size: int) -> Iterator[Sample]:
    """Yield redistributions of columns to rows that join pieces in runs or one by one."""
    mesh = f"mesh['g'={devices}]"
    columns, rows = f"{{{mesh}, [{{}}, {{'g'}}]}}", f"{{{mesh}, [{{'g'}}, {{}}]}}"
    for form, machine in (("in runs", IN_RUNS), ("one by one", ONE_BY_ONE)):
        for run in RUNS:
            shape = (max(1, size // run // devices) * devices, run // 4 * devices)
            yield planned("all_to_all", shape, columns, rows, devices, machine, f"joined {form} of {run} bytes")


def planned(
    kind: str,
    shape: tuple[int, ...],
    source: str,
    target: str,
    group: int,
    machine: Machine = BYTES,
    name: str = "",
    element: str = "f32",
) -> Sample:
    """Return the program of the plan from ``source`` to ``target``, which must be one step of ``kind``."""
    plan = plan_redistribution(shape, element, source, target, machine=machine)
    kinds = [step.kind for step in plan.steps]
    if kinds != [kind]:
        raise AssertionError(f"{source} to {target} takes {kinds} in place of one {kind}")
    work = local_work(plan.program, plan.source_tile, plan.element_type)
    return Sample(name or f"{kind} of {group}", plan.to_module(), shape, 1, plan.bytes_received, work, element)


def _transpose(devices: int, size: int) -> Sample:
    """Return a program that only copies: each device transposes its tile."""
    rows = max(1, math.isqrt(size // 4))
    columns = max(1, size // 4 // rows)
    kinds = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{rows}xf32>"
    body = f"%r = stablehlo.transpose %x, dims = [1, 0] : ({kinds[0]}) -> {kinds[1]}"
    ends = (
        end(kinds[0], (rows * devices, columns), 0, devices),
        end(kinds[1], (columns, rows * devices), 1, devices),
    )
    elements = rows * columns
    work = LocalWork(4 * elements, 0, elements, 0)
    return Sample("transpose", module(devices, kinds, ends, body), (rows * devices, columns), 0, 0, work)


def _collective(kind: str, devices: int, group: int, size: int) -> Sample:
    """Return a program of one collective of ``size`` bytes a device, in groups of adjacent devices."""
    count = max(1, size // 4 // devices) * devices
    result = count // group if kind == REDUCE_SCATTER else count
    kinds = f"tensor<{count}xf32>", f"tensor<{result}xf32>"
    members = [list(range(first, first + group)) for first in range(0, devices, group)]
    attributes = [f"replica_groups = dense<{members}> : tensor<{len(members)}x{group}xi64>", HANDLE.format(1)]
    attributes += ["scatter_dimension = 0 : i64"] if kind == REDUCE_SCATTER else []
    attributes += ["use_global_device_ids"] if FACTS[kind].by_global_ids else []
    region = "" if kind == BROADCAST else f" {SUM}"
    body = f'%r = "stablehlo.{kind}"(%x) <{{{", ".join(attributes)}}}>{region} : ({kinds[0]}) -> {kinds[1]}'
    ends = end(kinds[0], (count * devices,), 0, devices), end(kinds[1], (result * devices,), 0, devices)
    received = bytes_received(kind, 4 * count, group)
    sample = Sample(
        f"{kind} of {group}", module(devices, kinds, ends, body), (count * devices,), 1, received, LocalWork()
    )
    return replace(sample, received=0, reduced=received) if kind == ALL_REDUCE else sample


HANDLE = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"


def _permutes(devices: int, size: int, count: int) -> Sample:
    """Return a program of ``count`` permutes to the next device, to measure the latency of a permute."""
    kind, shape = f"tensor<{size // 4}xf32>", (size // 4 * devices,)
    pairs = ", ".join(f"[{d}, {(d + 1) % devices}]" for d in range(devices))
    attributes = f"source_target_pairs = dense<[{pairs}]> : tensor<{devices}x2xi64>"
    body = "\n".join(
        f"%{'r' if n == count else n} = "
        f'"stablehlo.collective_permute"(%{n - 1 if n > 1 else "x"}) <{{{attributes}, {HANDLE.format(n)}}}> : '
        f"({kind}) -> {kind}"
        for n in range(1, count + 1)
    )
    ends = (end(kind, shape, 0, devices),) * 2
    text = module(devices, (kind, kind), ends, body)
    return Sample(f"{count} collective_permute", text, shape, count, count * (size // 4) * 4, LocalWork())


def end(kind: str, shape: tuple[int, ...], dim: int, devices: int) -> str:
    """Format the attributes of an argument or result of tile type ``kind``, split along ``dim``."""
    split = ", ".join("{'g'}" if i == dim else "{}" for i in range(len(shape)))
    element = kind.removesuffix(">").rpartition("x")[2]
    return (
        f'{{mhlo.sharding = "{{manual}}", shardpass.sharding = "{{mesh[\'g\'={devices}], [{split}]}}", '
        f"shardpass.global_type = tensor<{'x'.join(map(str, shape))}x{element}>}}"
    )


def module(devices: int, kinds: tuple[str, str], ends: tuple[str, str], body: str) -> str:
    """Format a partitioned program. ``body``: computes ``%r`` of type ``kinds[1]`` from ``%x`` of ``kinds[0]``."""
    return f"""module attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{
      func.func public @main(%x: {kinds[0]} {ends[0]}) -> ({kinds[1]} {ends[1]}) {{
        {body}
        return %r : {kinds[1]}
      }}
    }}"""


def flag_samples(devices: int, size: int) -> dict[str, tuple[Sample, Sample]]:
    """Return two programs for each flag of ``[local]``; the flag is true if the second program is faster."""
    mesh = f"mesh['g'={devices}]"
    split, whole = f"{{{mesh}, [{{'g'}}, {{}}]}}", f"{{{mesh}, [{{}}, {{}}]}}"
    columns = f"{{{mesh}, [{{}}, {{'g'}}]}}"
    side = max(1, math.isqrt(size // 4) // devices) * devices
    shape = (side, side - devices if side > devices else side)

    def gathered(element: str) -> Sample:
        return planned("all_gather", shape, split, whole, devices, element=element)

    def exchanged(machine: Machine, shape: tuple[int, ...], source: str, target: str) -> Sample:
        return planned("all_to_all", shape, source, target, devices, machine)

    return {
        "gathers_by_pieces": (
            planned("all_gather", shape, columns, whole, devices),
            exchanged(PIECES, shape, columns, whole),
        ),
        "cuts_by_slices": (
            exchanged(IN_LOOPS, (side, side), split, columns),
            exchanged(SLICES, (side, side), split, columns),
        ),
        "floats_as_bits": (gathered("bf16"), gathered("ui16")),
    }
