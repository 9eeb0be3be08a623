"""shardpass calibrate: measure the machine that JAX uses here, and write its file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from shardpass.cli.common import argument_parser, command, number_of, write_output

if TYPE_CHECKING:
    from shardpass.calibrating.calibrate import Calibration
    from shardpass.calibrating.measure import Show

MOST_VIRTUAL = 64
DESCRIPTION = """Measures what collectives, memory, products of matrices and local copies take on the devices that JAX
has here, and writes a file that machine= and --machine read. Without accelerators it measures virtual devices of the
CPU. It takes a minute or two; nothing else should run meanwhile. How close the model comes is printed on stderr."""

EXAMPLES = """examples:
  shardpass calibrate -o here.toml
  shardpass calibrate --devices 4 --sizes 1MiB"""


@command
def main(argv: Sequence[str]) -> int:
    """Run ``shardpass calibrate``; return its exit status: 0 on success, 1 for bad input, 2 for bad usage."""
    parser = argument_parser("calibrate", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("-o", "--output", default="-", metavar="FILE", help="the file to write, NAME.toml; - is stdout (default)")
    add(
        "--devices",
        type=number_of("devices", 1, MOST_VIRTUAL),
        metavar="N",
        help="how many devices to measure, an even number (default: all that JAX has; 8 virtual ones on a CPU)",
    )
    add("--sizes", default="64KiB,1MiB,8MiB", metavar="BYTES", help="of a tile, with commas (default: %(default)s)")
    add(
        "--repeats",
        type=number_of("repeats", 1, 9999),
        default=15,
        metavar="N",
        help="calls per sample (default: 15)",
    )
    add("--name", metavar="NAME", help="of the machine (default: that of FILE, or measured)")
    args = parser.parse_args(argv)
    sizes = _sizes(parser, args.sizes)
    if args.devices is not None and args.devices % 2:
        parser.error(f"--devices is {args.devices}, but groups of two are measured: give an even number")
    name = args.name or ("measured" if args.output == "-" else _stem(args.output))

    import jax

    jax.config.update("jax_num_cpu_devices", args.devices or 8)
    there = len(jax.devices())
    devices = args.devices or there - there % 2
    if not 2 <= devices <= there:
        parser.error(f"{devices or there} devices are to be measured, but JAX has {there}: give --devices from 2 up")

    from shardpass import __version__
    from shardpass.calibrating.calibrate import calibrate
    from shardpass.calibrating.machine_file import machine_toml
    from shardpass.calibrating.memory import keep_freed_memory

    keep_freed_memory()
    with _progress() as show:
        result = calibrate(devices, sizes, args.repeats, name, show, by=f"shardpass calibrate, version {__version__}")
    _print(result)
    write_output(args.output, machine_toml(result.machine, result.note))
    return 0


def _stem(path: str) -> str:
    from pathlib import Path

    return Path(path).stem


def _sizes(parser: object, text: str) -> list[int]:
    from shardpass.diagnostics import ShardpassError
    from shardpass.redistribute.terms.limit import read_limit

    try:
        sizes = [read_limit(part) for part in text.split(",")]
    except ShardpassError:
        sizes = [None]
    if any(not isinstance(size, int) or not 64 <= size <= 1 << 34 for size in sizes):
        parser.error(f"--sizes is {text[:40]!r}: give bytes from 64 to 16GiB, such as 64KiB,1MiB")  # type: ignore[attr-defined]
    return [int(size) for size in sizes if size]


@contextmanager
def _progress() -> Iterator[Show]:
    """Yield a function that shows each piece of work on stderr, where that is a terminal."""
    from rich.console import Console
    from rich.status import Status

    with Status("", console=Console(stderr=True, highlight=False)) as status:
        yield lambda text: status.update(text) if sys.stderr.isatty() else None


def _print(result: Calibration) -> None:
    from rich.console import Console
    from rich.table import Table

    from shardpass.redistribute.terms.limit import show_bytes

    console = Console(stderr=True, highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("sample", "received", "copied", "measured", "modelled", "off by"):
        table.add_column(column, justify="left" if column == "sample" else "right")
    for sample, measured, error in zip(result.samples, result.seconds, result.off, strict=True):
        table.add_row(
            sample.name,
            show_bytes(sample.received + sample.reduced),
            show_bytes(sample.work.bytes),
            f"{1e3 * measured:.3f} ms",
            f"{1e3 * result.fitted.seconds(sample):.3f} ms",
            f"{error:.2f}x",
        )
    console.print(table)
    if result.refused:
        console.print(f"XLA does not compile here: {', '.join(result.refused)}", soft_wrap=True)
    (link,) = result.machine.links
    console.print(
        f"latency {1e6 * link.latency:.4g} us, bandwidth {link.bandwidth / 1e9:.4g} GB/s, memory "
        f"{result.machine.memory_bandwidth / 1e9:.4g} GB/s, beside {1e6 * result.fitted.call:.4g} us for each call; "
        f"{result.note}",
        soft_wrap=True,
    )
