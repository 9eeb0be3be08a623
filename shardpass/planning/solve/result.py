"""What a solver answers: an assignment, its price, and a bound that no assignment falls below."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

PROVED = 1e-6  # the part of a price below which a gap is the rounding of costs to whole numbers


@dataclass(frozen=True)
class Result:
    """``values`` are empty where every assignment is forbidden, and ``price`` and ``bound`` infinite.

    ``why``: the reason for which the search ended before it had a proof; "" where it has one.
    """

    values: Mapping[int, int]
    price: float
    bound: float
    why: str = ""

    @property
    def gap(self) -> float:
        """By which part of the price the best assignment may be cheaper."""
        if self.price <= self.bound or not math.isfinite(self.price):
            return 0.0
        return (self.price - self.bound) / self.price if self.price > 0 else math.inf
