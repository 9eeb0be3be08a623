"""Compile programs with other partitioners, in a child process, as some of them abort.

Ways: ``shardpass`` is a module that shardpass has partitioned, as XLA compiles it; ``xla`` is what ``jax.jit`` does
(Shardy's propagation, or GSPMD's where the program is so annotated, and XLA's partitioner); ``shardy`` is Shardy's own
passes down to per-device code, as jaxlib has them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.ir.child import failure_of
from shardpass.ir.doors import Given, LargeFile
from shardpass.runtime.hlo_traffic import received

OURS, XLA = "shardpass", "xla"
WAYS = (XLA, "shardy")
TIMEOUT = 600.0


@dataclass(frozen=True)
class PeerProgram:
    """A partitioner's program from XLA's CPU client: optimised HLO, and XLA's memory statistics of one device.

    ``donated``: bytes of results that lie in the buffers of arguments.
    """

    way: str
    hlo: str
    arguments: int
    results: int
    temporaries: int
    donated: int


@dataclass(frozen=True)
class Peer:
    """The cost of a partitioner's program: runs and bytes received by kind of collective, and memory in bytes.

    ``bytes_received``: by all kinds, of the device that receives most.
    """

    way: str
    kinds: Mapping[str, tuple[int, int]]
    bytes_received: int
    memory: int  # arguments, results and temporaries of XLA's statistics, less what is one buffer

    @property
    def runs(self) -> int:
        return sum(count for count, _ in self.kinds.values())


def ask(way: str, given: Given, devices: int) -> Peer:
    """Count the collectives and the memory of the program that the partitioner ``way`` makes of ``given``.

    Donated buffers count as if they were not, so that programs of which some lost the attribute are compared alike.
    """
    program = build(way, given, devices, donate=False)
    counted = received(program.hlo, devices)
    sizes = counted.bytes
    kinds = {kind: (count, sizes[kind]) for kind, count in counted.runs.items()}
    memory = program.arguments + program.results + program.temporaries - program.donated
    return Peer(way, kinds, counted.total, memory)


def build(way: str, given: Given, devices: int, *, donate: bool = True) -> PeerProgram:
    """Build the program that partitioner ``way`` makes of ``given``.

    Nothing runs. ``donate``: results may lie in donated arguments, as in the program that ``jax.jit`` runs; of ``xla``
    alone.

    Raises ShardpassError (SP553) where it fails, ends its process, or takes too long.
    """
    command = [sys.executable, "-c", f"from shardpass.runtime.peers import serve; serve({way!r}, {devices}, {donate})"]
    try:
        if isinstance(given, LargeFile):
            with given.open() as file:
                child = subprocess.run(command, stdin=file, capture_output=True, timeout=TIMEOUT, check=False)
        else:
            data = given.encode() if isinstance(given, str) else given
            child = subprocess.run(command, input=data, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise PEER_FAILED.error(way=way, reason=f"it took more than {TIMEOUT:.0f} s") from None
    answers = [line for line in child.stdout.decode(errors="replace").splitlines() if line.startswith("@")]
    if child.returncode or not answers:
        raise PEER_FAILED.error(way=way, reason=failure_of(child))
    return PeerProgram(way, **json.loads(answers[-1].removeprefix("@")))


def serve(way: str, devices: int, donate: bool) -> None:
    """Read a module from stdin and print the answer as a line of JSON on stdout. Runs in the child process."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
    from shardpass.runtime.compiling import compile
    from shardpass.runtime.reference import compile_by_xla
    from shardpass.runtime.shardy_passes import shardy_module

    given = sys.stdin.buffer.read()
    if way == "xla":
        executable = compile_by_xla(given, donate=donate)
    else:
        executable = compile(given if way == OURS else shardy_module(given.decode()))
    stats = executable.memory_stats()
    answer = {
        "hlo": executable.hlo_text(),
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "donated": stats.alias_size_in_bytes,
    }
    print("@" + json.dumps(answer), flush=True)
