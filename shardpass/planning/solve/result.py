"""The result of a solver: an assignment, its price, and a lower bound on the price of all assignments."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

PROVED = 1e-6  # the part of a price below which a gap is the rounding of costs to whole numbers


@dataclass(frozen=True)
class Result:
    """An assignment with its price and a lower bound of all prices. Without any allowed assignment, ``values`` is empty
    and both are infinite.

    ``why``: the reason for which the search ended before a proof, "" if there is a proof.
    """

    values: Mapping[int, int]
    price: float
    bound: float
    why: str = ""

    @property
    def gap(self) -> float:
        """The fraction of the price that the best assignment may save at most."""
        if self.price <= self.bound or not math.isfinite(self.price):
            return 0.0
        return (self.price - self.bound) / self.price if self.price > 0 else math.inf
