"""shardpass-plan: show the steps that convert an array from one sharding to another, with their cost."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardpass.cli import plan_between
from shardpass.cli.common import (
    add_machine,
    add_target,
    argument_parser,
    command,
    make_console,
    number_of,
    use_target,
    write_output,
)
from shardpass.diagnostics import ShardpassError, printable
from shardpass.diagnostics.table_redistribute import OVER_LIMIT, SHAPE

if TYPE_CHECKING:
    from shardpass.redistribute import Plan

DESCRIPTION = """Plan the redistribution of one array from the sharding SOURCE to the sharding TARGET, over the same
devices. Prints each step with its mesh axes, its tile, the bytes received by the busiest device, and the live
memory; then a lower bound on the bytes of any plan, the rejected candidates, and the other planner's plan. With
--target-mesh or lists of devices, plans the messages between two sets of devices, and prints the bytes from each
sender to each receiver. With --show SHARDING TYPE, draws the devices of each tile of an array instead."""

PLANNED_FOR = (
    "the machine for which planner best estimates the time of a plan: h100, v5p, or another of "
    "docs/reference/machines.md; or a file NAME.toml, such as shardpass calibrate writes (default: that of "
    "SHARDPASS_MACHINE, or h100)"
)

EXAMPLES = """examples:
  shardpass plan 'f32[256,128]' '{devices=[8,1]<=[8]}' '{devices=[1,8]<=[8]}'
  shardpass plan 'f32[256,128]' "P('x')" "P(None, 'x')" --mesh x=8
  shardpass plan 'f32[256,128]' '{devices=[8,1]<=[8]}' --show"""


def _parser() -> argparse.ArgumentParser:
    parser = argument_parser("plan", DESCRIPTION, EXAMPLES)
    parser.add_argument("array", metavar="TYPE", help="element type and shape of the whole array: 'f32[256,128]'")
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="the sharding before: mhlo text '{devices=[8,1]<=[8]}'; or, with --mesh, JAX's \"P('x', None)\", Shardy's "
        "'#sdy.sharding<@mesh, [{\"x\"}, {}]>', or a distributed type '[32{\"x\"}128, 64]'",
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help="the sharding after, likewise")
    parser.add_argument(
        "--mesh", metavar="AXES", help="the mesh whose axes the shardings name: x=4,y=2, or mesh['x'=4,'y'=2]"
    )
    parser.add_argument("--planner", choices=("best", "rink"), default="best", help="the planner (default: best)")
    parser.add_argument(
        "--devices",
        type=number_of("devices", 1, 2**20),
        metavar="N",
        help="the number of devices, for shardings that do not name them",
    )
    add_machine(parser, PLANNED_FOR)
    add_target(parser, "compiled_for")
    parser.add_argument(
        "--memory-limit",
        default="max",
        metavar="BYTES",
        help="the most memory alive on a device during a step (24MiB, 1048576); none; or max (default), which limits "
        "tiles to the larger of the source tile and the target tile",
    )
    plan_between.add_arguments(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="print the plan as JSON")
    what.add_argument("--module", action="store_true", help="print the program that each device runs, as StableHLO")
    parser.add_argument(
        "--svg",
        metavar="FILE",
        help="draw the tile that each device holds after each step; or the bytes from device to device",
    )
    parser.add_argument(
        "--show", action="store_true", help="draw SOURCE and TARGET; or, without a target, --show SHARDING TYPE"
    )
    return parser


@command
def main(argv: Sequence[str]) -> int:
    parser = _parser()
    arguments = parser.parse_args(argv)
    use_target(arguments, "compiled_for", compiles=False)
    if arguments.target is None:
        if not arguments.show:
            parser.error("the following arguments are required: TARGET")
        _show_one(arguments)
        return 0
    element, shape = array_type(arguments.array)
    if plan_between.is_between(arguments):
        return plan_between.run(parser, arguments, element, shape)
    plan, others = _plans(shape, element, arguments)
    if arguments.svg:
        from shardpass.redistribute.drawing import plan_svg

        write_output(arguments.svg, plan_svg(plan))
    if arguments.json:
        print(json.dumps(as_json(plan, others), indent=2))
    elif arguments.module:
        print(plan.to_module())
    else:
        _print_table(plan, others)
        if arguments.show:
            _show(plan)
    return 0


def _show_one(arguments: argparse.Namespace) -> None:
    from shardpass.report.picture import files_for, pictures_of

    pictures = pictures_of(arguments.array, arguments.source)
    console = make_console()
    for one in pictures:
        console.print(one)
    if arguments.svg:
        for path, one in zip(files_for(Path(arguments.svg), len(pictures)), pictures, strict=True):
            write_output(str(path), one.svg())


def _plans(shape: tuple[int, ...], element: str, arguments: argparse.Namespace) -> tuple[Plan, dict[str, Plan | None]]:
    """Plan with the requested planner and with all others. Other planners without a plan within the limit give None."""
    from shardpass.redistribute import PLANNERS, plan_redistribution
    from shardpass.sharding.notations.partition_spec import read_any, read_mesh

    mesh = None if arguments.mesh is None else read_mesh(arguments.mesh)
    source, target = (read_any(text, shape, mesh) for text in (arguments.source, arguments.target))

    def ask(planner: str) -> Plan:
        return plan_redistribution(
            shape,
            element,
            source,
            target,
            planner=planner,
            num_devices=arguments.devices,
            machine=arguments.machine,
            memory_limit=arguments.memory_limit,
        )

    plan, others = ask(arguments.planner), dict.fromkeys(p for p in PLANNERS if p != arguments.planner)
    for planner in others:
        try:
            others[planner] = ask(planner)
        except ShardpassError as failure:
            if failure.diagnostics[0].code != OVER_LIMIT.id:
                raise
    return plan, others


_ARRAY = re.compile(r"\s*(?P<element>[A-Za-z][\w<>]*)\s*\[(?P<sizes>[^\[\]]*)\]\s*")


def array_type(text: str) -> tuple[str, tuple[int, ...]]:
    """Read ``f32[256,128]`` as element type and shape. Raises ShardpassError (SP406)."""
    match = _ARRAY.fullmatch(text)
    if match is None:
        raise SHAPE.error(text=text, reason="it is not an element type followed by sizes in brackets")
    sizes = []
    for part in match["sizes"].split(",") if match["sizes"].strip() else ():
        if not re.fullmatch(r"\s*[0-9]{1,18}\s*", part):
            raise SHAPE.error(text=text, reason=f"{part.strip()!r} is not a size")
        sizes.append(int(part))
    return match["element"], tuple(sizes)


def as_json(plan: Plan, others: Mapping[str, Plan | None]) -> dict[str, Any]:
    """Collect every fact of the plan, and the prices of the other planners, for JSON."""
    from shardpass.redistribute.terms.limit import show_limit

    return {
        "shape": list(plan.shape),
        "element_type": plan.element_type.mlir,
        "source": str(plan.source),
        "target": str(plan.target),
        "num_devices": plan.num_devices,
        "planner": plan.planner,
        "source_tile": list(plan.source_tile),
        "target_tile": list(plan.target_tile),
        "steps": [
            {
                "kind": step.kind,
                "axes": list(step.axes),
                "groups": step.groups.tolist(),
                "tile_before": list(step.tile_before),
                "tile_after": list(step.tile_after),
                "bytes": step.bytes,
                "live": step.live,
            }
            for step in plan.steps
        ],
        "bytes_received": plan.bytes_received,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "peak_bytes": plan.peak_bytes,
        "peak_live_bytes": plan.peak_live_bytes,
        "received": plan.received.tolist(),
        "profile": plan.profile,
        "memory_limit": show_limit(plan.memory_limit),
        "seconds": plan.seconds,
        "refused": [refusal._asdict() for refusal in plan.refused],
        "planners": {
            name: {"bytes_received": p.bytes_received, "steps": len(p.steps), "seconds": p.seconds} if p else None
            for name, p in {plan.planner: plan, **others}.items()
        },
    }


def _print_table(plan: Plan, others: Mapping[str, Plan | None]) -> None:
    from rich.table import Table

    from shardpass.redistribute.terms.limit import show_bytes

    console = make_console()
    extent = f"{plan.element_type}[{','.join(map(str, plan.shape))}]"
    console.print(f"{extent} on {plan.num_devices} devices, planner {plan.planner}", markup=False)
    console.print(printable(f"  from {plan.source}"), markup=False, soft_wrap=True)
    console.print(printable(f"  to   {plan.target}"), markup=False, soft_wrap=True)
    if plan.steps:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("step", "over axes", "groups", "tile", "received", "live"):
            table.add_column(name, justify="right" if name in ("received", "live") else "left")
        table.add_row("", "", "", _extent(plan.source_tile), "", show_bytes(_bytes(plan, plan.source_tile)))
        for step in plan.steps:
            table.add_row(
                step.kind,
                printable(", ".join(step.axes)),
                _groups(step.kind, step.groups.shape),
                _extent(step.tile_after),
                show_bytes(step.bytes),
                show_bytes(step.live),
            )
        console.print(table)
    else:
        console.print("every device already holds what it needs: nothing to do")
    console.print(summary(plan), soft_wrap=True)
    for refusal in (r for r in plan.refused if r.way not in others):
        console.print(f"refused {refusal.way}: {refusal.why}", soft_wrap=True)
    for name, other in others.items():
        outcome = f"{summary(other)}, in {_steps(len(other.steps))}" if other else "no plan within the memory limit"
        console.print(f"planner {name}: {outcome}", soft_wrap=True)


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"


def summary(plan: Plan) -> str:
    """Describe the bytes received with their lower bound, and the peak of memory."""
    from shardpass.redistribute.terms.limit import show_bytes

    bound = plan.lower_bound_bytes
    peak = f"peak tile {show_bytes(plan.peak_bytes)}, live {show_bytes(plan.peak_live_bytes)}"
    if bound:
        least = f"{plan.bytes_received / bound:.2f}x the least possible {show_bytes(bound)}"
    else:
        least = "the least possible" if not plan.bytes_received else "though nothing need move"
    return f"received {show_bytes(plan.bytes_received)} ({least}), {peak}"


def _groups(kind: str, shape: tuple[int, ...]) -> str:
    if kind == "dynamic_slice":
        return ""
    return f"{shape[0]} pairs" if kind == "collective_permute" else f"{shape[0]} of {shape[1]}"


def _extent(tile: tuple[int, ...]) -> str:
    return "x".join(map(str, tile)) or "scalar"


def _bytes(plan: Plan, tile: tuple[int, ...]) -> int:
    elements = 1
    for n in tile:
        elements *= n
    return plan.element_type.bytes(elements)


def _show(plan: Plan) -> None:
    from shardpass.report.picture import picture

    for sharding in (plan.source, plan.target):
        make_console().print(picture(sharding, plan.shape))
