"""shardpass diff: compare the collectives of two programs, revisions, or reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from shardpass.cli.color import show
from shardpass.cli.common import add_program, argument_parser, command, use_program

DESCRIPTION = """List the collectives that appeared, disappeared, moved to another line, or changed from OLD to NEW,
with lines, bytes and memory. Each is FILE.py:FUNCTION, a module, HLO, JSON from explain or budget, or an earlier
revision. To compare two versions of jax, write JSON with each version."""

EXAMPLES = """examples:
  shardpass diff HEAD~1:train.py:step train.py:step    what a change of the code changed
  shardpass budget train.py:step --format json -o old.json
  shardpass diff old.json train.py:step --format markdown"""


@command
def main(argv: Sequence[str]) -> int:
    """Return the exit status: 0, 1 bad input or (with --fail) a growth, 2 bad usage."""
    parser = argument_parser("diff", DESCRIPTION, EXAMPLES)
    add = parser.add_argument
    add("old", metavar="OLD")
    add("new", metavar="NEW")
    add("--format", choices=("text", "markdown", "json"), default="text", help="text (default), markdown, or json")
    add("--fail", action="store_true", help="exit with status 1 if NEW receives more bytes or needs more memory")
    add_program(parser, "xla", "the mesh of modules that name none: data=4,model=2")
    args = parser.parse_args(argv)
    use_program(args)
    from shardpass.cli.programs import Asked, collectives_at
    from shardpass.report.diff import difference

    asked = Asked.of(args)
    diff = difference(collectives_at(args.old, asked), collectives_at(args.new, asked))
    if args.format == "json":
        print(json.dumps(diff.as_dict(), indent=1))
    else:
        (print if args.format == "markdown" else show)(diff.markdown() if args.format == "markdown" else diff)
    return 1 if args.fail and diff.costs_more else 0


if __name__ == "__main__":
    sys.exit(main())
