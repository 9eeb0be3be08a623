"""How near a decision is to the best of its tables, in numbers and as a sentence."""

from __future__ import annotations

from dataclasses import asdict, dataclass

SAME = 1e-4  # a gap below it is no news to a user: ties and rounding
MODEL = "whole axes, at most one shared copy of each annotated array"  # of the tables
LEAST = f"the least sum of communication and work ({MODEL})"
SHARED = "ops share a copy of an open array, or parts of axes split one, so the plan costs less than the tables allow"
ALIKE = "equal layers are decided alike"
MANY = "equal layers are decided alike, and are too many to bound what others would save"
PLANNED = "the plan brings arrays otherwise than the tables do"


@dataclass(frozen=True)
class Bound:
    """How near a decision is to the least sum of seconds in the model of its tables.

    The tables have splits over whole axes. Ops may share one copy of an array that the user annotated; of an open array
    each op makes its own. A plan outside of this ``MODEL`` may cost less.

    ``price``: what the decision costs in the tables, in seconds; ``least``: a lower bound for all shardings in them.
    Both are None if there is no bound. ``plan``: the seconds of the plan, in which ops share copies: if it is below the
    least of the tables, that is no bound. ``why``: the reason for which there is no bound, or no closer one.
    ``makespan``: of the plan, ``least_makespan``: a lower bound for all shardings in the tables; None without one, or
    where nothing overlaps, and the makespan is the sum.
    """

    plan: float
    price: float | None = None
    least: float | None = None
    why: str = ""
    makespan: float | None = None
    least_makespan: float | None = None

    @classmethod
    def of(cls, plan: float, price: float, least: float, why: str) -> Bound:
        """Return the bound of a decision; all numbers are in seconds, as in the fields.

        If ``plan`` costs less than ``least``, the tables do not bound it: the result has no ``price`` or ``least``, and
        gives the reason ``SHARED``.
        """
        if plan < least * (1 - SAME):
            return cls(plan, why=SHARED)
        return cls(plan, price, min(least, plan), why)

    @property
    def gap(self) -> float | None:
        """The largest fraction of the cost that a better sharding could save; None without a bound.

        The cost is the larger of ``price`` and ``plan``.
        """
        if self.price is None or self.least is None:
            return None
        most = max(self.price, self.plan)
        return max(0.0, most - self.least) / most if most > 0 else 0.0

    @property
    def makespan_gap(self) -> float | None:
        """The largest fraction of the makespan that a better sharding could save; None without a bound."""
        if self.makespan is None or self.least_makespan is None:
            return None
        return max(0.0, 1 - self.least_makespan / self.makespan)

    def as_dict(self) -> dict[str, object]:
        """Return the fields for JSON; ``text`` is for readers."""
        return {"text": str(self), "gap": self.gap, **asdict(self), "makespan_gap": self.makespan_gap}

    def __str__(self) -> str:
        gap = self.makespan_gap
        if gap is None:
            return self._sum()
        return f"{'at' if gap < SAME else f'within {max(gap, 1e-3):.1%} of'} a bound of the makespan; {self._sum()}"

    def _sum(self) -> str:
        if self.gap is None:
            return f"not bounded, because {self.why}"
        if self.gap < SAME:
            return f"at {LEAST}"
        above = PLANNED if self.price is not None and self.plan > self.price * (1 + SAME) else ""
        why = f", as {self.why or above}" if self.why or above else ""
        return f"within {max(self.gap, 1e-3):.1%} of {LEAST}{why}"
