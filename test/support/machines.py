"""Make machines for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from shardpass.cost.links import Switch
from shardpass.cost.machine import Machine


def switched(
    name: str,
    latency: float,
    bandwidth: float,
    copies: float,
    *,
    blocks: Sequence[tuple[int, float, float]] = (),
    flops: float = math.inf,
    about: str = "",
    **local: Any,
) -> Machine:
    """Make a machine whose devices are joined by switches.

    ``copies``: bytes per second through memory. ``blocks``: (devices, latency, bandwidth) of tiers of neighboring
    device ids, the innermost first.
    """
    links = (*[Switch(*block) for block in blocks], Switch(None, latency, bandwidth))
    return Machine(name, about, math.inf, copies, {"f32": flops}, links, local, ())
