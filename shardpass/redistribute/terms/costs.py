"""The time that a plan takes, modelled: latencies, bandwidths and local copies of a machine, with a few named machines.

Problem: choose between plans that trade bytes for steps and memory traffic. The model does only that: bytes, bounds and
proofs do not depend on it. Source: the alpha-beta model; with no latency and bytes as the price it is that
of section 6.2 of Rink et al. (profile "paper").

A collective takes a latency, and then as long as its busiest device needs to receive its bytes. Steps follow one
another, and so do local copies: slices, transposes, boxes that are cut out and put in place (``program.memory``).

State: two devices are joined by one *link*; links come in *tiers*, the innermost first. Two devices in one block of
tier 0 have its link; others in one block of tier 1 have that one, and so on; the last tier is the whole machine.

1. A flat machine has one tier.
2. Blocks of neighbouring device ids, such as hosts of 8.
3. Links by mesh axis: a block of a tier holds the devices that agree on all axes with slower links. So two devices are
   priced at the slowest axis on which they differ.

In a collective on groups of g, a device receives 1/(g-1) of its bytes from each other member, over the link that joins
them. The latency is the greatest of the links that are crossed. A permute pays for the slowest link that it crosses.

Example: an all_gather in a group of 8 in two hosts of 4. A device gets 3/7 of its bytes from its own host, at that
link's bandwidth, and 4/7 from the other host at the slow one; the latency is that between hosts.

O(steps) on a flat machine, else O(steps * devices * log devices), vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from shardpass.cost.machine import MACHINES, Machine, find_machine
from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.local_work import LocalPrices, usual_prices
from shardpass.redistribute.program.steps import Step, StepKind

PRODUCTS = 3.2e12  # of a profile that does not say it


@dataclass(frozen=True, slots=True)
class Link:
    """``latency``: seconds for a collective that crosses it. ``bandwidth``: bytes a second that a device receives."""

    latency: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Tier:
    """``block[d]``: the block of device d, inside of which the link joins; None where it joins all."""

    block: IntArray | None  # [devices]
    link: Link

    def joins(self, ends: IntArray) -> NDArray[np.bool_]:
        """Whether the tier, or one inside it, joins the two devices of each pair. [pairs]"""
        if self.block is None:
            return np.ones(len(ends), bool)
        same: NDArray[np.bool_] = self.block[ends[:, 0]] == self.block[ends[:, 1]]
        return same

    def members(self, groups: IntArray) -> IntArray:
        """How many members of its group, itself too, each device shares a block with. int64 [groups, size]."""
        if self.block is None:
            return np.full(groups.shape, groups.shape[1])
        rows = np.arange(len(groups))[:, None] * (int(self.block.max()) + 1)
        _, place, count = np.unique((rows + self.block[groups]).ravel(), return_inverse=True, return_counts=True)
        members: IntArray = count[place].reshape(groups.shape)
        return members


@dataclass(frozen=True)
class Profile:
    """A machine.

    Attributes:
        latency, bandwidth: of the link between two devices that neither ``blocks`` nor ``axes`` join (``Link``).
        copies: bytes a second that a device writes locally.
        products: multiplications (with an addition each) a second of a large matrix product.
        runs, elements, places, gathers_by_pieces, cuts_by_slices, floats_as_bits: of local work
            (``program.local_work``); None: as ``copies`` suggests.
        blocks: (devices, link), the smallest first: each run of so many device ids is joined by the link.
        axes: (mesh axis, link): devices that differ along that axis alone are joined by the link.
    """

    name: str
    latency: float
    bandwidth: float
    copies: float
    about: str = ""
    blocks: tuple[tuple[int, Link], ...] = ()
    axes: tuple[tuple[str, Link], ...] = ()
    products: float = PRODUCTS
    runs: float | None = None
    elements: float | None = None
    places: float | None = None
    gathers_by_pieces: bool = False
    cuts_by_slices: bool = False
    floats_as_bits: bool = False

    @cached_property
    def local(self) -> LocalPrices:
        """The prices of local work."""
        usual = usual_prices(self.copies)
        return LocalPrices(
            self.copies,
            self.runs or usual.runs,
            self.elements or usual.elements,
            self.places or usual.places,
            self.gathers_by_pieces,
            self.cuts_by_slices,
            self.floats_as_bits,
        )

    @property
    def link(self) -> Link:
        return Link(self.latency, self.bandwidth)

    @property
    def is_flat(self) -> bool:
        return not (self.blocks or self.axes)

    def cost(self, built: Builder) -> float:
        """Modelled seconds of the whole plan."""
        return self.seconds(tuple(built.steps), built.sub_axes) + self.local.seconds(built.work)

    def seconds(self, steps: tuple[Step, ...], sub_axes: SubAxes) -> float:
        """Modelled seconds of the collectives."""
        moves = [step for step in steps if step.is_collective]
        if self.is_flat:
            return self.latency * len(moves) + sum(step.bytes for step in moves) / self.bandwidth
        network = tiers(self, sub_axes)
        return sum(step_seconds(step, network) for step in moves)

    def least(self, received: int) -> float:
        """A lower bound on the time of a collective by which some device receives ``received`` bytes."""
        links = [self.link, *(link for _, link in (*self.blocks, *self.axes))]
        return min(link.latency for link in links) + received / max(link.bandwidth for link in links)


def step_seconds(step: Step, network: tuple[Tier, ...]) -> float:
    """The time of one collective."""
    links = [tier.link for tier in network]
    crossed: list[int]
    if step.kind == StepKind.COLLECTIVE_PERMUTE:
        joined = np.stack([tier.joins(step.groups) for tier in network])
        crossed = sorted(set(joined.argmax(axis=0).tolist()))
        latency, slowest = max(links[t].latency for t in crossed), min(links[t].bandwidth for t in crossed)
        return latency + step.bytes / slowest
    size = step.groups.shape[1]
    within = np.stack([tier.members(step.groups) for tier in network])
    peers = np.diff(within, axis=0, prepend=1)  # [tiers, groups, size]
    crossed = [t for t in range(len(links)) if peers[t].any()]
    if not crossed:
        return min(link.latency for link in links)
    each = step.bytes / max(size - 1, 1)
    busy = sum(peers[t] * (each / links[t].bandwidth) for t in crossed)
    return max(links[t].latency for t in crossed) + float(np.max(busy))


@lru_cache(maxsize=64)
def tiers(profile: Profile, sub_axes: SubAxes) -> tuple[Tier, ...]:
    """The network of ``profile`` under the mesh of ``sub_axes``, the innermost tier first."""
    if profile.axes:
        return _axis_tiers(profile, sub_axes)
    devices = np.arange(sub_axes.devices)
    inner = tuple(Tier(devices // size, link) for size, link in profile.blocks if size < len(devices))
    whole = next((link for size, link in profile.blocks if size >= len(devices)), profile.link)
    return (*inner, Tier(None, whole))


def _axis_tiers(profile: Profile, sub_axes: SubAxes) -> tuple[Tier, ...]:
    """A tier for each link in use, the fastest inside (case 3)."""
    known = dict(profile.axes)
    links = [known.get(part.axis, profile.link) for part in sub_axes.parts]
    tier_links = sorted(set(links), key=lambda link: (-link.bandwidth, link.latency))
    out = []
    for t, tier_link in enumerate(tier_links[:-1]):
        block = sub_axes.index(m for m, link in enumerate(links) if tier_links.index(link) > t)
        out.append(Tier(block, tier_link))
    return (*out, Tier(None, tier_links[-1] if tier_links else profile.link))


WRITTEN = (
    Profile("default", 10e-6, 50e9, 1e12, "a fast interconnect inside a host or pod, copies at a twentieth of it"),
    Profile("ethernet", 50e-6, 3e9, 1e12, "hosts on a 25 Gbit/s network"),
    Profile(
        "pod",
        25e-6,
        12.5e9,
        1e12,
        "hosts of 8 devices: fast inside, 100 Gbit/s for each device between",
        blocks=((8, Link(5e-6, 150e9)),),
    ),
    Profile("paper", 0.0, 1.0, math.inf, "bytes alone, as in section 6.2 of Rink et al."),
)


def of_machine(machine: Machine) -> Profile:
    """The profile of a machine of ``cost.machines``: on a torus, links as one mesh axis has them."""
    *inner, outer = machine.links
    return Profile(
        machine.name,
        outer.latency,
        outer.usual,
        machine.memory_bandwidth,
        machine.about,
        tuple((int(link.devices or 0), Link(link.latency, link.usual)) for link in inner),
        products=machine.rate("bf16") / 2,
        **machine.local,
    )


class _Profiles(Mapping[str, Profile]):
    """Those that are written above, and of each machine, which is read when it is asked for."""

    def __init__(self) -> None:
        self._known = {profile.name: profile for profile in WRITTEN}

    def __getitem__(self, name: str) -> Profile:
        if name not in self._known:
            self._known[name] = of_machine(find_machine(name))
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*(profile.name for profile in WRITTEN), *MACHINES))

    def __len__(self) -> int:
        return len(WRITTEN) + len(MACHINES)

    def __contains__(self, name: object) -> bool:
        return name in self._known or name in MACHINES


PROFILES: Mapping[str, Profile] = _Profiles()
