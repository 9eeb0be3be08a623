"""What the adviser finds in the program of a script, and in how many processor seconds, as JSON from a process."""

from __future__ import annotations

import json
import resource
import sys
from functools import partial
from pathlib import Path

from tools.processes import MARK


def main(target: str, machine: str) -> None:
    """Print the report without its gap, in the child. ``target``: a script and a function.

    Seconds: "script" of its first run, "compile" of XLA, "table" of the report without the compile, "search" of all
    that finds edits: prices, compiles, and further runs of the script.
    """
    from shardpass.advise.find.findings import Wanted
    from shardpass.advise.suggest.explain import explain_data
    from shardpass.cli.script import program_of, program_with, script_folder
    from shardpass.targets.compiler import shared
    from shardpass.targets.target import cpu

    data, file = program_of(target)
    script = _spent()
    wanted, folders = Wanted(partial(program_with, target, None, None)), [*map(Path, script_folder(target))]
    report = explain_data(data, file, "xla", None, machine, folders=folders, wanted=wanted)
    compiler = shared(cpu(report.devices))
    table, compiled = _spent() - script, compiler.spent
    findings = report.findings
    assert findings is not None
    search = _spent() - script - table + compiler.spent - compiled
    seconds = {"script": script, "compile": compiled, "table": table, "search": search}
    told = {
        "bytes": report.total_bytes_received,
        "memory": 0 if report.memory is None else report.memory.total,
        "seconds": seconds,
        **findings.as_dict(),
    }
    print(f"{MARK}{json.dumps(told)}")


def _spent() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)


if __name__ == "__main__":
    main(*sys.argv[1:])
