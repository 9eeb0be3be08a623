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
from shardpass.cli.progress import progress

DESCRIPTION = """Write MODULE with shardpass's decisions as sharding constraints, in its own notation (sdy or
mhlo.sharding), so that XLA's partitioner follows them, and print the constraints as JAX code on stderr. A child
process compiles MODULE with and without constraints, and those are kept with which XLA's program is cheapest and
never exceeds the plain one. Lower with as_text(debug_info=True) to keep the lines of constraints."""

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
    add("-o", "--output", default="-", metavar="FILE", help="write the module to FILE (default: stdout)")
    add("--no-verify", action="store_true", help="write all decisions of shardpass, without compiling")
    add(
        "--trials",
        type=number_of("variants", 1, 10**9),
        default=40,
        metavar="N",
        help="maximum number of variants to compile (default: 40)",
    )
    add_machine(parser)
    add_target(parser)
    add("--json", action="store_true", help="print the constraints as JSON instead of the module")
    args = parser.parse_args(argv)
    use_target(args)
    data, file = read_module(parser, args.module, args.timeout, args.target)

    from shardpass.advise.pin.pin import pin_module
    from shardpass.diagnostics import collect
    from shardpass.ir.context import parse_module

    module = parse_module(data, file)
    with module.context:
        with collect(), progress("compiling variants" if not args.no_verify else "deciding", passes=False):
            options = {"machine": args.machine, "most": args.trials, "target": args.target}
            options["named"] = args.machine is not None
            pinned, pins = pin_module(module, verify=not args.no_verify, **options)
        if args.json:
            print(pins.json())
            return 0
        show(pins, sys.stderr)
        write_output(args.output, pinned.operation.get_asm(enable_debug_info=True))
    return 0
