"""Which of several plans is taken, and why the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import Refusal
from shardpass.redistribute.terms.costs import Profile
from shardpass.redistribute.terms.limit import Limit, show_bytes

FEW, MANY = 3, 1.15  # collectives, and what more of them cost over their price
NEAR = 1.5  # times the least peak, where no way keeps to "max"


@dataclass(frozen=True, slots=True)
class Terms:
    """What plans are chosen by: the prices of ``profile`` within ``limit``."""

    profile: Profile
    limit: Limit
    tiles: tuple[int, int] = (0, 0)  # bytes of the source's and the target's

    @property
    def most_live(self) -> int | None:
        """Bytes that may live together. By "max": the source tile and the result, and beside them the greater of both
        tiles and the result once more. Ways with greater tiles are not built at all.
        """
        if self.limit == "max":
            return self.tiles[0] + 2 * self.tiles[1] + max(self.tiles)
        return self.limit

    def fits(self, built: Builder) -> bool:
        """Whether what lives together keeps to the limit; the paper's plans keep to "max" in the paper's sense."""
        if self.limit == "max" and built.label == "rink":
            return True
        return self.most_live is None or built.memory.peak <= self.most_live

    def price(self, built: Builder) -> float:
        """Seconds, and some more for a plan of many collectives: each is one more to schedule and to wait for."""
        return self.profile.cost(built) * (MANY if _collectives(built) > FEW else 1)

    def choose(self, candidates: Sequence[Builder], most_received: int | None = None) -> Builder:
        """The cheapest of those that fit, or else of those with the least peak. It keeps why the others are refused.

        ``most_received``: of those that fit, no others are taken than those by which no device receives more, if any.
        """
        fitting = [c for c in candidates if self.fits(c)]
        if not fitting:
            least = min(c.memory.peak for c in candidates)
            fitting = [c for c in candidates if c.memory.peak <= (NEAR if self.limit == "max" else 1) * least]
        lean = [c for c in fitting if most_received is None or c.received.max(initial=0) <= most_received]
        costs = {id(c): self.price(c) for c in lean or fitting}
        return _told(min(lean or fitting, key=lambda c: costs[id(c)]), candidates, costs, self)


def _told(taken: Builder, candidates: Sequence[Builder], costs: dict[int, float], terms: Terms) -> Builder:
    refused = [Refusal(label_of(c), _why(c, taken, costs, terms)) for c in candidates if c is not taken]
    taken.refused = list(dict.fromkeys([*taken.refused, *refused]))
    return taken


def _why(refused: Builder, taken: Builder, costs: dict[int, float], terms: Terms) -> str:
    if terms.most_live is not None and not terms.fits(refused):
        return over_limit(refused.memory.peak, terms.most_live)
    more = _times(refused, taken)
    if id(refused) not in costs:
        return more or "more bytes than the paper's plan"
    price, best = (terms.profile.cost(c) for c in (refused, taken))
    if price > best:
        why = f"dearer: {show_seconds(price)} against {show_seconds(best)}"
    else:
        why = "no cheaper" if price == best else f"no cheaper by enough for {_collectives(refused)} collectives"
    return f"{why}, {more}" if more else why


def _collectives(built: Builder) -> int:
    return sum(step.is_collective for step in built.steps)


def _times(refused: Builder, taken: Builder) -> str:
    """How many times the bytes, where they are more."""
    more, least = int(refused.received.max(initial=0)), int(taken.received.max(initial=0))
    if more <= least:
        return ""
    return f"{more / least:.2f}x the bytes" if least else f"{show_bytes(more)} received against none"


def over_limit(taken: int, limit: int) -> str:
    return f"over the memory limit by {show_bytes(taken - limit)}"


def label_of(built: Builder) -> str:
    """What to call a plan: its way's name, else its collectives."""
    if built.label:
        return built.label
    runs = [(kind, len(list(run))) for kind, run in groupby(step.kind for step in built.steps)]
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in runs) or "nothing"


def show_seconds(seconds: float) -> str:
    """Four figures and a unit."""
    if seconds >= 1:
        return f"{seconds:.4g} s"
    return f"{1e3 * seconds:.4g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.4g} us"
