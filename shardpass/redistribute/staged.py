"""Gathers in stages, the slowest links first: for machines on which some devices are joined faster than others.

One all_gather over hosts and over the devices of each brings every device all bytes of all other hosts. Gathered across
the hosts first, a device receives from them what its own place in a host needs, and the rest from its neighbours: as
many bytes in all, over the slow links fewer by the number of devices in a host.

States: the mesh digits that are gathered, by the tier of the network that joins along them; between two stages those of
the faster tiers are still held. Each stage is a plan of its own (``best``), so nothing else changes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from shardpass.redistribute.best import digit_forms
from shardpass.redistribute.build import Builder
from shardpass.redistribute.costs import Profile, Tier, tiers
from shardpass.redistribute.digits import FREE, DigitProblem, State
from shardpass.redistribute.route import route

Form = Callable[[Builder], None]


def staged_forms(problem: DigitProblem, profile: Profile) -> list[Form]:
    """The forms of ``digit_forms`` with their gather in stages; none where one tier joins all that is gathered."""
    if profile.is_flat:
        return []
    states = _between(problem, tiers(profile, problem.names))
    if not states:
        return []
    ends = [*states, problem.target]
    stages = [replace(problem, source=a, target=b, partial=()) for a, b in zip(states, ends[1:], strict=True)]
    rest = [digit_forms(stage)[0] for stage in stages]
    first = replace(problem, target=states[0])
    return [partial(_in_turn, [form, *rest]) for form in digit_forms(first)]


def _between(problem: DigitProblem, network: tuple[Tier, ...]) -> list[State]:
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


def _tier(problem: DigitProblem, digit: int, network: tuple[Tier, ...]) -> int:
    """The innermost tier that joins all devices that differ on the mesh digit alone."""
    groups = problem.groups([digit])
    for level, tier in enumerate(network):
        if tier.block is None or (tier.block[groups] == tier.block[groups[:, :1]]).all():
            return level
    return len(network) - 1


def _in_turn(forms: list[Form], builder: Builder) -> None:
    for form in forms:
        form(builder)
