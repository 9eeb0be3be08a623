"""What every plan must keep, each law with a witness of its own.

``planned``: both planners; the planner's own simulator proves each plan. Here: bytes of best and rink and the bound,
the memory rule, the paper's normal form.
``evaluated``: the program on NumPy arrays (redistribute/program/evaluate.py), beside slices of the whole array by the
arithmetic of ``Side.held``; bytes and buffers counted op by op on these arrays, the bound counted element by element.
``run_on_xla``, ``run_on_reference``: StableHLO, with the element types that the problem names.
``beside_shardy``: modelled bytes against those in the program that Shardy's own passes emit.

What does not belong to the array, past its end or on a device that holds none of it, is rubbish before and is not
looked at after. A broken law is ``Broken``; any other exception is a fault of another kind.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from redistribution_problems import Problem, Side

from shardpass.diagnostics import ShardpassError
from shardpass.element_types import ELEMENT_TYPES, element_type
from shardpass.redistribute import PLANNERS, Plan, plan_redistribution
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.evaluate import evaluate

Array = np.ndarray[Any, Any]
LETTERS = {
    "dynamic_slice": "s",
    "all_to_all": "a",
    "collective_permute": "p",
    "all_gather": "g",
    "all_reduce": "r",
    "reduce_scatter": "R",
}

AS_MODELLED = re.compile(r"u?i(8|16|32|64)|f(32|64)|complex.*")  # XLA's CPU client sums narrower floats in wider ones
ELEMENTS = tuple(row.mlir for row in ELEMENT_TYPES if row.dtype is not None)  # all that there are arrays of


class Broken(Exception):
    """A law that a plan does not keep."""


def hold(kept: bool, law: str) -> None:
    if not kept:
        raise Broken(law)


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
                profile=problem.profile,
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
        live, most = plan.peak_live_bytes, problem.limit
        hold(live <= int(most), f"{planner} takes {live} bytes of the {most} that it may")
    if planner == "rink" and problem.is_even:
        word = "".join(LETTERS[step.kind] for step in plan.steps)
        hold(re.fullmatch(r"r?s*[ap]*g*", word) is not None, f"rink: {word} is not in normal form")
        hold(one_device(problem) or word.count("p") <= 1, f"rink: {word} permutes twice")
    if problem.is_identity and not problem.source.unreduced and problem.is_even:
        hold(not plan.steps, f"{planner} does {len(plan.steps)} steps where each device has what it needs")


def one_device(problem: Problem) -> bool:
    return "maximal" in (problem.source.kind, problem.target.kind)


# ---------------------------------------------------------------- arrays on devices


JOINS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def joined(problem: Problem, rng: np.random.Generator, dtype: Any) -> tuple[list[Array], Array]:
    """The whole arrays that the source holds tiles of, one for each summand, and what they make, exact in any type."""
    count = max(problem.source.summands(problem.devices)) + 1
    if count == 1:
        whole = contents(problem.shape, dtype, rng)
        return [whole], whole
    if np.dtype(dtype).itemsize > 1:
        signed = np.dtype(dtype).kind != "u"
        parts = [rng.integers(-4 if signed else 0, 5, problem.shape) for _ in range(count)]
    elif problem.source.reduction == "sum":  # one at most of a place, so that narrow types hold the sum
        total = rng.integers(0, 2, problem.shape)
        owner = rng.integers(0, count, problem.shape)
        parts = [np.where(owner == k, total, 0) for k in range(count)]
    else:
        parts = [rng.integers(0, 2, problem.shape) for _ in range(count)]
    whole = JOINS[problem.source.reduction].reduce(parts)
    return [part.astype(dtype) for part in parts], whole.astype(dtype)


def contents(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Array:
    """Elements that differ where the type can tell that many apart: any bits at all."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if kind.itemsize == 1 and few(kind):
        return rng.integers(0, 2, shape).astype(np.int8).astype(kind)
    size = math.prod(shape)
    if kind.kind in "iu" and kind.itemsize >= 4:
        return np.arange(1, size + 1).astype(kind).reshape(shape)
    found: Array = rng.integers(0, 256, size * kind.itemsize, dtype=np.uint8).view(kind).reshape(shape)
    with np.errstate(invalid="ignore"):
        number = found == found
    return np.where(number, found, np.ones((), kind)).astype(kind)  # which NaN a NaN is may change on the way


def few(kind: np.dtype[Any]) -> bool:
    """Whether elements of the type are less than a byte, whatever NumPy stores."""
    return re.search(r"int[24]|float4", kind.name) is not None


def before(problem: Problem, parts: Sequence[Array], rubbish: Any) -> list[Array]:
    """The local array of each device."""
    tile = problem.source.tile(problem.shape)
    arrays = []
    places = problem.source.held(problem.shape, problem.devices)
    for where, summand in zip(places, problem.source.summands(problem.devices), strict=True):
        local = np.full(tile, rubbish, parts[0].dtype)
        if where is not None:
            part = parts[summand][where]
            local[tuple(map(slice, part.shape))] = part
        arrays.append(local)
    return arrays


def expect(problem: Problem, whole: Array, found: Sequence[Array], who: str) -> None:
    """Every element of every target tile is that of the whole array; partial values make it."""
    target = problem.target
    tile, places = target.tile(problem.shape), target.held(problem.shape, problem.devices)
    summands = target.summands(problem.devices)
    totals: dict[int, tuple[Array, Array]] = {}  # by summand: its elements, and which of them are known
    for d, (where, got) in enumerate(zip(places, found, strict=True)):
        if where is None:
            continue
        hold(got.shape == tile, f"{who}: device {d} ends with an array of {got.shape}, not {tile}")
        hold(got.dtype == whole.dtype, f"{who}: device {d} ends with {got.dtype}, not {whole.dtype}")
        want = whole[where]
        got = got[tuple(map(slice, want.shape))]
        if target.unreduced:
            total, known = totals.setdefault(summands[d], (np.zeros_like(whole), np.zeros(whole.shape, bool)))
            alike = ~known[where] | (total[where] == got)
            hold(bool(alike.all()), f"{who}: copies of a partial sum differ on device {d}")
            total[where], known[where] = got, True
        elif not same(got, want):
            at = tuple(np.argwhere(np.asarray(got != want))[0].tolist())
            raise Broken(f"{who}: device {d} ends with {got[at]} at {list(at)} of its tile, not {want[at]}")
    if target.unreduced:
        wide = np.complex128 if whole.dtype.kind == "c" else np.float64
        total = JOINS[target.reduction].reduce([part.astype(wide) for part, _ in totals.values()])
        hold(bool((total == whole.astype(wide)).all()), f"{who}: the partial values that are kept make another whole")


def same(got: Array, want: Array) -> bool:
    """Bit for bit where the type fills its bytes."""
    if few(want.dtype):
        return bool((got == want).all())
    return np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


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
            live = max(live, size if isinstance(chunk[0], ops.Reshape) else size + after)
        expect(problem, whole, arrays, f"NumPy, {planner}")
        claimed = plan.received
        hold(
            bool((received == claimed).all()), f"{planner} claims {claimed.max()} bytes; its ops move {received.max()}"
        )
        limit = problem.greatest_tile() if problem.limit == "max" else most
        hold(most <= limit, f"{planner} makes an array of {most} elements, more than {limit} of the greater tile")
        live = element.bytes(live)
        claimed = plan.peak_live_bytes
        hold(live <= claimed, f"{planner}: operand and result of an op take {live} bytes; the plan says {claimed}")
        bound = least(problem, element.bytes)
        hold(plan.lower_bound_bytes == bound, f"{planner}: the bound is {bound}, not {plan.lower_bound_bytes}")


def collected(program: ops.Program) -> Iterator[ops.Program]:
    """The ops one by one; an exchange, which keeps a second array, is one."""
    left = list(program)
    while left:
        chunk = [left.pop(0)]
        if isinstance(chunk[0], ops.BeginBoxExchange):
            while not isinstance(chunk[-1], ops.EndBoxExchange):
                chunk.append(left.pop(0))
        yield tuple(chunk)


def moved(chunk: ops.Program, tile: tuple[int, ...], size: Callable[[int], int]) -> Array | int:
    """Bytes that each device gets from others in ``chunk``; its operand has the shape ``tile``."""
    op, whole = chunk[0], math.prod(tile)
    match op:
        case ops.AllGather():
            return size(whole) * (op.groups.shape[1] - 1)
        case ops.AllToAll() | ops.ReduceScatter():
            return size(whole) - size(whole) // op.groups.shape[1]
        case ops.AllReduce():
            return 2 * (size(whole) - size(whole) // op.groups.shape[1])
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
    the same sum and held different summands, one at least is sent something for each.
    """
    held, needed = (side.held(problem.shape, problem.devices) for side in (problem.source, problem.target))
    summands = [side.summands(problem.devices) for side in (problem.source, problem.target)]
    together = len(set(zip(*summands, strict=True))) == len(set(summands[0])) == len(set(summands[1]))
    most = 0
    for have, want in zip(held, needed, strict=True):
        wanted = np.zeros(problem.shape, bool)
        if want is not None:
            wanted[want] = True
        if have is not None and together:
            wanted[have] = False
        most = max(most, int(wanted.sum()))
    return size(most)


# ---------------------------------------------------------------- XLA, and the reference interpreter


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
    from hlo_traffic import traffic

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


# ---------------------------------------------------------------- Shardy


def beside_shardy(problem: Problem, plan: Plan) -> list[str]:
    """Modelled bytes of ``plan`` against the collectives that Shardy's passes emit, where their program is right."""
    from hlo_traffic import traffic
    from reshard_ways import shardy_module

    import shardpass

    given = {
        "mesh": problem.source.sizes,
        "shape": problem.shape,
        "source": ["".join(ref.name for ref in axes) for axes in problem.source.dims],
        "target": ["".join(ref.name for ref in axes) for axes in problem.target.dims],
    }
    whole = contents(problem.shape, np.float32, np.random.default_rng(problem.number))
    try:
        text = annotated(shardy_module(given), problem)
        executable = shardpass.compile(text)
        (found,) = executable.run_tiles(*executable.place(whole))
        expect(problem, whole, [np.asarray(tile) for tile in found], "Shardy")
    except Broken:
        return ["Shardy wrong"]
    except Exception as error:
        return [f"Shardy fails ({type(error).__name__})"]
    theirs = traffic(str(executable.hlo_text()), problem.devices).bytes
    ours = plan.bytes_received
    hold(ours <= theirs, f"best receives {ours} bytes by the model, Shardy's program {theirs}")
    return ["fewer bytes than Shardy" if ours < theirs else "as many bytes as Shardy"]


def annotated(text: str, problem: Problem) -> str:
    """Shardy's module with what the runtime wants to know of its boundary."""
    kind = f"tensor<{'x'.join(map(str, (*problem.shape, problem.element)))}>"
    rows = [
        f'mhlo.sharding = "{{manual}}", shardpass.global_type = {kind}, shardpass.sharding = "{side.sharding()}"'
        for side in (problem.source, problem.target)
    ]
    before, middle, after = text.split('mhlo.sharding = "{manual}"')
    return before + rows[0] + middle + rows[1] + after


__all__ = ["ELEMENTS", "Broken", "Problem", "Side", "evaluated", "planned"]
