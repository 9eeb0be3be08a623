"""shardpass pin: a module with shardpass's decisions as sharding constraints, for XLA's own partitioner."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from shardpass.cli.color import show
from shardpass.cli.common import (
    MODULE_HELP,
    add_machine,
    add_target,
    add_timeout,
    argument_parser,
    command,
    number_of,
    read_module,
    use_target,
    write_output,
)

DESCRIPTION = """Writes MODULE with shardpass's decisions as sharding constraints, in the notation that it has (sdy or
mhlo.sharding), so that XLA's own partitioner follows them; and prints the constraints as JAX text on stderr. XLA
compiles MODULE with and without them in a child process, and those are kept with which its program is cheapest and
above the plain one in nothing. Lower with as_text(debug_info=True), so that constraints have their lines."""

EXAMPLES = """examples:
  shardpass pin train.py:step -o pinned.mlir
  shardpass pin examples/mlp_train_step.mlir --no-verify"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 bad input, 2 bad usage."""
    parser = argument_parser("pin", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("module", nargs="?", metavar="MODULE", help=MODULE_HELP)
    add_timeout(parser)
    add("-o", "--output", default="-", metavar="FILE", help="where the module is written (default: stdout)")
    add("--no-verify", action="store_true", help="compile nothing: write all that shardpass decides")
    add(
        "--trials",
        type=number_of("variants", 1, 10**9),
        default=40,
        metavar="N",
        help="most variants to compile (default: 40)",
    )
    add_machine(parser)
    add_target(parser)
    add("--json", action="store_true", help="print what was pinned as JSON, in place of the module")
    args = parser.parse_args(argv)
    use_target(args)
    data, file = read_module(parser, args.module, args.timeout, args.target)

    from shardpass.advise.pin.pin import pin_module
    from shardpass.diagnostics import collect
    from shardpass.ir.context import parse_module

    module = parse_module(data, file)
    with module.context:
        with collect():
            options = {"machine": args.machine, "most": args.trials, "target": args.target}
            options["named"] = args.machine is not None
            pinned, pins = pin_module(module, verify=not args.no_verify, **options)
        if args.json:
            print(pins.json())
            return 0
        show(pins, sys.stderr)
        write_output(args.output, pinned.operation.get_asm(enable_debug_info=True))
    return 0
