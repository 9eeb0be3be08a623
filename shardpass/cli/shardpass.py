"""shardpass: one command for all. ``shardpass explain ...`` is ``shardpass-explain ...``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from shardpass.cli.common import argument_parser, guarded

COMMANDS: Mapping[str, str] = {
    "opt": "run passes on a module",
    "explain": "list the collectives of a program by its lines",
    "suggest": "find the annotations that make a program cheapest",
    "pin": "write decisions as constraints for XLA's partitioner",
    "check": "find invalid shardings",
    "check-replication": "find outputs that claim to be replicated and may not be",
    "plan": "plan the redistribution of an array",
    "prove": "prove that a partitioned program computes a whole one",
    "budget": "write down the collectives of programs, and fail when they need more",
    "diff": "compare the collectives of two programs or revisions",
    "run": "run a program on N devices",
    "calibrate": "measure this machine, and write its file",
    "machines": "list the machines that machine= takes",
}
DESCRIPTION = f"""Commands: {"; ".join(f"{name}, to {purpose}" for name, purpose in COMMANDS.items())}.
Each says with --help what it takes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status of the command that is named first."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words and words[0] in COMMANDS:
        command = import_module(f"shardpass.cli.{words[0].replace('-', '_')}")
        if argv is not None:
            return int(command.main(words[1:]))
        sys.argv[1:] = words[1:]  # the process is that command
        return int(command.main())
    return guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = argument_parser("shardpass", DESCRIPTION)
    parser.add_argument("command", metavar="COMMAND", choices=tuple(COMMANDS), help=", ".join(COMMANDS))
    parser.parse_args(argv)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
