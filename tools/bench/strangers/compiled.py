"""How long XLA compiles the program of a script, in processor seconds of a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

from tools.processes import MARK, module_command


def compile_seconds(target: str, env: Mapping[str, str]) -> float:
    """Return the seconds that XLA takes for ``target``, a script and a function; those of the script are not counted.

    Raises CalledProcessError where there is no program.
    """
    command = module_command("tools.bench.strangers.compiled", target)
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    return float(told.rpartition(MARK)[2])


def main(target: str) -> None:
    """Print the seconds, in the child."""
    from shardpass.cli.script import program_of
    from shardpass.ir.annotations import num_devices
    from shardpass.ir.context import parse_module
    from shardpass.targets.compiler import Compiler
    from shardpass.targets.target import cpu

    data = program_of(target)[0]
    module = parse_module(data, trusted=True)
    with module.context:
        devices = num_devices(module)
    with Compiler(cpu(devices or 1)) as compiler:
        compiler.compile(data)
        print(f"{MARK}{compiler.spent}")


if __name__ == "__main__":
    main(sys.argv[1])
