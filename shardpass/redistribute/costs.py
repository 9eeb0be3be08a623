"""What a plan is expected to take: an alpha-beta model, with a few named machines.

A collective takes a latency, and then as long as its busiest device needs for what it receives. Steps follow one
another, and so do local copies: slices, transposes, boxes that are cut out and put in place (``memory``). The model
chooses between plans and nothing else: bytes, bounds and checks do not depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from shardpass.redistribute.build import Builder


@dataclass(frozen=True, slots=True)
class Profile:
    """``latency``: seconds for each collective. ``bandwidth``: bytes a second that one device receives; ``copies``:
    that it copies.
    """

    name: str
    latency: float
    bandwidth: float
    copies: float
    about: str

    def cost(self, built: Builder) -> float:
        """Seconds, by the model."""
        received = [step.bytes for step in built.steps if step.kind != "dynamic_slice"]
        return self.latency * len(received) + sum(received) / self.bandwidth + built.memory.copied / self.copies


PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "default", 10e-6, 50e9, 1e12, "a fast interconnect inside a host or pod, copies at a twentieth of its price"
        ),
        Profile("cpu", 200e-6, 2e9, 2e9, "virtual devices of one CPU, through XLA's client"),
        Profile("ethernet", 50e-6, 3e9, 1e12, "hosts on a 25 Gbit/s network"),
        Profile("paper", 0.0, 1.0, math.inf, "bytes alone, as in section 6.2 of Rink et al."),
    )
}
