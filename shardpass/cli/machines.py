"""shardpass machines: list the machines accepted by ``machine=``, and the default machine here."""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.cli.common import argument_parser, command, make_console

DESCRIPTION = """Lists the machines that machine= and --machine take by name. A star marks the one that is meant where
none is named: that of the environment variable SHARDPASS_MACHINE, or h100; in JAX it is what the devices are."""

EXAMPLES = """examples:
  shardpass machines"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 where SHARDPASS_MACHINE names no machine, 2 bad usage."""
    argument_parser("machines", DESCRIPTION, EXAMPLES).parse_args(argv)

    from rich.table import Table
    from rich.text import Text

    from shardpass.cost.chosen import machine_text, named_machine
    from shardpass.cost.machine import MACHINES

    usual = machine_text()
    table = Table(box=None, pad_edge=False, show_header=False)
    for name in (*MACHINES, *(() if usual in MACHINES else (usual,))):
        table.add_row(Text(f"{name} *" if name == usual else name), Text(named_machine(name).about))
    make_console().print(table)
    return 0
