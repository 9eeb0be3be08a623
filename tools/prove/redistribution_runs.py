"""Plans of redistributions, run: on XLA's devices, on StableHLO's reference interpreter, and beside Shardy's passes.

XLA may abort the process, so that fuzzers call these functions in child processes.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np

from shardpass.cost.chosen import chosen
from shardpass.element_types import element_type
from shardpass.redistribute import Plan, plan_redistribution
from tools.bench.hlo_traffic import traffic
from tools.bench.redistribute_measure import shardy_reshard_module
from tools.bench.redistribute_samples import Problem as Reshard
from tools.prove.law import Broken, hold
from tools.prove.redistribution_arrays import Array, before, contents, expect, joined
from tools.prove.redistribution_problems import Problem

CLOSE = 1.01  # times the modelled time of a peer's program
AS_MODELLED = re.compile(r"u?i(8|16|32|64)|f(32|64)|complex.*")  # XLA's CPU client sums narrower floats in wider ones


def stacked_module(plan: Plan) -> str:
    """``plan`` as a partitioned module whose argument and result hold every device's local array, one after another.

    So that what lies in the padding, partial sums, and what each copy holds all go in and come out.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import func
    from jaxlib.mlir.dialects import stablehlo as hlo

    from shardpass.ir.context import make_context
    from shardpass.redistribute.program import lower

    n = plan.num_devices
    with make_context(), ir.Location.unknown():
        module = ir.Module.create()
        i32 = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, n)
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)
        element = ir.Type.parse(plan.element_type.mlir)

        def tensor(*shape: int) -> Any:
            return ir.RankedTensorType.get(list(shape), element)

        def boundary(tile: tuple[int, ...]) -> Any:
            tiled = f"{{devices=[{','.join(map(str, (n, *(1 for _ in tile))))}]<=[{n}]}}"
            row = {"mhlo.sharding": "{manual}", "shardpass.sharding": tiled}
            attributes = {name: ir.StringAttr.get(text) for name, text in row.items()}
            return ir.DictAttr.get({**attributes, "shardpass.global_type": ir.TypeAttr.get(tensor(n, *tile))})

        tiles = (plan.source_tile, plan.target_tile)
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([tensor(1, *tiles[0])], [tensor(1, *tiles[1])]), visibility="public")
            main.arg_attrs = ir.ArrayAttr.get([boundary(tiles[0])])
            main.attributes["res_attrs"] = ir.ArrayAttr.get([boundary(tiles[1])])
            block = main.add_entry_block()
        with ir.InsertionPoint(block):
            value = hlo.reshape(tensor(*tiles[0]), block.arguments[0])
            value = lower.emit(plan.program, value, itertools.count(1))
            func.ReturnOp([hlo.reshape(tensor(1, *tiles[1]), value)])
        return str(module)


def numpy_type(problem: Problem) -> Any:
    return element_type(problem.element).dtype


def rubbish_of(dtype: Any) -> Array:
    """What lies where nothing is meant to be looked at."""
    one = np.ones((), np.int8).astype(dtype)
    return np.asarray(np.nan).astype(dtype) if np.dtype(dtype).kind == "f" else one


def run_on_xla(problem: Problem, plan: Plan, *, stacked: bool) -> None:
    """Runs the plan by the project's runtime; XLA may abort the process. Counts the bytes in the optimised HLO.

    ``stacked`` goes in by ``stacked_module``; else the whole array does, through ``Plan.to_module`` and ``place``.
    """
    import shardpass

    dtype = numpy_type(problem)
    parts, whole = joined(problem, np.random.default_rng(problem.number), dtype)
    rubbish = rubbish_of(dtype)
    if stacked or problem.source.unreduced:
        executable = shardpass.compile(stacked_module(plan))
        (found,) = executable.run_tiles(*executable.place(np.stack(before(problem, parts, rubbish))))
        tiles = [np.asarray(tile)[0] for tile in found]
    else:
        executable = shardpass.compile(plan.to_module())
        (found,) = executable.run_tiles(*executable.place(whole, padding=rubbish))
        tiles = [np.asarray(tile) for tile in found]
    expect(problem, whole, tiles, "XLA")
    if AS_MODELLED.fullmatch(problem.element):
        moved = traffic(str(executable.hlo_text()), problem.devices).bytes
        steps = [step.bytes for step in plan.steps]
        hold(moved <= sum(steps) + len(steps), f"XLA's program moves {moved} bytes, more than the steps' {sum(steps)}")


def run_on_reference(problem: Problem, plan: Plan) -> None:
    """The same on StableHLO's reference interpreter, all devices in step."""
    from shardpass.runtime import interpret

    dtype = numpy_type(problem)
    parts, whole = joined(problem, np.random.default_rng(problem.number), dtype)
    stack = np.stack(before(problem, parts, rubbish_of(dtype)))
    (found,) = interpret(stacked_module(plan), stack, isolated=False)
    expect(problem, whole, list(found), "the reference interpreter")


def beside_shardy(problem: Problem, plan: Plan) -> list[str]:
    """Modelled bytes and time of ``plan`` against the collectives that Shardy's passes emit, where these are right.

    Two laws: a plan that receives more bytes takes no longer by the model of the default profile, which counts a
    collective as 10 us (nor by more than ``CLOSE``, which local copies may decide); and planned for bytes alone, the
    problem never receives more.
    """
    import shardpass

    given = Reshard(
        str(problem.number),
        problem.source.sizes,
        problem.shape,
        tuple("".join(ref.name for ref in axes) for axes in problem.source.dims),
        tuple("".join(ref.name for ref in axes) for axes in problem.target.dims),
    )
    whole = contents(problem.shape, np.float32, np.random.default_rng(problem.number))
    try:
        text = annotated(shardy_reshard_module(given), problem)
        executable = shardpass.compile(text)
        (found,) = executable.run_tiles(*executable.place(whole))
        expect(problem, whole, [np.asarray(tile) for tile in found], "Shardy")
    except Broken:
        return ["Shardy wrong"]
    except Exception as error:
        return [f"Shardy fails ({type(error).__name__})"]
    moved = traffic(str(executable.hlo_text()), problem.devices)
    theirs, ours = moved.bytes, plan.bytes_received
    if ours <= theirs:
        return ["fewer bytes than Shardy" if ours < theirs else "as many bytes as Shardy"]
    link, count = chosen("default").links[0], sum(step.bytes > 0 for step in plan.steps)
    pairs = (count, ours), (moved.collectives, theirs)
    times = [collectives * link.latency + received / link.bandwidth for collectives, received in pairs]
    seen = f"best receives {ours} bytes in {count} collectives, Shardy's program {theirs} in {moved.collectives}"
    hold(times[0] <= CLOSE * times[1], seen)
    source, target = problem.source.sharding(), problem.target.sharding()
    bytes_alone = plan_redistribution(
        problem.shape, problem.element, source, target, num_devices=problem.devices, machine="paper"
    ).bytes_received
    hold(bytes_alone <= theirs, f"{seen}; planned for bytes alone {bytes_alone}")
    return ["more bytes than Shardy in no more time"]


def annotated(text: str, problem: Problem) -> str:
    """Shardy's module with what the runtime wants to know of its boundary."""
    kind = f"tensor<{'x'.join(map(str, (*problem.shape, problem.element)))}>"
    rows = [
        f'mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{side.sharding()}"'
        for side in (problem.source, problem.target)
    ]
    before, middle, after = text.split('mhlo.sharding = "{manual}"')
    return before + rows[0] + middle + rows[1] + after
