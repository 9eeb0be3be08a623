"""What a plan is expected to take: an alpha-beta model of a network, with a few named machines.

A collective takes a latency, and then as long as its busiest device needs for what it receives. Steps follow one
another, and so do local copies: slices, transposes, boxes that are cut out and put in place (``memory``). The model
chooses between plans and nothing else: bytes, bounds and checks do not depend on it.

Two devices are joined by one *link*. On a flat machine that is the same for all. Otherwise links come in *tiers*, the
innermost first: devices of one block of tier 0 have its link, others of one block of tier 1 that one, and so on; the
last tier is the whole machine. Blocks are neighbouring device ids (hosts of 8), or the devices that agree on all mesh
axes slower than the tier's: so two devices are priced at the slowest axis on which they differ. In a collective on
groups each device receives as much from every other member, so of its bytes (g-1)/g of the group's, exactly, each tier
carries the part that comes from the members it joins; the latency is the greatest of those that are crossed.

Cost of pricing: O(steps) on a flat machine, else O(steps * devices * log devices), vectorised.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shardpass.redistribute.problem.device_arrays import IntArray
from shardpass.redistribute.problem.sub_axes import SubAxes
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import Step, StepKind


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


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine.

    Attributes:
        latency, bandwidth: of the link between any two devices that no other says (``Link``).
        copies: bytes a second that a device writes locally.
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

    @property
    def link(self) -> Link:
        return Link(self.latency, self.bandwidth)

    @property
    def is_flat(self) -> bool:
        return not (self.blocks or self.axes)

    def cost(self, built: Builder) -> float:
        """Seconds, by the model."""
        return self.seconds(tuple(built.steps), built.sub_axes) + built.memory.copied / self.copies

    def seconds(self, steps: tuple[Step, ...], sub_axes: SubAxes) -> float:
        """Seconds on the network, by the model."""
        moves = [step for step in steps if step.is_collective]
        if self.is_flat:
            return self.latency * len(moves) + sum(step.bytes for step in moves) / self.bandwidth
        network = tiers(self, sub_axes)
        return sum(step_seconds(step, network) for step in moves)

    def least(self, received: int) -> float:
        """What no collective by which a device receives so many bytes takes less than."""
        links = [self.link, *(link for _, link in (*self.blocks, *self.axes))]
        return min(link.latency for link in links) + received / max(link.bandwidth for link in links)


def step_seconds(step: Step, network: tuple[Tier, ...]) -> float:
    """What one collective takes."""
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
    """A tier for each kind of link, the fastest inside: its blocks agree on the axes of all slower ones."""
    known = dict(profile.axes)
    links = [known.get(part.axis, profile.link) for part in sub_axes.parts]
    tier_links = sorted(set(links), key=lambda link: (-link.bandwidth, link.latency))
    out = []
    for t, tier_link in enumerate(tier_links[:-1]):
        block = sub_axes.index(m for m, link in enumerate(links) if tier_links.index(link) > t)
        out.append(Tier(block, tier_link))
    return (*out, Tier(None, tier_links[-1] if tier_links else profile.link))


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("default", 10e-6, 50e9, 1e12, "a fast interconnect inside a host or pod, copies at a twentieth of it"),
        Profile("cpu", 200e-6, 2e9, 2e9, "virtual devices of one CPU, through XLA's client"),
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
}
