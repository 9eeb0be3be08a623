"""Rank edits: by what they save once compiled, then by how well they fit the user's scheme, then by the number of
places.

Problem: several edits save about the same, and the user wants the one that mends the mistake. An edit that makes more
of an annotated array stay on each device saves communication by giving up what the user asked for: it replicates a
batch, or undoes ZeRO or FSDP.

1. An edit breaks the scheme where ``scheme.harm`` counts bytes, where more bytes are received, or where the mesh is
   another. Another mesh saves a THIRD of the time and of what is received. An edit for which bytes are counted is left
   out unless other axes split the array then, and it saves HALF of what is received or of the memory: nothing is a
   reason to give up a split. Where these bytes are less than SMALL of the memory, a FIFTH is enough. Every other edit
   saves a TENTH of the time, of what is received, or of the memory, as a program without a mistake has edits that save
   less; one with which a device receives or holds more, a THIRD, and none that splits an annotated array otherwise and
   with which it does both. Where neither is less, the time is a FIFTH less: a model's time alone is a weak reason. One
   that moves a batch to a dimension over which nothing else is split, or gives a batch an axis of another dimension
   (``scheme.is_unfounded``), saves HALF, and a device neither receives nor holds more. What is dropped saves no time
   for memory.
2. Edits that keep the scheme come first, unless the best of them is worth less than half (``HALF``) of an edit that
   breaks the scheme.
3. Of these, all that are worth NEAR of the best count as equal. The order is then the rank of the kind, the number of
   places, and the worth: the part of the time, of the bytes received, and half of the part of the memory that is saved,
   where what is saved beyond half of the memory counts once more.
   A whole state that contains the first of these edits, and with which a device holds less, comes instead of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardpass.advise.find.propose import Kind
from shardpass.advise.find.propose.program import Edit
from shardpass.advise.find.verify import LEAST, LEAST_MEMORY, MORE_BYTES, saves, saves_memory, worsens
from shardpass.advise.place.sites import MESH
from shardpass.report.findings import Figures

HALF = 0.5
THIRD, FIFTH, TENTH = 1 / 3, 0.2, 0.1
SMALL = 0.02
NEAR = 0.85
STEP = 0.05  # of the price: an edit is drafted later by so much for each edit of its kind before it


@dataclass(frozen=True)
class Trial:
    """An edit that is tried: its kind, its price, ``scheme.harm``, ``scheme.moves``, the figures of its draft, and
    ``scheme.is_unfounded``.
    """

    edit: Edit
    kind: Kind
    price: float
    harm: int = 0
    moves: bool = False
    after: Figures | None = None
    unfounded: bool = False

    @property
    def places(self) -> int:
        """The number of places that a user has to change."""
        return len({(change.site.kind, change.site.pattern, change.site.place) for change in self.edit})

    @property
    def is_mesh(self) -> bool:
        """Whether the edit gives the mesh another shape."""
        return any(change.site.kind == MESH for change in self.edit)

    def with_figures(self, after: Figures) -> Trial:
        return replace(self, after=after)

    def breaks(self, base: Figures) -> bool:
        """Return whether the edit breaks the user's scheme; ``base``: the program without it."""
        assert self.after is not None
        return self.harm > 0 or self.is_mesh or self.after.bytes > base.bytes * MORE_BYTES

    def worth(self, base: Figures) -> float:
        """Return the saving of the edit: the fractions of time and of received bytes, and half the fraction of
        memory.
        """
        assert self.after is not None
        time, sent, memory = saved(base, self.after)
        return time + max(0.0, sent) + memory / 2 + max(0.0, memory - HALF)

    def saves(self, base: Figures, after: Figures) -> bool:
        """Return whether the edit is worth a report."""
        if not saves(base, after):
            return False
        time, sent, memory = saved(base, after)
        if self.harm:
            return self.moves and max(sent, memory) >= (FIFTH if self.harm <= SMALL * base.memory else HALF)
        if memory < -LEAST_MEMORY and any(change.spec is None for change in self.edit):
            return False
        if self.moves and after.bytes > base.bytes * MORE_BYTES and memory < -LEAST_MEMORY:
            return False
        if self.is_mesh:
            return min(time, sent) >= THIRD and not worsens(base, after)
        if self.unfounded:
            return max(sent, memory) >= HALF and not worsens(base, after)
        least = THIRD if worsens(base, after) else TENTH
        return max(sent, memory) >= least or time >= max(least, FIFTH if max(sent, memory) < LEAST else 0.0)

    def saves_memory(self, base: Figures, after: Figures) -> bool:
        """Return whether the edit is worth a report by its memory alone."""
        is_kept = not self.harm and not self.unfounded and (not self.moves or self.kind.trades > 0)
        return is_kept and saves_memory(base, after, self.kind.trades)


def best(base: Figures, trials: Sequence[Trial]) -> Trial:
    """Return the edit that comes first; every trial has figures, beside those of the program ``base``."""
    worth = {id(trial): trial.worth(base) for trial in trials}
    most = max(worth.values())
    keeping = [trial for trial in trials if not trial.breaks(base)]
    if keeping and max(worth[id(trial)] for trial in keeping) >= HALF * most:
        trials, most = keeping, max(worth[id(trial)] for trial in keeping)
    near = [trial for trial in trials if worth[id(trial)] >= NEAR * most]
    first = min(near, key=lambda trial: (trial.kind.rank, trial.places, -worth[id(trial)]))
    larger = [trial for trial in trials if trial.kind.together and set(first.edit) < set(trial.edit)]
    return min(larger, key=_memory, default=first) if any(_memory(one) < _memory(first) for one in larger) else first


def thinnest(base: Figures, trials: Iterable[Trial], least: float) -> list[Trial]:
    """Return the trials that save the part ``least`` of the memory, at no cost in time, what saves most first."""
    thin = [one for one in trials if one.after and one.saves_memory(base, one.after)]
    thin = [one for one in thin if _memory(one) <= base.memory * (1 - least)]
    near = base.memory - NEAR * (base.memory - min(map(_memory, thin), default=0))
    return sorted(thin, key=lambda one: (max(near, _memory(one)), one.kind.rank, one.places))


def memory_first(base: Figures, first: Trial, trials: Iterable[Trial]) -> float:
    """Return the part of the memory that a finding of memory saves to come before ``first``; 0.0 where none does.

    It does where ``first`` gives up a split, or where an edit saves HALF of the memory: more than ``first`` saves of
    anything, or by a kind that comes before, as a state split like its parameter does before arrays that are moved.
    """
    assert first.after is not None
    if first.harm:
        return HALF * saved(base, first.after)[0]
    thin = thinnest(base, trials, HALF)
    most = 1 - min(map(_memory, thin), default=base.memory) / max(1, base.memory)
    is_before = any(one.kind.rank < first.kind.rank for one in thin[:1] if first.moves)
    return HALF if thin and (is_before or most >= max(saved(base, first.after))) else 0.0


def outweighs(received: int, base: Figures, first: Figures) -> bool:
    """Return whether a cause that no edit mends costs more of what is received than the first edit saves of anything.

    ``received``: because of the cause.
    """
    return received > base.bytes * max(saved(base, first))


def in_turn(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials in the order of their drafts: the cheapest of every kind, then the others by price, each later
    by STEP for each of its kind before it.
    """
    before = Counter[str]()
    rows = list[tuple[bool, float, int, Trial]]()
    for trial in sorted(trials, key=_urgency):
        place = before[trial.kind.name]
        rows.append((place > 0, trial.price + STEP * place, len(rows), trial))
        before[trial.kind.name] += 1
    return [trial for *_, trial in sorted(rows, key=lambda row: row[:3])]


def _memory(trial: Trial) -> int:
    assert trial.after is not None
    return trial.after.memory


def saved(base: Figures, after: Figures) -> tuple[float, float, float]:
    """Return the saved fractions of the time, of the received bytes, and of the memory."""
    pairs = (base.seconds, after.seconds), (base.bytes, after.bytes), (base.memory, after.memory)
    time, sent, memory = (1 - now / was if was else 0.0 for was, now in pairs)
    return time, sent, memory


def _urgency(trial: Trial) -> tuple[float, bool, int]:
    return trial.price, trial.harm > 0, -trial.places if trial.kind.together else trial.places
