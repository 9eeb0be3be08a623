"""The child process of ``shardpass.targets.compiler``: describes the devices of a target, and compiles for them."""

from __future__ import annotations

import json
import select
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from shardpass.diagnostics import ShardpassError
from shardpass.runtime.peers import SHARDY
from shardpass.targets.compiler import ENDED_IDLE
from shardpass.targets.target import CPU, TPU, Target, parse_target

NO_TILES = "Couldn't find output tile sizes"  # XLA:GPU of a product


def serve(name: str, donate: bool, idle: float) -> None:
    """Compile the modules on stdin until stdin ends, or until no module arrives for ``idle`` seconds."""
    import jax

    from shardpass.ir import jax_private

    target = parse_target(name)
    jax.config.update("jax_platforms", "cpu")
    if target.platform == CPU:
        jax.config.update("jax_num_cpu_devices", target.devices)
    given = sys.stdin.buffer
    while True:
        if idle and not select.select([given], [], [], idle)[0]:
            sys.exit(ENDED_IDLE)
        if not (line := given.readline()):
            return
        asked = json.loads(line)
        before = time.process_time()
        with jax_private.drafts() if asked["draft"] and target.platform == CPU else nullcontext():
            answer, hlo = _answer(given.read(asked["length"]), target, donate, asked["way"])
        answer["spent"] = time.process_time() - before
        sys.stdout.buffer.write(b"\n@" + json.dumps(answer).encode() + b"\n" + hlo)
        sys.stdout.buffer.flush()


def _answer(module: bytes, target: Target, donate: bool, way: str) -> tuple[dict[str, Any], bytes]:
    try:
        executable = _executable(module, target, donate, way)
        hlo = executable.hlo_modules()[0].to_string().encode()
        stats = executable.get_compiled_memory_stats()
    except ShardpassError as error:
        return {"failed": error.diagnostics[0].message.removeprefix("XLA refuses the module: ")}, b""
    except Exception as error:  # whatever XLA raises: the parent says it
        return {"failed": " ".join(str(error).split())}, b""
    return {
        "length": len(hlo),
        "arguments": stats.argument_size_in_bytes,
        "results": stats.output_size_in_bytes,
        "temporaries": stats.temp_size_in_bytes,
        "donated": stats.alias_size_in_bytes,
        "peak": stats.peak_memory_in_bytes,
    }, hlo


def _executable(module: bytes, target: Target, donate: bool, way: str) -> Any:
    """Compile ``module``; with ``way`` SHARDY, Shardy's own passes partition it before.

    On a card, XLA:GPU measures which products its own kernels can compute; without a card it may try one that they
    cannot, and then a library has to.
    """
    from shardpass.ir import jax_private
    from shardpass.ir.context import parse_module
    from shardpass.runtime.shardy_passes import shardy_module

    if way == SHARDY:
        text = parse_module(module, trusted=True).operation.get_asm(enable_debug_info=True)
        return _built(shardy_module(text), target, donate)
    try:
        return _built(parse_module(module, trusted=True), target, donate)
    except ShardpassError as error:
        if NO_TILES not in str(error):
            raise
    with jax_private.products_of_libraries():
        return _built(parse_module(module, trusted=True), target, donate)


def _built(module: Any, target: Target, donate: bool) -> Any:
    """Compile ``module`` with XLA's partitioner, or unchanged if the module is already partitioned."""
    from shardpass.ir.annotations import TILED_SHARDING, Signature, main_of
    from shardpass.ir.for_xla import free_layouts
    from shardpass.runtime.compiling import compile_by_client
    from shardpass.runtime.manual_computation import over_devices
    from shardpass.runtime.reference import build_by_xla

    devices = devices_of(target, mesh_sizes(module, target))
    with module.context:
        signature = Signature(main_of(module))
        if target.platform == TPU:
            free_layouts(module)
    if not any(TILED_SHARDING in row for row in (*signature.arguments, *signature.results)):
        return build_by_xla(module, devices, donate=donate)[0]
    if target.devices > 1:
        over_devices(module, target.devices)
    return compile_by_client(module, devices, shardy=target.devices > 1, donate=donate)


def mesh_sizes(module: Any, target: Target) -> tuple[int, ...]:
    """Return the sizes of the mesh axes in ``module``; without a mesh, the number of devices.

    Of several meshes, as a program with axes of parts has them, the first over all devices counts.
    """
    from shardpass.ir.annotations import mesh_of
    from shardpass.ir.replica_groups import meshes_of
    from shardpass.sharding import Mesh

    with module.context:
        known = (mesh_of(module), *meshes_of(module).values())
    meshes = [one for one in known if isinstance(one, Mesh) and one.size == target.devices]
    return tuple(size for _, size in meshes[0].axes) if meshes else (target.devices,)


def devices_of(target: Target, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return the devices of ``target`` in the order of ``jax.make_mesh`` for axes of these ``sizes``."""
    import jax

    if target.platform == CPU:
        return tuple(jax.devices()[: target.devices])
    described = topology(target)
    if target.platform != TPU or len(described) == 1:
        return described
    try:
        mesh = jax.make_mesh(tuple(sizes), tuple(map(str, range(len(sizes)))), devices=described)
    except NotImplementedError:  # axes that are no products of the slice's: JAX asks the user for an order
        return described
    return tuple(mesh.devices.flat)


def topology(target: Target) -> tuple[Any, ...]:
    """Return the described devices of a TPU slice or of GPU hosts, without the hardware."""
    from jax.experimental import topologies

    from shardpass.ir import jax_private

    if target.platform == TPU:
        sizes = (*target.shape, *(1,) * (3 - len(target.shape)))
        host = [min(size, most) for size, most in zip(sizes, (2, 2, 1), strict=True)]
        name = "x".join(map(str, target.shape))
        described = topologies.get_topology_desc(
            platform="tpu", topology_name=f"{target.chip.name}:{name}", chips_per_host_bounds=host
        )
        return tuple(described.devices)
    hosts, cards = target.shape
    return jax_private.described_gpus(target.chip.description, hosts, cards)
