"""What partitioners make of a program: compiled in a process of its own, as some of them end theirs.

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
from shardpass.ir.doors import Given, LargeFile

OURS = "shardpass"
WAYS = ("xla", "shardy")
TIMEOUT = 600.0


@dataclass(frozen=True)
class Peer:
    """A partitioner's program: by kind of collective how many run and the bytes that a device receives; its memory.

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
    """What the partitioner ``way`` makes of the module ``given``; of ``OURS``, a partitioned one.

    Raises ShardpassError (SP553) where it fails, ends its process, or takes too long.
    """
    command = [sys.executable, "-c", f"from shardpass.runtime.peers import serve; serve({way!r}, {devices})"]
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
        said = [line for line in child.stderr.decode(errors="replace").splitlines() if line.strip()]
        reason = said[-1] if said else f"its process ended with status {child.returncode}"
        raise PEER_FAILED.error(way=way, reason=reason[:300])
    found = json.loads(answers[-1].removeprefix("@"))
    kinds = {kind: (count, size) for kind, (count, size) in found["kinds"].items()}
    return Peer(way, kinds, found["received"], found["memory"])


def serve(way: str, devices: int) -> None:
    """The child: a module's text on stdin, the answer as one line of JSON on stdout."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", devices)
    from shardpass.runtime.compiling import compile
    from shardpass.runtime.hlo_traffic import received
    from shardpass.runtime.reference import compile_by_xla
    from shardpass.runtime.shardy_passes import shardy_module

    given = sys.stdin.buffer.read()
    if way == "xla":
        executable = compile_by_xla(given)
    else:
        executable = compile(given if way == OURS else shardy_module(given.decode()))
    counted = received(executable.hlo_text(), devices)
    stats = executable.memory_stats()
    memory = stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
    memory -= stats.alias_size_in_bytes
    sizes = counted.bytes
    kinds = {kind: [count, sizes[kind]] for kind, count in counted.runs.items()}
    print("@" + json.dumps({"kinds": kinds, "received": counted.total, "memory": memory}), flush=True)
