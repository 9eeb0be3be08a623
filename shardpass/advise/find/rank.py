"""Which of several edits comes first: what it saves, compiled; then the user's scheme; then the fewest places.

Problem: several edits save about the same, and the user wants the one that mends the mistake. An edit that makes more
of an annotated array stay on each device saves communication by giving up what the user asked for: it replicates a
batch, or undoes ZeRO or FSDP.

1. An edit breaks the scheme where ``scheme.harm`` counts bytes, or where more bytes are received. One for which bytes
   are counted is left out where a device receives or holds more with it, or where these bytes are more than SMALL of
   the memory and less than HALF of the time or of what is received is saved.
2. Edits that keep the scheme come first, unless the best of them saves less than half (``HALF``) of what an edit that
   breaks the scheme saves.
3. Of these, all that save NEAR of the best count as equal. The order is then the rank of the kind, the
   number of places, and the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardpass.advise.find.propose import Kind
from shardpass.advise.find.propose.program import Edit
from shardpass.advise.find.verify import MORE_BYTES, saves, saves_memory, worsens
from shardpass.report.findings import Figures

HALF = 0.5
SMALL = 0.02
NEAR = 0.85


@dataclass(frozen=True)
class Trial:
    """An edit that is tried: its kind, its price by the model, ``scheme.harm``, and its figures as a draft."""

    edit: Edit
    kind: Kind
    price: float
    harm: int
    after: Figures | None = None

    @property
    def places(self) -> int:
        """How many places a user has to change."""
        return len({(change.site.kind, change.site.pattern, change.site.place) for change in self.edit})

    def with_figures(self, after: Figures) -> Trial:
        return replace(self, after=after)

    def breaks(self, base: Figures) -> bool:
        """Return whether the edit breaks the user's scheme; ``base``: the program without it."""
        assert self.after is not None
        return self.harm > 0 or self.after.bytes > base.bytes * MORE_BYTES

    def saves(self, base: Figures, after: Figures) -> bool:
        """Return whether the edit is worth a report."""
        if not saves(base, after) or not self.harm:
            return saves(base, after)
        half = after.seconds <= HALF * base.seconds or after.bytes <= HALF * base.bytes
        return (half or self.harm <= SMALL * base.memory) and not worsens(base, after)

    def saves_memory(self, base: Figures, after: Figures) -> bool:
        """Return whether the edit is worth a report by its memory alone."""
        return not self.harm and saves_memory(base, after, self.kind.trades)


def best(base: Figures, trials: Sequence[Trial]) -> Trial:
    """Return the edit that comes first; every trial has figures, beside those of the program ``base``."""

    def saved(trial: Trial) -> float:
        assert trial.after is not None
        return base.seconds - trial.after.seconds

    most = max(map(saved, trials))
    keeping = [trial for trial in trials if not trial.breaks(base)]
    if keeping and max(map(saved, keeping)) >= HALF * most:
        trials, most = keeping, max(map(saved, keeping))
    near = [trial for trial in trials if saved(trial) >= NEAR * most]
    return min(near, key=lambda trial: (trial.kind.rank, trial.places, -saved(trial)))


def first_of_each(trials: Iterable[Trial], most: int) -> list[Trial]:
    """Return the cheapest trials by price of each kind, the cheapest of every kind before the second of any."""
    kinds: dict[str, list[Trial]] = {}
    for trial in sorted(trials, key=_urgency):
        kinds.setdefault(trial.kind.name, []).append(trial)
    return [some[place] for place in range(most) for some in kinds.values() if place < len(some)]


def _urgency(trial: Trial) -> tuple[float, bool, int]:
    return trial.price, trial.harm > 0, -trial.places if trial.kind.together else trial.places
