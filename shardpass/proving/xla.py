"""Read XLA's per-device program, HLO after SPMD partitioning or after all passes, as a partitioned module.

XLA's own converter translates the HLO to StableHLO, in a separate process because it may crash. The converted ``main``
lacks the types and shardings of the whole values, which a proof needs. The types are copied from the whole program.
jaxlib 0.10 writes the shardings of arguments into the HLO. The shardings of results, and in 0.12 those of arguments as
well, are the ones that XLA returns (``partitioned_by_xla``), or those of the whole program if only HLO text is
available. If neither gives the sharding of a result, the module marks the result (``UNNAMED``), and the proof infers
its sharding from the tiles.

``partitioned_by_xla`` compiles in a separate process, which dumps the program right after the partitioner. The devices
are virtual CPU devices, or those of a target whose compiler has partitioning passes of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics import ShardpassError
from shardpass.diagnostics.table_proving import NO_HLO, NO_RESULT_SHARDING
from shardpass.diagnostics.table_runtime import PEER_FAILED
from shardpass.hlo.groups import with_listed_groups
from shardpass.ir import annotations as names
from shardpass.ir.constraints import SDY_SHARDING
from shardpass.ir.context import parse_module
from shardpass.ir.locations import place_of
from shardpass.ir.replica_groups import meshes_of
from shardpass.ir.written import bytecode
from shardpass.proving.hlo_forms import in_stablehlo
from shardpass.proving.signature import UNNAMED
from shardpass.proving.verdict import COMPILED, OBJECT, PARTITIONED
from shardpass.sharding import Mesh, parse_sharding
from shardpass.sharding.notations.sdy import parse_sdy
from shardpass.targets.child import devices_of, mesh_sizes
from shardpass.targets.compiler import child_environment
from shardpass.targets.target import Target, parse_target

SECONDS = 600.0
PASS = "spmd-partitioning"
_AFTER = re.compile(rf"after_(?:tpu-)?{PASS}\b")
_LEFT_OUT = "constant({...})"
_ORDINAL = re.compile(r"num_partitions=(\d+)")
_SCHEDULED = re.compile(r"\A\s*HloModule [^\n]*\bis_scheduled=true")


def is_hlo(text: str) -> bool:
    return text.lstrip().startswith("HloModule")


def from_hlo(
    text: str, whole: Any, arguments: Sequence[str] | None = None, results: Sequence[str] | None = None
) -> Any:
    """Read the module after SPMD partitioning from HLO; ``arguments``, ``results``: texts of their shardings.

    Raises:
        ShardpassError: SP952 where XLA does not read or translate the text, SP953 where nothing says how a result is
        split.
    """
    if _LEFT_OUT in text:  # XLA reads any numbers there
        raise NO_HLO.error(reason="its large constants are left out, add --xla_dump_large_constants to XLA_FLAGS")
    count = _ORDINAL.search(text)
    partitions = int(count.group(1)) if count else 1
    try:
        module = parse_module(with_listed_groups(text, partitions))
    except ShardpassError as error:
        raise NO_HLO.error(reason=error.diagnostics[0].message[:300]) from None
    except ValueError as error:  # groups that have no reading
        raise NO_HLO.error(reason=str(error)) from None
    whole_main = names.Signature(names.main_of(whole))
    kinds = names.main_of(whole).attributes["function_type"].value
    meshes = meshes_of(whole)
    given = [_text(row, meshes) for row in whole_main.arguments] if arguments is None else list(arguments)
    returned = [_text(row, meshes) for row in whole_main.results] if results is None else list(results)
    with module.context, ir.Location.unknown():
        own = names.Signature(names.main_of(module))
        types = names.main_of(module).attributes["function_type"].value
        meshes = meshes_of(module)
        for row, kind, sharding in zip(own.arguments, kinds.inputs, given, strict=False):
            _write(row, _text(row, meshes) or sharding or "{replicated}", kind)
        rows = zip(own.results, kinds.results, types.results, returned, strict=False)
        for index, (row, kind, tile, sharding) in enumerate(rows):
            if sharding is None and str(tile) != str(kind):
                sharding = _of_tile(kind, tile, partitions)
                if sharding is None:
                    raise NO_RESULT_SHARDING.error(place_of(names.main_of(module).location), index=index)
                row[UNNAMED] = ir.UnitAttr.get()
            _write(row, sharding or "{replicated}", kind)
        own.write()
        in_stablehlo(module)
        attributes = module.operation.attributes
        number = ir.IntegerType.get_signless(32)
        attributes[names.NUM_PARTITIONS] = ir.IntegerAttr.get(number, partitions)
        attributes[names.NUM_REPLICAS] = ir.IntegerAttr.get(number, 1)
        attributes[OBJECT] = ir.StringAttr.get(COMPILED if _SCHEDULED.search(text) else PARTITIONED)
    return module


def _text(row: dict[str, Any], meshes: Mapping[str, Mesh | int]) -> str | None:
    """Return the sharding of an argument or result in XLA's notation; None where it is not fixed."""
    if names.SHARDING in row:
        return names.text(row[names.SHARDING])
    if SDY_SHARDING not in row:
        return None
    sharding = parse_sdy(str(row[SDY_SHARDING]), meshes)
    return None if sharding.notes.open else str(sharding)


def _of_tile(whole: Any, tile: Any, devices: int) -> str | None:
    """Return a sharding of ``whole`` with tiles of type ``tile``; None where no count of parts gives that size."""
    divisors = [count for count in range(1, devices + 1) if devices % count == 0]
    counts = [
        next((count for count in divisors if -(-size // count) == part), 0)
        for size, part in zip(whole.shape, tile.shape, strict=True)
    ]
    parts = prod(counts)
    if not parts or devices % parts:
        return None
    last = [devices // parts] if parts < devices else []
    words = f"devices=[{','.join(map(str, [*counts, *last]))}]<=[{devices}]"
    return str(parse_sharding(f"{{{words}{' last_tile_dim_replicate' if last else ''}}}"))


def _write(row: dict[str, Any], sharding: str, kind: Any) -> None:
    row[names.TILED_SHARDING] = ir.StringAttr.get(sharding)
    row[names.SHARDING] = ir.StringAttr.get(names.MANUAL)
    row[names.GLOBAL_TYPE] = ir.TypeAttr.get(ir.Type.parse(str(kind)))


def partitioned_by_xla(whole: Any, target: Target | None = None) -> Any:
    """Return XLA's program of one device of the module ``whole``, as the compiler of ``target`` partitions it.

    Raises ShardpassError (SP553) where XLA makes none.
    """
    name = "" if target is None else str(target)
    with tempfile.TemporaryDirectory() as folder:
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={folder} --xla_dump_hlo_pass_re={PASS}"
        flags += " --xla_dump_hlo_as_text --xla_dump_large_constants --xla_backend_optimization_level=0"
        environment = {**(os.environ if target is None else child_environment()), "XLA_FLAGS": flags}
        command = [sys.executable, "-c", f"from shardpass.proving.xla import serve; serve({name!r})"]
        try:
            child = subprocess.run(command, input=bytecode(whole), capture_output=True, env=environment,
                                   timeout=SECONDS, check=False)  # fmt: skip
        except subprocess.TimeoutExpired:
            raise PEER_FAILED.error(way="xla", reason=f"it took more than {SECONDS:.0f} s") from None
        answers = [line for line in child.stdout.decode(errors="replace").splitlines() if line.startswith("@")]
        dumps = sorted(path for path in Path(folder).glob("*.txt") if _AFTER.search(path.name))
        if child.returncode or not answers or not dumps:
            lines = [line for line in child.stderr.decode(errors="replace").splitlines() if line.strip()]
            reason = lines[-1] if lines else f"its process ended with status {child.returncode}"
            raise PEER_FAILED.error(way="xla", reason=reason[:300])
        return from_hlo(dumps[-1].read_text(), whole, **json.loads(answers[-1].removeprefix("@")))


def serve(target: str) -> None:
    """Compile the module on stdin and prints the shardings of its arguments and results as one line of JSON."""
    import jax

    given = parse_module(sys.stdin.buffer.read())
    jax.config.update("jax_platforms", "cpu")
    devices = None
    if target:
        described = parse_target(target)
        devices = devices_of(described, mesh_sizes(given, described))
    else:
        jax.config.update("jax_num_cpu_devices", given.operation.attributes[names.NUM_PARTITIONS].value)
    from shardpass.runtime.reference import compile_by_xla

    signature = compile_by_xla(given, devices, donate=False).signature
    sides = {"arguments": signature.arguments, "results": signature.results}
    print("@" + json.dumps({side: [str(b.sharding) for b in rows] for side, rows in sides.items()}), flush=True)
