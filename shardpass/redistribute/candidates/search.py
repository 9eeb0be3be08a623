"""Which ways there are for a problem, and which of them is taken.

1. Nothing to do, or an array without elements: no steps.
2. Partial sums: in digits, else all_reduce and then as for whole values.
3. The borders of the tiles nest (every case where sizes divide, and more): planners on groups of devices.
4. They cross: tiles are refitted to a size on which they nest, as long as they are not tiny; beside that, or instead,
   the exact exchange, or for many devices what needs no look at every pair of them.
5. The source is on one device: the exact exchange, or for many devices doubling.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute.candidates.detour import detours, roomier
from shardpass.redistribute.candidates.digit_forms import DigitProblem
from shardpass.redistribute.candidates.digit_search import MOST_CHUNK_ROUNDS, detour_forms, digit_forms
from shardpass.redistribute.candidates.exchange import plan_exchange
from shardpass.redistribute.candidates.gather import meet
from shardpass.redistribute.candidates.gather_in_rounds import lean_forms
from shardpass.redistribute.candidates.pad_to_common_tile import common_shape, refitted
from shardpass.redistribute.candidates.rink import plan_rink
from shardpass.redistribute.candidates.staged import staged_forms
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import Builder, Form
from shardpass.redistribute.terms.choice import Terms, over_limit, show_seconds
from shardpass.sharding import Sharding

MOST_DEVICES_SEARCHED = 8192  # beyond this the paper's search is not run beside a plan that stands
MOST_DEVICES_WEIGHED = 1024  # nor, beyond this, beside one that receives the least possible, though links differ
NO_LESS = "no plan can receive less"
TOO_MANY = "its search takes long on so many devices"
FEW_DEVICES = 16  # on which the exact exchange is looked at beside other ways
MOST_DEVICES_EXCHANGED = 64  # beyond this, where there is another way, pieces are too many to look at


def build_plan(problem: Problem, planner: str, terms: Terms) -> Builder:
    """The cheapest plan that ``planner`` has for the problem. It is not checked yet."""
    if problem.is_nothing:
        return _start(problem)
    if math.prod(problem.shape) == 0:
        builder = _start(problem)
        builder.local(ops.Zeros(problem.target.tile), problem.target.tile)
        return builder
    shape = problem.aligned()
    if problem.source.summand is not None:
        return _with_sums(problem, shape, planner, terms)
    many = problem.devices > MOST_DEVICES_EXCHANGED
    if problem.source.only is not None and many:
        return _spread(problem, planner, terms)
    if problem.source.only is not None:
        built = terms.choose(_exchanges(problem))
    elif shape is None:
        built = _crossing(problem, planner, terms)
    else:
        built = _best(problem, shape, terms) if planner == "best" else _rink(problem, shape)
    return _beside_gather(problem, built, terms) if planner == "best" else built


def _beside_gather(problem: Problem, built: Builder, terms: Terms) -> Builder:
    """``built``, or gather and slice, where the limit allows that and it is cheaper."""
    middle = meet(problem)
    if middle is None:
        return built
    tiles = [built.bytes(tile) for tile in (middle.tile_shape(problem.shape), problem.source.tile, problem.target.tile)]
    if terms.limit == "max" and tiles[0] > max(tiles[1:]):
        return built.instead_of("gather", over_limit(tiles[0], max(tiles[1:])))
    least, price = terms.profile.least(tiles[0] - tiles[1]), terms.profile.cost(built)
    if least >= price and terms.fits(built):
        return built.instead_of("gather", f"dearer: at least {show_seconds(least)} against {show_seconds(price)}")
    gathered = gather_then_slice(problem, middle, terms)
    if terms.limit == "max" and gathered.memory.tile > max(built.memory.tile, *tiles[1:]):
        return built.instead_of("gather", over_limit(gathered.memory.tile, max(built.memory.tile, *tiles[1:])))
    return terms.choose([built, gathered], int(built.received.max()) if terms.limit == "max" else None)


def gather_then_slice(problem: Problem, middle: Sharding, terms: Terms) -> Builder:
    """By way of the meet of source and target."""
    first = build_plan(between(problem, target=middle), "best", terms)
    gathered = joined(first, build_plan(between(problem, source=middle), "best", terms))
    gathered.way, gathered.refused = "gather", []
    return gathered


def _spread(problem: Problem, planner: str, terms: Terms) -> Builder:
    """From one device to many: the holders double with every step; then from replicated on."""
    builder = _start(problem)
    held = problem.source.boxes(problem.shape)
    order = np.argsort(~held.real, kind="stable")
    count = 1
    while count < problem.devices:
        count *= 2
        real = np.zeros(problem.devices, bool)
        real[order[:count]] = True
        wanted = replace(held, real=real)
        plan_exchange(held, wanted, problem.source.base, problem.source.base, problem.source.tile, builder)
        held = wanted
    return joined(builder, build_plan(between(problem, source=Sharding.replicated()), planner, terms))


def _crossing(problem: Problem, planner: str, terms: Terms) -> Builder:
    """Where borders cross: tiles refitted to a common size, beside the exact exchange where devices are few."""
    paper = _refitted(problem, "rink", terms)
    if paper is not None and planner == "rink":
        return paper
    if paper is None:
        many = problem.devices > MOST_DEVICES_EXCHANGED
        return _gathered(problem, planner, terms) if many else terms.choose(_exchanges(problem))
    found = [paper, *filter(None, [_refitted(problem, "best", terms)])]
    if problem.devices <= FEW_DEVICES:
        found += _exchanges(problem)
    return cheapest(found, terms)


def _refitted(problem: Problem, planner: str, terms: Terms) -> Builder | None:
    """The plan for the common padded size between tiles that grow and tiles that shrink."""
    shape = common_shape(problem)
    padded = between(problem, shape=shape)
    built = _best(padded, shape, terms, is_real=False) if planner == "best" else _rink(padded, shape)
    whole = refitted(problem, shape, built)
    if whole is not None:
        whole.way = planner if planner == "rink" else "refitted"
    return whole


def _gathered(problem: Problem, planner: str, terms: Terms) -> Builder:
    """Where borders cross and the devices are too many to look at pieces: those dimensions are gathered first.

    Takes the memory of the source's tile with these dimensions whole.
    """
    source = problem.source.sharding
    assert source.mesh is not None  # or no border would cross
    dims = [axes if aligned else () for axes, aligned in zip(source.dims, problem.aligned_dims(), strict=True)]
    middle = Sharding.tiled(source.mesh, dims)
    first = build_plan(between(problem, target=middle), planner, terms)
    return joined(first, build_plan(between(problem, source=middle), planner, terms))


def between(
    problem: Problem,
    source: Sharding | None = None,
    target: Sharding | None = None,
    shape: tuple[int, ...] | None = None,
) -> Problem:
    """The problem with another source, target or shape."""
    return make_problem(
        shape or problem.shape,
        problem.element.mlir,
        source or problem.source.sharding,
        target or problem.target.sharding,
        problem.devices,
    )


def _rink(problem: Problem, shape: tuple[int, ...]) -> Builder:
    return _within(problem, shape, _rink_form(problem, shape), "rink")


def _rink_form(problem: Problem, shape: tuple[int, ...], in_rounds: bool = False) -> Form:
    return partial(plan_rink, shape, problem.source.tiling, problem.target.tiling, in_rounds=in_rounds)


def _best(problem: Problem, shape: tuple[int, ...], terms: Terms, is_real: bool = True) -> Builder:
    """The digits' plan where there is one; the paper's is asked for only where it could be better.

    Not ``is_real``: the array is padded, and an exact exchange would send the padding too.
    """
    few = is_real and problem.devices <= MOST_DEVICES_EXCHANGED
    digits = DigitProblem.of(problem, shape)
    if digits is not None:
        found = _in_digits(problem, shape, digits, terms)
        least = terms.choose(found)
        optimal = least.received.max() <= problem.lower_bound_bytes
        alone = optimal and terms.profile.is_flat  # else where bytes go counts beside how many they are
        many = problem.devices > (MOST_DEVICES_WEIGHED if optimal else MOST_DEVICES_SEARCHED)
        if terms.fits(least) and (alone or many):
            return least.instead_of("rink", "not tried: " + (NO_LESS if alone else TOO_MANY))
        if few and not terms.fits(least):
            found += _exchanges(problem)
        return cheapest([_rink(problem, shape), *found], terms)
    rink = _rink(problem, shape)
    found = [_within(problem, shape, _rink_form(problem, shape, in_rounds=True))]
    found += _detoured(problem, shape, terms)
    if few:
        found += _exchanges(problem)
    return cheapest([rink, *(e for e in found if len(e.steps) <= MOST_CHUNK_ROUNDS)], terms)


def _detoured(problem: Problem, shape: tuple[int, ...], terms: Terms) -> list[Builder]:
    """By way of whole dimensions; where there is no room to park, a dimension is padded if the limit allows that."""
    ways = detours(problem, shape)
    if ways or (room := roomier(problem, shape)) is None:
        return [_within(problem, shape, form) for halves in ways for form in detour_forms(halves)]
    found = [_within(problem, room, form) for halves in detours(problem, room) for form in detour_forms(halves)]
    return [built for built in found if terms.limit != "max" or built.memory.tile <= max(terms.tiles)]


def _in_digits(problem: Problem, shape: tuple[int, ...], digits: DigitProblem, terms: Terms) -> list[Builder]:
    forms = [*digit_forms(digits), *staged_forms(digits, terms.profile)]
    found = [_within(problem, shape, form) for form in forms]
    if not any(terms.fits(built) for built in found):
        found += [_within(problem, shape, form) for form in lean_forms(digits)]
    return found


def _with_sums(problem: Problem, shape: tuple[int, ...] | None, planner: str, terms: Terms) -> Builder:
    """Partial sums: in digits, else an all_reduce and then the plan for whole values."""
    digits = None if shape is None or planner == "rink" else DigitProblem.of(problem, shape)
    if shape is not None and digits is not None:
        found = _in_digits(problem, shape, digits, terms)
        whole = problem.target.summand is None
        return cheapest([_with_sums(problem, None, "rink", terms), *found], terms) if whole else terms.choose(found)
    source = problem.source.sharding
    if problem.target.summand is not None or source.mesh is None:
        raise table.UNREDUCED.error(source=str(source), target=str(problem.target.sharding))
    reduced = between(problem, source=Sharding.tiled(source.mesh, source.dims))
    builder = _start(problem)
    builder.all_reduce(source.groups(source.unreduced))
    return joined(builder, build_plan(reduced, planner, terms))


def joined(first: Builder, second: Builder) -> Builder:
    """One plan after the other."""
    return second.after(first)


def cheapest(candidates: list[Builder], terms: Terms) -> Builder:
    """The first candidate sets the bytes that none may exceed; of the rest the least by the cost model."""
    return terms.choose(candidates, int(candidates[0].received.max()))


def _start(problem: Problem, way: str = "") -> Builder:
    return Builder(problem.source.tile, problem.element, problem.names, way, problem.reduction)


def _exchanges(problem: Problem) -> list[Builder]:
    return [_exchanged(problem, by_shape) for by_shape in (False, True)]


def _exchanged(problem: Problem, by_shape: bool) -> Builder:
    builder = _start(problem, "exchange by shape" if by_shape else "exchange")
    plan_exchange(
        problem.source.boxes(problem.shape),
        problem.target.boxes(problem.shape),
        problem.source.base,
        problem.target.base,
        problem.target.tile,
        builder,
        by_shape=by_shape,
    )
    return builder


def _within(problem: Problem, shape: tuple[int, ...], form: Form, way: str = "") -> Builder:
    """The plan ``form`` for the padded ``shape``, between padding the source tile and trimming the target's."""
    builder = _start(problem, way)
    tile = tuple(n // k for n, k in zip(shape, problem.source.tiling.counts, strict=True))
    if tile != builder.tile:
        builder.local(ops.Pad(tile), tile)
    form(builder)
    if builder.tile != problem.target.tile:
        builder.local(ops.Trim(problem.target.tile), problem.target.tile)
    return builder
