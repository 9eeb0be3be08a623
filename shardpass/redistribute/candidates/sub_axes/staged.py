"""Gathers and sums in stages: for machines on which some devices are joined faster than others.

Problem: one all_gather over hosts and over the devices of each host brings every device all bytes of all other hosts
over the slow links between hosts. As many bytes in all can be received with fewer of them over slow links.

State: the *tier* of a sub-axis is the innermost tier of the network (``terms.costs``) that joins all devices that
differ on it alone: 0 inside a host, 1 between hosts.

1. A gather over several tiers becomes one gather for each tier, the slowest first. Between two stages the sub-axes of
   the faster tiers are still split.
2. A sum over several tiers becomes a reduce_scatter over the fastest, an all_reduce over the others, and an all_gather
   over the fastest. What the reduce_scatter scatters is a *spare* sub-dimension, cut from a local one.

Example: mesh h=2, d=4, hosts of 4 devices along d, an array of w bytes. The gather of [{h, d}] receives 4w/8 over the
slow links at once. In stages, h first: each device gets w/8 from the other host, then 3w/4 from its own. The sum over h
and d: each device scatters in its host (3w/4), adds w/4 with its pair in the other host, and gathers 3w/4.

Each stage is a problem in assignments of its own, with the usual strategies.
"""

from __future__ import annotations

from dataclasses import replace

from shardpass.redistribute.candidates.sub_axes.assignments import REPLICATED, Assignment, SubAxisProblem, SubDim
from shardpass.redistribute.candidates.sub_axes.route import find_route
from shardpass.redistribute.candidates.sub_axes.strategies import strategies
from shardpass.redistribute.program.build import Strategy, in_sequence
from shardpass.redistribute.terms.costs import Profile, Tier, tiers


def staged_strategies(problem: SubAxisProblem, profile: Profile) -> list[Strategy]:
    """The strategies with gather or sum in stages; none where one tier joins all that takes part."""
    if profile.is_flat:
        return []
    network = tiers(profile, problem.sub_axes)
    gathering = _by_way_of(problem, _between_gathers(problem, network))
    scattered = _with_spares(problem, network)
    return gathering if scattered is None else gathering + _by_way_of(*scattered)


def _by_way_of(problem: SubAxisProblem, middles: list[Assignment]) -> list[Strategy]:
    """Recipes through the assignments ``middles``; partial sums are added on the way to the first."""
    if not middles:
        return []
    ends = [*middles, problem.target]
    stages = [replace(problem, source=a, target=b, summed=()) for a, b in zip(middles, ends[1:], strict=True)]
    rest = [strategies(stage)[0] for stage in stages]
    first = replace(problem, target=middles[0])
    return [in_sequence(strategy, *rest) for strategy in strategies(first)]


def _between_gathers(problem: SubAxisProblem, network: tuple[Tier, ...]) -> list[Assignment]:
    """Case 1: the assignments between the stages, in order."""
    last = find_route(problem).last
    gathered = [m for m, t in enumerate(problem.target) if t == REPLICATED and last[m] != REPLICATED]
    if len(gathered) < 2:
        return []
    tier = {m: _tier(problem, m, network) for m in gathered}
    out = []
    for level in sorted(set(tier.values()), reverse=True)[:-1]:
        still = {m: last[m] for m in gathered if tier[m] < level}
        out.append(tuple(still.get(m, t) for m, t in enumerate(problem.target)))
    return out


def _with_spares(problem: SubAxisProblem, network: tuple[Tier, ...]) -> tuple[SubAxisProblem, list[Assignment]] | None:
    """Case 2: the problem with spare sub-dimensions, and the assignment that splits them over the fastest tier."""
    summed = [m for m in problem.summed if find_route(problem).first[m] == REPLICATED]
    tier = {m: _tier(problem, m, network) for m in summed}
    fast = [m for m in summed if tier[m] == min(tier.values())]
    size = problem.sub_axes.count(fast)
    room = [t for t, sub_dim in enumerate(problem.sub_dims) if sub_dim.size % size == 0 and _is_last(problem, t)]
    if len(fast) == len(summed) or not room:
        return None
    cut, count = room[0], len(fast)
    dim = problem.sub_dims[cut].dim
    spare = [SubDim(dim, problem.sub_axes.sizes[m]) for m in fast]
    rest = SubDim(dim, problem.sub_dims[cut].size // size)
    sub_dims = (*problem.sub_dims[:cut], *spare, rest, *problem.sub_dims[cut + 1 :])
    source, target = (tuple(t + count if t >= cut else t for t in s) for s in (problem.source, problem.target))
    wider = replace(problem, sub_dims=sub_dims, source=source, target=target)
    scattered = {m: cut + k for k, m in enumerate(fast)}
    return wider, [tuple(scattered.get(m, t) for m, t in enumerate(target))]


def _is_last(problem: SubAxisProblem, t: int) -> bool:
    """Whether sub-dimension ``t`` is the last of its dimension, which nobody splits."""
    return t + 1 == len(problem.sub_dims) or problem.sub_dims[t + 1].dim != problem.sub_dims[t].dim


def _tier(problem: SubAxisProblem, m: int, network: tuple[Tier, ...]) -> int:
    """The innermost tier that joins all devices that differ on the sub-axis alone."""
    groups = problem.sub_axes.groups([m])
    for level, tier in enumerate(network):
        if tier.block is None or (tier.block[groups] == tier.block[groups[:, :1]]).all():
            return level
    return len(network) - 1
