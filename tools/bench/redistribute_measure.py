"""One redistribution by four programs: two planners of shardpass, XLA's partitioner, Shardy's passes.

Each program is compiled for virtual CPU devices, checked against the right result, timed in turn with the others on the
same arrays, and its bytes are counted (tools/bench/hlo_traffic.py). Shardy's passes and XLA can end the process, so
that the benchmark calls this module in child processes.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tools.bench.hlo_traffic import traffic
from tools.bench.redistribute_samples import AXES, Problem


def shardings(problem: Problem) -> tuple[Any, Any]:
    from shardpass.sharding import Mesh, Sharding

    mesh = Mesh(tuple(zip(AXES, problem.mesh, strict=False)))
    return Sharding.tiled(mesh, tuple(map(tuple, problem.source))), Sharding.tiled(
        mesh, tuple(map(tuple, problem.target))
    )


def shardy_reshard_module(problem: Problem) -> str:
    """The per-device program that Shardy's own passes make, with the attributes that XLA needs to leave it alone."""
    from jaxlib.mlir import ir

    from shardpass.ir.context import make_context
    from shardpass.runtime.shardy_passes import DROP, LOCAL, PAD, passes

    def spec(dims: Sequence[str]) -> str:
        return "[" + ", ".join("{" + ", ".join(f'"{a}"' for a in dim) + "}" for dim in dims) + "]"

    kind = f"tensor<{'x'.join(map(str, problem.shape))}xf32>"
    axes = ", ".join(f'"{AXES[i]}"={n}' for i, n in enumerate(problem.mesh))
    text = f"""module @m {{ sdy.mesh @mesh = <[{axes}]>
      func.func public @main(%x: {kind} {{sdy.sharding = #sdy.sharding<@mesh, {spec(problem.source)}>}})
          -> ({kind} {{sdy.sharding = #sdy.sharding<@mesh, {spec(problem.target)}>}}) {{
        %0 = sdy.reshard %x <@mesh, {spec(problem.target)}> : {kind}
        return %0 : {kind}
      }} }}"""
    with make_context():
        module = ir.Module.parse(text)
        for spellings in (("func.func(sdy-reshard-to-collectives,canonicalize)",), PAD, LOCAL, DROP):
            passes(spellings).run(module.operation)
        i32 = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, problem.devices)
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)
        main = module.body.operations[0]
        manual = ir.ArrayAttr.get([ir.DictAttr.get({"mhlo.sharding": ir.StringAttr.get("{manual}")})])
        main.attributes["arg_attrs"] = main.attributes["res_attrs"] = manual
        return str(module)


def compile_text(text: str, devices: int) -> Any:
    import jax
    import numpy as np
    from jaxlib import _jax
    from jaxlib import xla_client as xc

    places = tuple(jax.devices()[:devices])
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.device_assignment = xc.DeviceAssignment.create(np.arange(devices).reshape(1, devices))
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, devices
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, False
    return places[0].client.compile_and_load(text, _jax.DeviceList(places), options)


def compile_xla(problem: Problem) -> Any:
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    if problem.uneven:  # JAX refuses such arrays, XLA does not
        source, target = shardings(problem)
        kind = f"tensor<{'x'.join(map(str, problem.shape))}xf32>"
        return compile_text(
            f"""module @m attributes {{mhlo.num_partitions = {problem.devices} : i32}} {{
            func.func public @main(%x: {kind} {{mhlo.sharding = "{source}"}})
                -> ({kind} {{mhlo.sharding = "{target}"}}) {{ return %x : {kind} }} }}""",
            problem.devices,
        )
    mesh = Mesh(
        np.array(jax.devices()[: problem.devices]).reshape(problem.mesh),
        tuple(AXES[: len(problem.mesh)]),
    )
    source, target = (
        NamedSharding(mesh, PartitionSpec(*(tuple(dim) or None for dim in side)))
        for side in (problem.source, problem.target)
    )
    argument = jax.ShapeDtypeStruct(problem.shape, np.float32, sharding=source)
    return jax.jit(lambda x: x, out_shardings=target).lower(argument).compile().runtime_executable()


def programs(problem: Problem, shardy: str, profile: str) -> tuple[dict[str, Any], dict[str, str], dict[str, Any]]:
    """Compiled programs by way, what failed, and what the plans say."""
    from shardpass.redistribute import plan_redistribution

    devices = problem.devices
    made: dict[str, Any] = {}
    failed: dict[str, str] = {}
    facts: dict[str, Any] = {}
    source, target = shardings(problem)
    for planner in ("rink", "best"):
        start = time.perf_counter()
        plan = plan_redistribution(
            problem.shape, "f32", source, target, planner=planner, num_devices=devices, machine=profile
        )
        facts[f"plan_ms_{planner}"] = 1e3 * (time.perf_counter() - start)
        facts[f"modelled_{planner}"] = plan.bytes_received
        facts["bound"] = plan.lower_bound_bytes
        facts["limit"] = max(math.prod(plan.source_tile), math.prod(plan.target_tile)) * 4
        facts["tiles"] = [plan.source_tile, plan.target_tile]
        facts[f"steps_{planner}"] = [step.kind for step in plan.steps]
        made[planner] = compile_text(plan.to_module(), devices)
    peers: dict[str, Callable[[], Any]] = {"xla": lambda: compile_xla(problem)}
    if shardy:
        peers["shardy"] = lambda: compile_text(shardy, devices)
    for way, make in peers.items():
        try:
            made[way] = make()
        except Exception as error:  # a peer may refuse anything in any way
            failed[way] = str(error).splitlines()[0][:200]
    return made, failed, facts


def measure(problem: Problem, shardy: str, repeats: int, profile: str) -> dict[str, Any]:
    """Times, temporary memory, bytes on the wire and correctness of the ways on one problem.

    ``shardy`` is the program of Shardy's passes, "" where there is none.
    """
    import jax
    import numpy as np

    made, failed, facts = programs(problem, shardy, profile)
    devices = jax.devices()[: problem.devices]
    source, target = shardings(problem)
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 1 << 24, problem.shape).astype(np.float32)
    arguments = _tiles(whole, source, facts["tiles"][0], len(devices))
    wanted = _tiles(whole, target, facts["tiles"][1], len(devices))
    shards = [jax.device_put(x, d) for x, d in zip(arguments, devices, strict=True)]
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    shape = (len(devices) * arguments[0].shape[0], *arguments[0].shape[1:])
    spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    value = jax.make_array_from_single_device_arrays(shape, spec, shards)
    out: dict[str, Any] = {"name": problem.name, "failed": failed, "facts": facts, "ways": {}}
    times: dict[str, list[float]] = {way: [] for way in made}
    for way, compiled in list(made.items()):
        got = compiled.execute_sharded([value]).disassemble_into_single_device_arrays()[0]
        if not _same(got, wanted, target, problem):
            failed[way] = "wrong data"
            del made[way]
            continue
        text = compiled.hlo_modules()[0].to_string()
        sent = traffic(text, len(devices))
        temp = compiled.get_compiled_memory_stats().temp_size_in_bytes
        out["ways"][way] = {"wire": sent.bytes, "collectives": sent.collectives, "temp": temp}
    for turn in range(repeats + 2):
        for way, compiled in made.items():
            start = time.perf_counter()
            for array in compiled.execute_sharded([value]).disassemble_into_single_device_arrays()[0]:
                array.block_until_ready()
            if turn >= 2:
                times[way].append(time.perf_counter() - start)
    for way in made:
        out["ways"][way]["ms"] = 1e3 * statistics.median(times[way])
    return out


def _tiles(whole: Any, sharding: Any, tile: Any, devices: int) -> list[Any]:
    import numpy as np

    out = []
    for base in sharding.tile_offsets(whole.shape, devices):
        local = np.zeros(tile, whole.dtype)
        part = whole[tuple(slice(int(b), int(b) + n) for b, n in zip(base, tile, strict=True))]
        local[tuple(slice(n) for n in part.shape)] = part
        out.append(local)
    return out


def _same(got: Any, wanted: list[Any], sharding: Any, problem: Problem) -> bool:
    """Whether all but the padding is right."""
    import numpy as np

    shape = problem.shape
    for base, have, want in zip(sharding.tile_offsets(shape, len(wanted)), got, wanted, strict=True):
        real = tuple(slice(max(0, min(t, n - int(b)))) for t, n, b in zip(want.shape, shape, base, strict=True))
        if not np.array_equal(np.asarray(have)[real], want[real]):
            return False
    return True
