"""shardpass: one command for all subcommands. ``shardpass explain ...`` is ``shardpass-explain ...``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

from shardpass.cli.common import argument_parser, guarded

COMMANDS: Mapping[str, str] = {
    "explain": "list the collectives of a program by its lines",
    "suggest": "find the annotations that make a program cheapest",
    "check": "find invalid shardings",
    "prove": "prove that a partitioned program computes a whole one",
    "run": "run a program on N devices",
    "plan": "plan the redistribution of an array",
    "pin": "write decisions as constraints for XLA's partitioner",
    "budget": "write down the collectives of programs, and fail when they need more",
    "diff": "compare the collectives of two programs or revisions",
    "opt": "run passes on a module",
    "check-replication": "find outputs that claim to be replicated and may not be",
    "calibrate": "measure this machine, and write its file",
    "machines": "list the machines that machine= takes",
}
DESCRIPTION = """Explain, improve, check, prove and run programs that are partitioned over devices: JAX scripts,
StableHLO modules, HLO and ONNX models."""
HELP = f"""commands:
{chr(10).join(f"  {name:19}{purpose}" for name, purpose in COMMANDS.items())}

examples:
  shardpass explain train.py:step --partitioner xla
  shardpass suggest train.py:step --memory-limit 16GiB
  shardpass COMMAND --help"""
COMPLETION = """_shardpass() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
  COMPREPLY=()
  if [[ $COMP_CWORD == 1 ]]; then
    COMPREPLY=($(compgen -W "{commands}" -- "$word"))
  elif [[ $word == -* ]]; then
    local options=$(shardpass "${{COMP_WORDS[1]}}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*' | sort -u)
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  fi
}}
complete -o default -F _shardpass shardpass"""


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status of the command that is named first."""
    words = sys.argv[1:] if argv is None else list(argv)
    if words and words[0] in COMMANDS:
        command = import_module(f"shardpass.cli.{words[0].replace('-', '_')}")
        if argv is not None:
            return int(command.main(words[1:]))
        sys.argv[1:] = words[1:]  # the process is that command
        return int(command.main())
    return guarded(_run, argv)


def _run(argv: Sequence[str]) -> int:
    parser = argument_parser("", DESCRIPTION, HELP)
    parser.add_argument("command", metavar="COMMAND", nargs="?", choices=tuple(COMMANDS), help="one of those below")
    startup = "print completion for the startup file of a shell: source <(shardpass --completion bash)"
    parser.add_argument("--completion", choices=("bash", "zsh"), help=startup)
    shell = parser.parse_args(argv).completion
    if shell is None:
        parser.print_help()
        return 0
    if shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(COMPLETION.format(commands=" ".join(COMMANDS)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
