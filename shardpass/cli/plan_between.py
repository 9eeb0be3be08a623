"""shardpass-plan between two sets of devices: the messages, and the bytes between each sender and receiver."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardpass.cli.common import make_console, write_output
from shardpass.diagnostics import printable

if TYPE_CHECKING:
    from shardpass.redistribute import TransferPlan

MOST_IDS = 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    sets = parser.add_argument_group("from one set of devices to another (docs/device_sets.md)")
    sets.add_argument("--target-mesh", metavar="AXES", help="the mesh whose axes TARGET names, where this is another")
    for side, name in (("source", "SOURCE"), ("target", "TARGET")):
        sets.add_argument(
            f"--{side}-devices",
            type=device_ids,
            metavar="IDS",
            help=f"the devices of {name}, in its order: 0-5, or 8,9,12-15 (default: 0, 1, ...)",
        )


def device_ids(text: str) -> tuple[int, ...]:
    """Read device ids such as ``0-5,8``."""
    ids: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,12})(?:-([0-9]{1,12}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if last < first or last - first >= MOST_IDS or len(ids) >= MOST_IDS:
            raise argparse.ArgumentTypeError(f"{text!r} is no list of devices such as 0-5 or 8,9,12-15")
        ids += range(first, last + 1)
    return tuple(ids)


def is_between(arguments: argparse.Namespace) -> bool:
    return any(x is not None for x in (arguments.target_mesh, arguments.source_devices, arguments.target_devices))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace, element: str, shape: Sequence[int]) -> int:
    """Plan and print. The options of collectives are refused."""
    for given, option in ((arguments.module, "--module"), (arguments.planner == "rink", "--planner rink")):
        if given:
            parser.error(f"{option} is for a redistribution on one set of devices")
    plan = _plan(arguments, element, tuple(shape))
    if arguments.svg:
        from shardpass.redistribute.between.picture import transfers_svg

        write_output(arguments.svg, transfers_svg(plan))
    if arguments.json:
        print(plan.json())
        return 0
    _print(plan)
    if arguments.show:
        from shardpass.report.picture import picture

        (array,) = plan.arrays
        for side in (array.source, array.target):
            make_console().print(picture(side.sharding, shape))
    return 0


def _plan(arguments: argparse.Namespace, element: str, shape: tuple[int, ...]) -> TransferPlan:
    from shardpass.redistribute import plan_redistribution
    from shardpass.sharding.notations.partition_spec import read_any, read_mesh

    before = None if arguments.mesh is None else read_mesh(arguments.mesh)
    after = before if arguments.target_mesh is None else read_mesh(arguments.target_mesh)
    source, target = read_any(arguments.source, shape, before), read_any(arguments.target, shape, after)
    lists = [
        listed if listed is not None else tuple(range(sharding.num_devices or arguments.devices or 1))
        for listed, sharding in ((arguments.source_devices, source), (arguments.target_devices, target))
    ]
    return plan_redistribution(
        shape,
        element,
        source,
        target,
        source_devices=lists[0],
        target_devices=lists[1],
        machine=arguments.machine,
        memory_limit=arguments.memory_limit,
    )


def _print(plan: TransferPlan) -> None:
    from rich.table import Table

    from shardpass.redistribute.between.picture import traffic
    from shardpass.redistribute.terms.limit import show_bytes

    console = make_console()
    console.print(printable(str(plan)), markup=False, soft_wrap=True)
    drawn = traffic(plan)
    if not drawn.bytes.size:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", title="from (down) to (across)", title_justify="left")
    table.add_column("")
    for name in drawn.receivers:
        table.add_column(name, justify="right")
    for name, row in zip(drawn.senders, drawn.bytes.tolist(), strict=True):
        table.add_row(name, *(show_bytes(round(size)) if size else "-" for size in row))
    console.print(table)
