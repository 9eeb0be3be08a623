"""Gathers and sums in stages: for machines on which some devices are joined faster than others.

One all_gather over hosts and over the devices of each brings every device all bytes of all other hosts. Gathered across
the hosts first, a device receives from them what its own place in a host needs, and the rest from its neighbours: as
many bytes in all, over the slow links fewer by the number of devices in a host. So for sums: a reduce_scatter inside
each host, an all_reduce of the parts across hosts, and an all_gather inside.

States of a gather: the mesh digits that are gathered, by the tier of the network that joins along them; between two
stages those of the faster tiers are still held. Of a sum: the mesh digits of the fastest tier hold *spare* tensor
digits, cut from what nobody splits, between the first stage and the last. Each stage is a plan of its own (``best``),
so nothing else changes.
"""

from __future__ import annotations

from dataclasses import replace

from shardpass.redistribute.candidates.digit_forms import FREE, Assignment, DigitProblem, TensorDigit
from shardpass.redistribute.candidates.digit_search import digit_forms
from shardpass.redistribute.candidates.route import route
from shardpass.redistribute.program.build import Form, in_sequence
from shardpass.redistribute.terms.costs import Profile, Tier, tiers


def staged_forms(problem: DigitProblem, profile: Profile) -> list[Form]:
    """The forms of ``digit_forms`` with gather or sum in stages; none where one tier joins all that takes part."""
    if profile.is_flat:
        return []
    network = tiers(profile, problem.names)
    found = _through(problem, _between(problem, network))
    spared = _spared(problem, network)
    return found if spared is None else found + _through(*spared)


def _through(problem: DigitProblem, states: list[Assignment]) -> list[Form]:
    """By way of ``states``; sums are added on the way to the first."""
    if not states:
        return []
    ends = [*states, problem.target]
    stages = [replace(problem, source=a, target=b, partial=()) for a, b in zip(states, ends[1:], strict=True)]
    rest = [digit_forms(stage)[0] for stage in stages]
    first = replace(problem, target=states[0])
    return [in_sequence(form, *rest) for form in digit_forms(first)]


def _between(problem: DigitProblem, network: tuple[Tier, ...]) -> list[Assignment]:
    """The states between the stages, in order."""
    last = route(problem).last
    gathered = [m for m, t in enumerate(problem.target) if t == FREE and last[m] != FREE]
    if len(gathered) < 2:
        return []
    tier = {m: _tier(problem, m, network) for m in gathered}
    out = []
    for level in sorted(set(tier.values()), reverse=True)[:-1]:
        held = {m: last[m] for m in gathered if tier[m] < level}
        out.append(tuple(held.get(m, t) for m, t in enumerate(problem.target)))
    return out


def _spared(problem: DigitProblem, network: tuple[Tier, ...]) -> tuple[DigitProblem, list[Assignment]] | None:
    """The problem with spare digits, and the state in which the fastest tier of what is summed holds them."""
    summed = [m for m in problem.partial if route(problem).first[m] == FREE]
    tier = {m: _tier(problem, m, network) for m in summed}
    fast = [m for m in summed if tier[m] == min(tier.values())]
    size = problem.size(fast)
    room = [t for t, digit in enumerate(problem.digits) if digit.size % size == 0 and _ends(problem, t)]
    if len(fast) == len(summed) or not room:
        return None
    cut, count = room[0], len(fast)
    spare = [TensorDigit(problem.digits[cut].dim, problem.names.digits[m].size) for m in fast]
    rest = TensorDigit(problem.digits[cut].dim, problem.digits[cut].size // size)
    digits = (*problem.digits[:cut], *spare, rest, *problem.digits[cut + 1 :])
    source, target = (tuple(t + count if t >= cut else t for t in s) for s in (problem.source, problem.target))
    wider = replace(problem, digits=digits, source=source, target=target)
    held = {m: cut + k for k, m in enumerate(fast)}
    return wider, [tuple(held.get(m, t) for m, t in enumerate(target))]


def _ends(problem: DigitProblem, t: int) -> bool:
    """Whether tensor digit ``t`` is the last of its dimension, which nobody holds."""
    return t + 1 == len(problem.digits) or problem.digits[t + 1].dim != problem.digits[t].dim


def _tier(problem: DigitProblem, digit: int, network: tuple[Tier, ...]) -> int:
    """The innermost tier that joins all devices that differ on the mesh digit alone."""
    groups = problem.groups([digit])
    for level, tier in enumerate(network):
        if tier.block is None or (tier.block[groups] == tier.block[groups[:, :1]]).all():
            return level
    return len(network) - 1
