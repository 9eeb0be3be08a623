"""shardpass-suggest: find a few annotations that make a program cheapest on a mesh, within the memory of a device."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from shardpass.cli.color import show
from shardpass.cli.common import (
    MODULE_HELP,
    add_program,
    argument_parser,
    command,
    read_axes,
    read_input,
    read_module,
    use_program,
)
from shardpass.cli.progress import progress
from shardpass.cli.script import file_of, is_script, program_or_repairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from shardpass.ir.doors import LargeFile

DESCRIPTION = """Find the shardings of arguments and results, and the constraints, that make MODULE cheapest on its
mesh, and print the few that matter as JAX code, with their savings. Annotations in MODULE are kept. Lower with
as_text(debug_info=True) to keep the paths of arguments and the lines of ops. For a function of a script
(train.py:step) that raises a sharding type error: print the cheapest edits with which JAX traces the function, as
diffs."""

EXAMPLES = """examples:
  shardpass suggest train.py:step --memory-limit 16GiB
  shardpass suggest examples/mlp_train_step.mlir --mesh data=4,model=2"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 bad input, 2 bad usage."""
    parser = argument_parser("suggest", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("module", nargs="?", metavar="MODULE", help=MODULE_HELP)
    add(
        "--memory-limit",
        metavar="BYTES",
        help="memory of a device, as in 16GiB (default: the machine's memory; none: no limit)",
    )
    add("--effort", type=_effort, default=1, metavar="N", help="1 searches (default), 2 searches longer")
    add_program(
        parser,
        mesh="the mesh, as in data=4,model=2 (default: the mesh of MODULE)",
        partitioner="the partitioner of the program. For xla and shardy, every argument and result is annotated, "
        "and the program is compiled in a separate process (default: shardpass; with --target xla)",
    )
    add("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    use_program(args)
    data: bytes | LargeFile
    if args.module is not None and is_script(args.module):
        read_input(file_of(args.module))
        types = not args.json and args.partitioner == "shardpass"
        wanted = args.machine, types, args.memory_limit, args.partitioner, args.target
        answer = program_or_repairs(args.module, args.timeout, *wanted)
        if isinstance(answer, dict):
            (print if args.json else show)(answer["json" if args.json else "text"])
            return 0
        data, file = answer
    else:
        data, file = read_module(parser, args.module, args.timeout, args.target)

    from shardpass.advise.suggest.suggest import suggest_module

    mesh = None if args.mesh is None else read_axes(args.mesh)
    options = args.memory_limit, args.effort, args.machine, args.partitioner, args.target
    with progress("reading"):
        suggestion = suggest_module(data, file, mesh, *options)
    (print if args.json else show)(suggestion.json() if args.json else suggestion)
    return 0


def _effort(text: str) -> int:
    if text not in ("1", "2"):
        raise argparse.ArgumentTypeError(f"{text!r} is no effort: give 1 or 2")
    return int(text)
