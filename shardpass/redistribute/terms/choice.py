"""Choose the cheapest candidate within the memory limit, and record why the others are refused.

Problem: candidates differ in bytes received, in the number of collectives, in local copies and in memory. State: the
``Terms``: a machine, whose model gives seconds, and a memory limit.

1. Candidates over the limit drop out. Under "max" the limit is in bytes alive together: source tile and result, and
   beside them the result and the greater of both tiles once more. The paper's plan never drops out under "max", as it
   keeps to that limit in the paper's sense. If all drop out, those near the least peak stay.
2. Of these, candidates that receive more than ``most_received`` drop out, unless all do. ``search`` passes the bytes of
   the paper's plan, so that no plan receives more than that.
3. The cheapest of the rest wins. More than ``FEW`` collectives cost ``MANY`` times their price, as each is one more
   to schedule and to wait for: they must be cheaper by more than a trifle.

Example, at 10 us a collective and 50 GB/s: an all_gather of 3.75 MB takes 85 us in one step. The same bytes in 4
permutes take 115 us, times 1.15. They are chosen only where the limit excludes the all_gather.

O(candidates * steps) on flat machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from shardpass.cost.machine import Machine
from shardpass.redistribute.program.build import Builder
from shardpass.redistribute.program.steps import Refusal
from shardpass.redistribute.terms.costs import cost
from shardpass.redistribute.terms.limit import Limit, show_bytes

FEW = 3  # collectives
MANY = 1.15  # times the price, of candidates with more collectives
NEAR = 1.5  # times the least peak, where no candidate keeps to "max"


@dataclass(frozen=True, slots=True)
class Terms:
    """The criteria by which plans are chosen: the prices of ``machine``, within the memory limit ``limit``."""

    machine: Machine
    limit: Limit
    tiles: tuple[int, int] = (0, 0)  # bytes of the source's and of the target's

    @property
    def most_live(self) -> int | None:
        """Return the bytes that may be alive on a device at the same time; None: no limit."""
        if self.limit == "max":
            return self.tiles[0] + 2 * self.tiles[1] + max(self.tiles)
        return self.limit

    def fits(self, built: Builder) -> bool:
        """Return whether the live bytes stay within the limit (case 1)."""
        if self.limit == "max" and built.label == "rink":
            return True
        return self.most_live is None or built.memory.peak <= self.most_live

    def price(self, built: Builder) -> float:
        """Return modelled seconds, times ``MANY`` for a plan of many collectives (case 3)."""
        return cost(self.machine, built) * (MANY if _collectives(built) > FEW else 1)

    def choose(self, candidates: Sequence[Builder], most_received: int | None = None) -> Builder:
        """Return the chosen candidate, with the reasons for refusing the others.

        ``most_received``: the byte limit per receiving device (case 2); None: no limit.
        """
        fitting = [c for c in candidates if self.fits(c)]
        if not fitting:
            least = min(c.memory.peak for c in candidates)
            fitting = [c for c in candidates if c.memory.peak <= (NEAR if self.limit == "max" else 1) * least]
        within = [c for c in fitting if most_received is None or c.received.max(initial=0) <= most_received]
        prices = {id(c): self.price(c) for c in within or fitting}
        best = min(within or fitting, key=lambda c: prices[id(c)])
        refused = [Refusal(label_of(c), _why(c, best, prices, self)) for c in candidates if c is not best]
        best.refused = list(dict.fromkeys([*best.refused, *refused]))
        return best


def _why(refused: Builder, chosen: Builder, prices: dict[int, float], terms: Terms) -> str:
    """Explain why ``chosen`` wins; ``prices`` has the candidates that reached case 3."""
    if terms.most_live is not None and not terms.fits(refused):
        return over_limit(refused.memory.peak, terms.most_live)
    more = _more_bytes(refused, chosen)
    if id(refused) not in prices:
        return more or "more bytes than the paper's plan"
    price, best = (cost(terms.machine, c) for c in (refused, chosen))
    if price > best:
        why = f"slower: {show_seconds(price)} against {show_seconds(best)}"
    else:
        why = "no cheaper" if price == best else f"no cheaper by enough for {_collectives(refused)} collectives"
    return f"{why}, {more}" if more else why


def _collectives(built: Builder) -> int:
    return sum(step.is_collective for step in built.steps)


def _more_bytes(refused: Builder, chosen: Builder) -> str:
    """Format how many times the bytes of ``chosen`` are received; "" where they are no more."""
    more, least = int(refused.received.max(initial=0)), int(chosen.received.max(initial=0))
    if more <= least:
        return ""
    return f"{more / least:.2f}x the bytes" if least else f"{show_bytes(more)} received against none"


def over_limit(peak: int, limit: int) -> str:
    return f"over the memory limit by {show_bytes(peak - limit)}"


def label_of(built: Builder) -> str:
    """Return the label of a candidate, or its steps as text."""
    if built.label:
        return built.label
    runs = [(kind, len(list(run))) for kind, run in groupby(step.kind for step in built.steps)]
    return ", ".join(kind if count == 1 else f"{count} {kind}" for kind, count in runs) or "nothing"


def show_seconds(seconds: float) -> str:
    """Format a time with four figures and a unit."""
    if seconds >= 1:
        return f"{seconds:.4g} s"
    return f"{1e3 * seconds:.4g} ms" if seconds >= 1e-3 else f"{1e6 * seconds:.4g} us"
