"""List the candidates for a problem, and choose one.

Problem: many ways lead from source to target; none is best on every problem, and each has problems to which it does not
apply. Sources: Rink et al. for ``rink``; GSPMD's fallback, replicate and slice, for ``gather``; Shardy, which also
replaces one sharding by another axis by axis, for the notion of sub-axes; the rest is of this package.

State: candidates, each a ``Builder`` with a finished program; ``terms.choice`` compares them.

Cases, the first that applies:

1. Nothing to do, or an array without elements: no steps. [{x}, {}] to [{x}, {}].
2. Partial sums that are added: by sub-axes, or an all_reduce and then as for whole values.
3. The source is on one device: the box exchange where few devices receive, beside the ``tree`` where several do. The
   whole array for 64 devices: 63 rounds, or 6.
4. The borders of the tiles cross, 10 rows in tiles of 5 against tiles of 3: tiles slide to a common size
   (``pad_to_common_tile``), beside the box exchange on few devices. Tiles too small to slide take the box exchange,
   or on many devices a gather of these dimensions.
5. The borders nest, as in every case where sizes divide: ``sub_axes`` where the tilings nest as lists of sub-axes, else
   its ``detour``, which competes with the paper's plan in rounds and, on few devices, with the box exchange.

The paper's plan (``rink``) sets the bytes that no other candidate may exceed. Beside the result of 3 to 5, ``gather``
competes where the memory limit allows it.

Invariant: every candidate ends with the target's tiles; ``planner`` proves that for the chosen one.
Cost: the candidates' own; the box exchange, whose cost grows with the pairs of devices, is built up to
``MOST_DEVICES_EXCHANGED`` devices (from one device: receivers) where there is another.
"""

from __future__ import annotations

import math
from functools import partial

from shardpass.diagnostics import table_redistribute as table
from shardpass.redistribute.candidates.box_exchange import append_transfers, box_transfers
from shardpass.redistribute.candidates.gather import meet
from shardpass.redistribute.candidates.pad_to_common_tile import common_shape, slid_to_common_tile
from shardpass.redistribute.candidates.rink import plan_rink
from shardpass.redistribute.candidates.sub_axes.assignments import SubAxisProblem
from shardpass.redistribute.candidates.sub_axes.common_tile import through_common_tile
from shardpass.redistribute.candidates.sub_axes.detour import detours
from shardpass.redistribute.candidates.sub_axes.gather_in_rounds import strategies_gathering_in_rounds
from shardpass.redistribute.candidates.sub_axes.strategies import common_tile_strategies, detour_strategies, strategies
from shardpass.redistribute.candidates.tree import append_tree
from shardpass.redistribute.problem.checks import make_problem
from shardpass.redistribute.problem.problem import Problem
from shardpass.redistribute.program import ops
from shardpass.redistribute.program.build import FREE, Builder, Strategy
from shardpass.redistribute.program.local_work import LocalPrices
from shardpass.redistribute.terms.choice import Terms, over_limit, show_seconds
from shardpass.redistribute.terms.costs import cost, local_prices
from shardpass.sharding import Sharding

MOST_DEVICES_SEARCHED = 8192  # beyond this the paper's plan is not built where another fits the limit
MOST_DEVICES_WEIGHED = 1024  # the same, where links differ in speed and the other receives the least possible
MOST_STEPS = 8  # of a candidate where sub-axes say none: beyond this latencies outweigh the bytes that are saved
NO_LESS = "no plan can receive less"
TOO_MANY = "its search takes long on so many devices"
FEW_DEVICES = 16  # up to which the box exchange is built beside other candidates
MOST_DEVICES_EXCHANGED = 64  # beyond this, where there is another candidate, there are too many transfers to plan


def build_plan(problem: Problem, planner: str, terms: Terms) -> Builder:
    """Build the cheapest plan that ``planner`` has for the problem, not yet proved."""
    if problem.is_nothing:
        return _start(problem)
    if math.prod(problem.shape) == 0:
        builder = _start(problem)
        builder.local(ops.Zeros(problem.target.tile), problem.target.tile)
        return builder
    shape = problem.aligned()
    if problem.source.summand is not None:
        return _with_sums(problem, shape, planner, terms)
    if problem.source.only is not None:
        built = _from_one_device(problem, problem.source.only, terms)
    elif shape is None:
        built = _on_crossing_borders(problem, planner, terms)
    else:
        built = _on_nesting_borders(problem, shape, terms) if planner == "best" else _rink(problem, shape)
    return _beside_gather(problem, built, terms) if planner == "best" else built


def _beside_gather(problem: Problem, built: Builder, terms: Terms) -> Builder:
    """Return ``built``, or a gather and a slice if these are cheaper and the memory limit allows."""
    middle = meet(problem)
    if middle is None:
        return built
    tiles = [built.bytes(tile) for tile in (middle.tile_shape(problem.shape), problem.source.tile, problem.target.tile)]
    if terms.limit == "max" and tiles[0] > max(tiles[1:]):
        return built.instead_of("gather", over_limit(tiles[0], max(tiles[1:])))
    least, price = terms.machine.least(tiles[0] - tiles[1]), cost(terms.machine, built)
    if least >= price and terms.fits(built):
        return built.instead_of("gather", f"slower: at least {show_seconds(least)} against {show_seconds(price)}")
    gathered = gather_then_slice(problem, middle, terms)
    if terms.limit == "max" and gathered.memory.tile > max(built.memory.tile, *tiles[1:]):
        return built.instead_of("gather", over_limit(gathered.memory.tile, max(built.memory.tile, *tiles[1:])))
    return terms.choose([built, gathered], int(built.received.max()) if terms.limit == "max" else None)


def gather_then_slice(problem: Problem, middle: Sharding, terms: Terms) -> Builder:
    """Plan source to ``middle``, the meet of source and target, and from there to the target."""
    first = build_plan(between(problem, target=middle), "best", terms)
    gathered = in_turn(first, build_plan(between(problem, source=middle), "best", terms))
    gathered.label, gathered.refused = "gather", []
    return gathered


def _from_one_device(problem: Problem, root: int, terms: Terms) -> Builder:
    """Build the box exchange, with a round for each receiving device, beside the tree if several devices receive."""
    receive = problem.target.boxes(problem.shape).volume > 0
    receivers = int(receive.sum()) - int(receive[root])
    candidates = [_box_exchange(problem)] if receivers <= MOST_DEVICES_EXCHANGED else []
    if receivers > 1:
        tree = _start(problem, "tree")
        append_tree(problem, root, tree)
        candidates.append(tree)
    return terms.choose(candidates)


def _on_crossing_borders(problem: Problem, planner: str, terms: Terms) -> Builder:
    """Build tiles that slide to a common size, beside the box exchange where devices are few."""
    paper = _slid(problem, "rink", terms)
    if paper is not None and planner == "rink":
        return paper
    if paper is None:
        many = problem.devices > MOST_DEVICES_EXCHANGED
        return _crossing_gathered(problem, planner, terms) if many else _box_exchange(problem)
    candidates = [paper, *filter(None, [_slid(problem, "best", terms)])]
    if problem.devices <= FEW_DEVICES:
        candidates.append(_box_exchange(problem))
    return cheapest(candidates, terms)


def _slid(problem: Problem, planner: str, terms: Terms) -> Builder | None:
    """Build the plan for the common padded size, between source tiles that grow and target tiles that shrink."""
    shape = common_shape(problem)
    padded = between(problem, shape=shape)
    built = _on_nesting_borders(padded, shape, terms, is_real=False) if planner == "best" else _rink(padded, shape)
    slid = slid_to_common_tile(problem, shape, built)
    if slid is not None:
        slid.label = planner if planner == "rink" else "slide to common tiles"
    return slid


def _crossing_gathered(problem: Problem, planner: str, terms: Terms) -> Builder:
    """Gather the dimensions whose borders cross first, if there are too many devices for a box exchange.

    Needs the memory of the source's tile with these dimensions whole.
    """
    source = problem.source.sharding
    assert source.mesh is not None  # or no border would cross
    dims = [axes if aligned else () for axes, aligned in zip(source.dims, problem.aligned_dims(), strict=True)]
    middle = Sharding.tiled(source.mesh, dims)
    first = build_plan(between(problem, target=middle), planner, terms)
    return in_turn(first, build_plan(between(problem, source=middle), planner, terms))


def between(
    problem: Problem,
    source: Sharding | None = None,
    target: Sharding | None = None,
    shape: tuple[int, ...] | None = None,
) -> Problem:
    """Return a copy of the problem with another source, target or shape."""
    return make_problem(
        shape or problem.shape,
        problem.element.mlir,
        source or problem.source.sharding,
        target or problem.target.sharding,
        problem.devices,
    )


def _rink(problem: Problem, shape: tuple[int, ...]) -> Builder:
    return _padded_and_trimmed(problem, shape, _rink_strategy(problem, shape), "rink")


def _rink_strategy(problem: Problem, shape: tuple[int, ...], in_rounds: bool = False) -> Strategy:
    return partial(plan_rink, shape, problem.source.tiling, problem.target.tiling, in_rounds=in_rounds)


def _on_nesting_borders(problem: Problem, shape: tuple[int, ...], terms: Terms, is_real: bool = True) -> Builder:
    """Plan by sub-axes if possible; build the paper's plan only if it could be better.

    Not ``is_real``: the array is padded for the plan, and a box exchange would send the padding too.
    """
    few = is_real and problem.devices <= MOST_DEVICES_EXCHANGED
    by_sub_axes = SubAxisProblem.of(problem, shape)
    if by_sub_axes is not None:
        candidates = _by_sub_axes(problem, shape, by_sub_axes, terms)
        least = terms.choose(candidates)
        optimal = least.received.max() <= problem.lower_bound_bytes
        alone = optimal and terms.machine.joins_all(
            problem.devices
        )  # on other machines the links that bytes cross count too
        many = problem.devices > (MOST_DEVICES_WEIGHED if optimal else MOST_DEVICES_SEARCHED)
        if terms.fits(least) and (alone or many):
            return least.instead_of("rink", "not tried: " + (NO_LESS if alone else TOO_MANY))
        if few and not terms.fits(least):
            candidates.append(_box_exchange(problem))
        return cheapest([_rink(problem, shape), *candidates], terms)
    rink = _rink(problem, shape)
    candidates = [_padded_and_trimmed(problem, shape, _rink_strategy(problem, shape, in_rounds=True))]
    candidates += _detoured(problem, shape, terms)
    for ends in through_common_tile(problem, shape):
        candidates += _of_strategies(problem, shape, common_tile_strategies(ends), terms)
    if few:
        candidates.append(_box_exchange(problem))
    return cheapest([rink, *(c for c in candidates if len(c.steps) <= MOST_STEPS)], terms)


def _detoured(problem: Problem, shape: tuple[int, ...], terms: Terms) -> list[Builder]:
    """Build the detours."""
    given = [strategy for halves in detours(problem, shape) for strategy in detour_strategies(halves)]
    return _of_strategies(problem, shape, given, terms)


def _by_sub_axes(problem: Problem, shape: tuple[int, ...], by_sub_axes: SubAxisProblem, terms: Terms) -> list[Builder]:
    candidates = _of_strategies(problem, shape, strategies(by_sub_axes), terms)
    if not any(terms.fits(built) for built in candidates):
        candidates += _of_strategies(problem, shape, strategies_gathering_in_rounds(by_sub_axes), terms)
    return candidates


def _of_strategies(problem: Problem, shape: tuple[int, ...], given: list[Strategy], terms: Terms) -> list[Builder]:
    prices = local_prices(terms.machine)
    return [_padded_and_trimmed(problem, shape, strategy, prices=prices) for strategy in given]


def _with_sums(problem: Problem, shape: tuple[int, ...] | None, planner: str, terms: Terms) -> Builder:
    """Add partial sums: by sub-axes, else by an all_reduce followed by a plan for whole values."""
    by_sub_axes = None if shape is None or planner == "rink" else SubAxisProblem.of(problem, shape)
    if shape is not None and by_sub_axes is not None:
        candidates = _by_sub_axes(problem, shape, by_sub_axes, terms)
        whole = problem.target.summand is None
        if not whole:
            return terms.choose(candidates)
        return cheapest([_with_sums(problem, None, "rink", terms), *candidates], terms)
    source = problem.source.sharding
    if problem.target.summand is not None or source.mesh is None:
        raise table.UNREDUCED.error(source=str(source), target=str(problem.target.sharding))
    reduced = between(problem, source=Sharding.tiled(source.mesh, source.dims))
    builder = _start(problem)
    builder.all_reduce(source.groups(source.unreduced))
    return in_turn(builder, build_plan(reduced, planner, terms))


def in_turn(first: Builder, second: Builder) -> Builder:
    """Concatenate two plans."""
    return second.after(first)


def cheapest(candidates: list[Builder], terms: Terms) -> Builder:
    """Return the cheapest by the cost model among the candidates that receive no more bytes than the first."""
    return terms.choose(candidates, int(candidates[0].received.max()))


def _start(problem: Problem, label: str = "", prices: LocalPrices = FREE) -> Builder:
    return Builder(problem.source.tile, problem.element, problem.sub_axes, label, problem.reduction, prices)


def _box_exchange(problem: Problem) -> Builder:
    builder, source, target = _start(problem, "exchange"), problem.source, problem.target
    transfers = box_transfers(source.boxes(problem.shape), target.boxes(problem.shape))
    append_transfers(transfers, source.base, target.base, target.tile, builder)
    return builder


def _padded_and_trimmed(
    problem: Problem, shape: tuple[int, ...], strategy: Strategy, label: str = "", prices: LocalPrices = FREE
) -> Builder:
    """Build ``strategy`` for the padded ``shape``, between padding the source tile and trimming the target's."""
    builder = _start(problem, label, prices)
    tile = tuple(n // k for n, k in zip(shape, problem.source.tiling.counts, strict=True))
    if tile != builder.tile:
        builder.pad(tile)
    strategy(builder)
    if builder.tile != problem.target.tile:
        builder.local(ops.Trim(problem.target.tile), problem.target.tile)
    return builder
