"""The laws that every plan of a redistribution must keep, each with a witness of its own.

``planned``: both planners, whose own simulator proves each plan. Held here: the bytes of best against those of rink and
the bound, the memory rule, the normal form of the paper.
``evaluated``: the program on NumPy arrays (tools/prove/numpy_programs.py), beside slices of the whole
array. Bytes and buffers are counted op by op on these arrays, the bound element by element.

A law that does not hold raises ``Broken``; any other exception is a fault of another kind.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.element_types import element_type
from shardpass.redistribute import PLANNERS, Plan, plan_redistribution
from shardpass.redistribute.program import ops
from tools.prove.law import hold
from tools.prove.numpy_programs import evaluate
from tools.prove.redistribution_arrays import Array, before, expect, joined
from tools.prove.redistribution_problems import Problem

LETTERS = {
    "dynamic_slice": "s",
    "all_to_all": "a",
    "collective_permute": "p",
    "all_gather": "g",
    "all_reduce": "r",
    "reduce_scatter": "R",
}
ONE_BUFFER = ops.Reshape | ops.AsBits  # ops whose result is their operand's memory


# ---------------------------------------------------------------- plans


def planned(problem: Problem) -> tuple[dict[str, Plan], list[str]]:
    """A proved plan by each planner, and what kinds of problem this was. Refused is what can only be refused.

    Of every five problems one is asked in text, which says nothing of maxima and minima.
    """
    source: Any = problem.source.sharding()
    target: Any = problem.target.sharding()
    if problem.number % 5 == 1 and problem.source.reduction == "sum":
        source, target = str(source), str(target)
    plans: dict[str, Plan] = {}
    tags = [*kinds(problem), *(["asked in text"] if isinstance(source, str) else [])]
    for planner in PLANNERS:
        try:
            plans[planner] = plan_redistribution(
                problem.shape,
                problem.element,
                source,
                target,
                planner=planner,
                num_devices=problem.devices,
                machine=problem.profile,
                memory_limit=problem.limit,
            )
        except ShardpassError as error:
            if not may_refuse(problem, error.code):
                raise
            tags.append(f"{planner} refused ({error.code})")
    for planner, plan in plans.items():
        obeys(problem, planner, plan)
    if len(plans) == 2 and problem.limit == "max":
        best, rink = (plans[name].bytes_received for name in ("best", "rink"))
        hold(best <= rink, f"best receives {best} bytes, rink {rink}")
        tags += ["fewer bytes than rink"] * (best < rink)
    if "best" in plans:
        plan = plans["best"]
        tags += ["moves"] * bool(plan.bytes_received)
        tags += ["at the bound"] * (0 < plan.bytes_received == plan.lower_bound_bytes)
        tags += ["more than 3 collectives"] * (sum(step.kind != "dynamic_slice" for step in plan.steps) > 3)
    return plans, tags


def kinds(problem: Problem) -> list[str]:
    """What is particular about a problem, for the report."""
    sides = (problem.source, problem.target)
    found = {
        "uneven": not problem.is_even,
        "no elements": 0 in problem.shape,
        "scalar": not problem.shape,
        "one device": any(side.kind == "maximal" for side in sides),
        "devices in another order": any(side.order is not None for side in sides),
        "sub-axes": any(ref.size for side in sides for axes in side.dims for ref in axes),
        "partial sums": bool(problem.source.unreduced),
        "partial sums kept": bool(problem.target.unreduced),
        "partial maxima or minima": problem.source.reduction != "sum",
    }
    return [name for name, is_so in found.items() if is_so]


def may_refuse(problem: Problem, code: str) -> bool:
    """Partial sums that stay may be refused (SP408), and what no plan does in so many bytes (SP413)."""
    if code == "SP413":
        return isinstance(problem.limit, int)
    return code == "SP408" and bool(problem.target.unreduced) and problem.source != problem.target


def obeys(problem: Problem, planner: str, plan: Plan) -> None:
    """The laws of one plan that its account of itself is enough for."""
    bound, received = plan.lower_bound_bytes, plan.bytes_received
    hold(received >= bound, f"{planner} claims {received} bytes, less than the bound {bound}")
    hold(received == int(plan.received.max(initial=0)), f"{planner}: bytes_received is not the greatest of received")
    if problem.limit == "max":
        most = element_type(problem.element).bytes(problem.greatest_tile())
        hold(plan.peak_bytes <= most, f"{planner} holds {plan.peak_bytes} bytes, more than the greater tile's {most}")
    elif problem.limit is not None:
        live, limit = plan.peak_live_bytes, int(problem.limit)
        hold(live <= limit, f"{planner} takes {live} bytes of the {limit} that it may")
    if planner == "rink" and problem.is_even:
        word = "".join(LETTERS[step.kind] for step in plan.steps)
        hold(re.fullmatch(r"r?s*[ap]*g*", word) is not None, f"rink: {word} is not in normal form")
        hold(one_device(problem) or word.count("p") <= 1, f"rink: {word} permutes twice")
    if problem.is_identity and not problem.source.unreduced and problem.is_even:
        hold(not plan.steps, f"{planner} does {len(plan.steps)} steps where each device has what it needs")


def one_device(problem: Problem) -> bool:
    return "maximal" in (problem.source.kind, problem.target.kind)


# ---------------------------------------------------------------- NumPy


def evaluated(problem: Problem, plans: dict[str, Plan], seed: int = 0) -> None:
    """The programs on NumPy arrays; what they move and hold, and the bound, counted on these."""
    rng = np.random.default_rng(seed)
    parts, whole = joined(problem, rng, np.int64)
    element = element_type(problem.element)
    for planner, plan in plans.items():
        arrays = before(problem, parts, -1)
        received = np.zeros(problem.devices, np.int64)
        most = live = math.prod(arrays[0].shape)
        for chunk in collected(plan.program):
            size = math.prod(arrays[0].shape)
            received += moved(chunk, arrays[0].shape, element.bytes)
            arrays = evaluate(chunk, arrays)
            after = math.prod(arrays[0].shape)
            most = max(most, after)
            live = max(live, size if isinstance(chunk[0], ONE_BUFFER) else size + after)
        expect(problem, whole, arrays, f"NumPy, {planner}")
        claimed = plan.received
        hold(
            bool((received == claimed).all()), f"{planner} claims {claimed.max()} bytes; its ops move {received.max()}"
        )
        limit = element.bytes(problem.greatest_tile() if problem.limit == "max" else most)  # four i2 are a byte, as one
        hold(
            element.bytes(most) <= limit,
            f"{planner} makes an array of {most} elements; the greater tile has {limit} bytes",
        )
        live, peak = element.bytes(live), plan.peak_live_bytes
        hold(live <= peak, f"{planner}: operand and result of an op take {live} bytes; the plan says {peak}")
        bound = least(problem, element.bytes)
        hold(plan.lower_bound_bytes == bound, f"{planner}: the bound is {bound}, not {plan.lower_bound_bytes}")


def collected(program: ops.DeviceProgram) -> Iterator[ops.DeviceProgram]:
    """The ops one by one; an exchange, which keeps a second array, is one."""
    left = list(program)
    while left:
        chunk = [left.pop(0)]
        if isinstance(chunk[0], ops.BeginBoxExchange):
            while not isinstance(chunk[-1], ops.EndBoxExchange):
                chunk.append(left.pop(0))
        yield tuple(chunk)


def moved(chunk: ops.DeviceProgram, tile: tuple[int, ...], size: Callable[[int], int]) -> Array | int:
    """Bytes that each device gets from others in ``chunk``; its operand has the shape ``tile``."""
    op, whole = chunk[0], math.prod(tile)
    match op:
        case ops.AllGather():
            return size(whole) * (int(op.groups.shape[1]) - 1)
        case ops.AllToAll() | ops.ReduceScatter():
            return size(whole) - size(whole) // int(op.groups.shape[1])
        case ops.AllReduce():
            return 2 * (size(whole) - size(whole) // int(op.groups.shape[1]))
        case ops.Permute():
            return travelled(op.source_of) * size(whole)
        case ops.Slide():
            return travelled(op.source_of) * size(op.halo * (whole // tile[op.axis]))
        case ops.ChunkRounds():
            return sum(travelled(row) for row in op.source_of) * size(math.prod(op.chunk))
        case ops.BeginBoxExchange():
            return sum(travelled(r.source_of) * size(math.prod(r.size)) for r in chunk if isinstance(r, ops.BoxRound))
    return 0


def travelled(source_of: Array) -> Array:
    found: Array = ((source_of != np.arange(len(source_of))) & (source_of >= 0)).astype(np.int64)
    return found


def least(problem: Problem, size: Callable[[int], int]) -> int:
    """Bytes of the elements, counted one by one, that some device needs and does not hold.

    Where the devices that share a summand do not stay together, that is all elements: of two devices that are to hold
    the same sum and held different summands, one at least is sent something for each. Where every device keeps its
    tile, the summands of each tile are numbered for themselves.
    """
    held, needed = (side.held(problem.shape, problem.devices) for side in (problem.source, problem.target))
    summands = [side.summands(problem.devices) for side in (problem.source, problem.target)]
    tiles = [str(have) if held == needed else "" for have in held]
    named = [set(zip(tiles, numbers, strict=True)) for numbers in summands]
    together = len(set(zip(tiles, *summands, strict=True))) == len(named[0]) == len(named[1])
    most = 0
    for have, want in zip(held, needed, strict=True):
        wanted = np.zeros(problem.shape, bool)
        if want is not None:
            wanted[want] = True
        if have is not None and together:
            wanted[have] = False
        most = max(most, int(wanted.sum()))
    return size(most)
