"""Search for edits: propose, price, draft, compile, keep. All kinds of edits share this loop.

Problem: of all annotations that a program has, or could have, name the few that cost most, and show for each what the
partitioner makes of the program with another one.

1. Each kind of proposal (``propose``) yields edits. A model of a partitioner that propagates and searches nothing
   (``price``) prices at most ``TRIES`` ops' worth of edits.
2. The price, less half of the part of the memory that arguments save, orders the edits and leaves none out: of edits
   that it finds useless a quarter saves. The best of each kind
   are compiled as drafts (``jax_private.drafts``, a third of a compile), then all others, until DRAFTING of the
   time is spent; beside a draft of the program itself, as a draft differs from the program that runs.
3. Pairs of those of one kind that save most are drafted too, as what is sent to experts and what comes back have a
   constraint each. Of the drafts that save, ``rank.best`` chooses. The axes of its specs are refined: one less, or in
   another order.
4. The choice is compiled in full: the user's text with the diff is traced again where that can be done, else the module
   with the edit. Where it saves (``verify.saves``) it is a finding and stays applied; else the next is tried. The
   drafts that saved, and that change other places, are then drafted again on top of it.
5. Memory has a list of its own: a state that is whole on every device saves no time. The edits of all kinds whose
   arguments shrink most are drafted on top of the findings that save time, or before them where the first of these
   gives up a split of the user's, or saves less of anything than half of the memory. Of what saves memory at no cost
   in time, the edit that saves most is compiled.

Invariant: each finding was compiled with those before it, by the partitioner of the report; its figures are those of
the compiled programs.

Example: a transformer whose feed-forward has a leftover ``with_sharding_constraint(u, P('data'))`` between weights
split over 'model': as drafts, the constraint dropped and a weight moved to 'data' save about the same. The constraint
is one place that keeps the scheme, so it comes first.

State: the findings, their changes, and the figures of the program with them. The search ends when its time is spent
(``budget``), and keeps what is there.

Cost: one import, TRIES / ops prices, and a draft for each edit that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, permutations

from jaxlib.mlir import ir

from shardpass.advise.find.budget import COMPILES, IN_FULL, Budget
from shardpass.advise.find.causes import Cause, causes
from shardpass.advise.find.kinds import Kinds, misfit
from shardpass.advise.find.price import Model
from shardpass.advise.find.propose import KINDS, SPREAD, Kind
from shardpass.advise.find.propose.program import Context, Edit
from shardpass.advise.find.propose.specs import axes_of, divides
from shardpass.advise.find.propose.states import thinner
from shardpass.advise.find.rank import HALF, Trial, best, in_turn, memory_first, outweighs, thinnest
from shardpass.advise.find.scheme import harm, is_unfounded, label, moves
from shardpass.advise.find.sentences import action_of, sentence, specs_of
from shardpass.advise.find.source import Edits
from shardpass.advise.find.text import JaxText, Written, code_of
from shardpass.advise.find.types import untyped
from shardpass.advise.find.verify import LEAST_MEMORY, changed_lines, figures
from shardpass.advise.place.sites import ARGUMENT, BORDER, CONSTRAINT, MESH, RESULT, VALUE, Site, Sites, read
from shardpass.advise.place.write import Change, signed, with_changes
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.constraints import Notation
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.ir.frames import Frame
from shardpass.ir.replica_groups import meshes_of
from shardpass.report.explanation import Explanation
from shardpass.report.findings import CAUSE, INTERRUPTED, LATE, NAME, Annotated, Figures, Finding, Findings
from shardpass.report.groups import group
from shardpass.report.naming import Sources
from shardpass.report.rows import Row
from shardpass.sharding import Mesh

TRIES = 20_000  # ops that are priced in all
FEWEST, MOST = 32, 240  # edits that are priced
DRAFTING = 0.6  # of the time, until the end of the first round of drafts
DRAFTS = 12_000  # ops that are drafted in this round
FEWEST_DRAFTED, MOST_DRAFTED = 12, 48
MOST_REFINED = 4
MOST_UNIONS = 4  # drafts of two edits of one kind
MOST_AGAIN = 6  # drafts on top of a finding
MOST_TRIED = 3  # full compiles for one finding
MOST_FINDINGS = 3
MOST_CAUSES = 2
MOST_THINNER = 2  # findings of memory alone
MOST_THIN = 8  # drafts for one of these
NEXT = 0.05  # of the time, that a draft on top of a finding saves
PRICING = 0.25  # of the time, for prices
MOST_NAMED = 5  # arrays of which most is sent
MOST_LINES = 4  # whose values are constrained
SAME = 0.01  # of the price: a difference that does not decide between edits

Pending = Callable[[], Explanation]  # waits for the compile of a program and explains it
Compiler = Callable[
    [bytes, bool], Pending
]  # with the partitioner of the report; True: a draft (``jax_private.drafts``)

Again = Callable[[Edits], bytes | None]  # see ``Asked.again``


@dataclass(frozen=True)
class Asked:
    """The input of a search for edits, and its means.

    Attributes:
        base: the report of the current program, as ``compiler`` compiles it.
        data: the program, in the file ``file``.
        budget: the time of the search.
        again: traces the program with edited files and returns the module; None if JAX or the user's code rejects
            the edits, ``b""`` if they cannot be tried. Without ``again``, edits are written into the module only.
        show: a function called with each finding as soon as it is available.
        interruptible: whether Ctrl-C ends the search with the findings so far.
        whole: processor seconds of a full compile, if the compiler of the program makes no drafts; else 0.0.
    """

    data: Given
    file: str
    base: Explanation
    compiler: Compiler
    machine: Machine
    sources: Sources
    budget: Budget = field(default_factory=Budget)
    again: Again | None = None
    show: Callable[[Finding], None] = lambda _: None
    interruptible: bool = False
    whole: float = 0.0


def find_edits(asked: Asked) -> Findings:
    """Return the findings of a program."""
    before, free, draft = asked.budget.elsewhere, None, None
    if asked.again is not None:
        free, draft = untyped(asked.data, lambda data: _compiled(asked.compiler(data, True)))
        before = (before + asked.budget.elsewhere) / 2  # of two drafts one counts
    asked = asked if free is None else replace(asked, data=free)
    try:
        reading = read(asked.data, asked.file, asked.sources)
    except ShardpassError as error:
        return Findings(why_not=f"the program cannot be imported: {error.diagnostics[0].message}")
    with reading.module.context:
        return _Search(asked, Sites(reading), draft, before, is_text=free is not None).run()


class _Search:
    """One search for edits. State: the findings so far, their changes, and the program with them.

    ``draft``: that of the program itself, where there is one; ``before``: the seconds spent elsewhere before it was
    compiled. ``is_text``: whether an edit of the body counts only as text that is traced again (``find.types``).
    """

    def __init__(
        self, asked: Asked, sites: Sites, draft: Explanation | None, before: float, *, is_text: bool = False
    ) -> None:
        self.asked, self.draft, self.before, self.is_text = asked, draft, before, is_text
        self.module = parse_module(asked.data, asked.file, trusted=True)  # of this process's making
        meshes = [mesh for mesh in meshes_of(self.module).values() if isinstance(mesh, Mesh)]
        self.axes = {name for mesh in meshes for name, _ in mesh.axes}  # of the user's; none in GSPMD's notation
        self.sites = sites
        self.has_regions = any(op.is_manual or op.mesh.manual for op in sites.program.body.every_op())
        self.kinds = Kinds(sites)
        script, _, function = asked.base.file.rpartition(":")
        self.text = JaxText(sites, asked.sources, function, script)
        self.rows, self.figures = asked.base.rows, figures(asked.base)
        self.changes: list[Change] = []
        self.findings: list[Finding] = []
        self.causes: list[Cause] = []
        self.expressions: dict[Frame, list[Site]] = {}  # see ``_beside``
        self.compiled = 0
        self.is_cut = False  # whether time ended the proposals

    def run(self) -> Findings:
        sites = self.sites
        if sites.program.mesh.mesh.size < 2:
            return Findings(why_not="the program runs on one device")
        signature = Signature(main_of(self.module))
        if len(signature.arguments) != len(sites.program.body.arguments):
            return Findings(why_not="main has arguments that are no arrays")
        if len(signature.results) != len(sites.program.body.returned):
            return Findings(why_not="main has results that are no arrays")
        draft = self.draft
        plain = self._compiling((), True) if draft is None else lambda: draft  # while edits are priced
        self.model = Model(sites.reading, self.asked.machine)
        arrays = [row.array for row in sorted(self.rows, key=lambda row: -row.bytes_received)][:MOST_NAMED]
        folded = self.model.task.folded
        now, there = self.model.decided()
        self.context = Context(sites.used_alike(folded.of, folded.results), self._lines(), arrays, now, there)
        self.causes = causes(self.context, self.rows, self.figures.memory)
        stopped = ""
        try:
            self._look(plain)
            stopped = LATE if self.is_cut or self._is_late() else ""
        except KeyboardInterrupt:
            if not self.asked.interruptible:
                raise
            stopped = INTERRUPTED
        left, base = [cause for cause in self.causes if self._is_left(cause)][:MOST_CAUSES], figures(self.asked.base)
        first = self.findings[0].after if self.findings else None
        before = [cause for cause in left if first is not None and outweighs(cause.bytes, base, first)]
        named = [self._named(cause, base) for cause in before]
        named += [*self.findings, *(self._named(cause, self.figures) for cause in left if cause not in before)]
        return Findings(tuple(named), self.compiled, stopped=stopped)

    def _is_left(self, cause: Cause) -> bool:
        """Return whether the findings leave more than half of what ``cause`` costs."""
        base = self.asked.base
        if not cause.bytes:
            return self.figures.memory > figures(base).memory - HALF * cause.memory
        was, now = (
            sum(row.bytes_received for row in rows if row.place == cause.place) for rows in (base.rows, self.rows)
        )
        return now >= HALF * was

    def _named(self, cause: Cause, now: Figures) -> Finding:
        return Finding(NAME, cause.sentence, (), (cause.advice,), now, now, place=cause.place, kind=CAUSE)

    def _look(self, plain: Pending | None) -> None:
        """Look for all findings. ``plain``: the draft of the program itself."""
        trials = self._priced()
        draft = self._figures(plain)
        self.asked.budget.allow(max(COMPILES * (self.asked.budget.elsewhere - self.before), IN_FULL * self.asked.whole))
        if draft is None:
            return
        most = max(FEWEST_DRAFTED, min(MOST_DRAFTED, DRAFTS // max(1, self.model.task.folded.program.count)))
        drafted = self._drafted(trials, most, DRAFTING)
        drafted += self._drafted(_unions(draft, _that_save(draft, drafted)), MOST_UNIONS)
        saving = _that_save(draft, drafted)
        least = memory_first(draft, best(draft, saving), drafted) if saving else 0.0
        if least:
            draft = self._keep_thinner(draft, drafted, least)
            if self.findings:
                drafted = self._drafted([one for one in saving if not self._is_changed(one)], MOST_AGAIN)
        self._keep_thinner(self._keep_best(draft, drafted), [] if self.findings else drafted)

    def _is_late(self) -> bool:
        return self.asked.budget.is_over()

    def _lines(self) -> list[Place]:
        """List the MOST_LINES lines whose collectives send most bytes."""
        return [one.place for one in group(self.rows) if one.place != NOWHERE][:MOST_LINES]

    # ---------------------------------------------------------------- by the model

    def _priced(self) -> list[Trial]:
        """Return the edits to draft, in that order."""
        base = self.model.price(())
        left = self._most_priced
        trials, seen = [], set[object]()
        streams = [(kind, kind.propose(self.context)) for kind in KINDS]
        while streams and left > 0 and not self.is_cut:
            for kind, edits in list(streams):  # of each kind in turn, so that a limit cuts all of them
                edit = next((one for one in map(self._closed, edits) if self._is_new(one, seen)), None)
                if edit is None:
                    streams.remove((kind, edits))
                    continue
                left -= 1
                price = round(self._price(edit) / base / SAME) * SAME if base else 1.0
                if math.isfinite(price):
                    price -= thinner(self.context, edit) / max(1, self.figures.memory) / 2  # as ``Trial.worth`` has it
                    trials.append(self._trial(edit, kind, price))
            self.is_cut = bool(streams) and self.asked.budget.is_over(PRICING)
        return in_turn(trials)

    def _trial(self, edit: Edit, kind: Kind, price: float) -> Trial:
        context = self.context
        is_odd = is_unfounded(context, edit)
        return Trial(edit, kind, price, harm(context, edit), moves(context, edit), unfounded=is_odd)

    @property
    def _most_priced(self) -> int:
        return min(MOST, max(FEWEST, TRIES // max(1, self.model.task.folded.program.count)))

    def _is_new(self, edit: Edit, seen: set[object]) -> bool:
        """Return whether an edit changes something, in the user's axes, that none before did; note it."""
        names = {name for change in edit for axes in change.spec or () for name in axes}
        if self.axes and not names <= self.axes:
            return False  # parts of axes, which two meshes share
        key = frozenset(
            (change.site.kind, change.site.positions or change.site.origins, change.spec) for change in edit
        )
        if not edit or key in seen or all(change.spec == change.site.spec for change in edit):
            return False
        if harm(self.context, edit) and not moves(self.context, edit):
            return False  # ``Trial.saves`` reports none of these
        seen.add(key)
        return True

    def _closed(self, edit: Edit) -> Edit:
        """Add what the text of ``edit`` changes too: constraints that a loop makes by one call path, and the other
        arrays of an expression. The edit is () where one of these cannot be split so.
        """
        known, axes = {change.site for change in edit}, self.context.axes
        more = dict.fromkeys(Change(site, change.spec) for change in edit for site in self._beside(change.site))
        added = [_of_rank(change) for change in more if change.site not in known]
        if not all(one and (one.spec is None or divides(one.spec, one.site.array.shape, axes)) for one in added):
            return ()
        return (*edit, *filter(None, added))

    def _beside(self, site: Site) -> Sequence[Site]:
        """Return the other sites that a text changes with ``site``."""
        if site.kind == CONSTRAINT:
            every = [one for one in self.sites.constraints if (one.frame, one.calls) == (site.frame, site.calls)]
        elif site.kind == VALUE:
            if site.frame not in self.expressions:
                some = self.sites.values([site.place], several=True)
                self.expressions[site.frame] = [one for one in some if one.frame == site.frame]
            every = self.expressions[site.frame]
        else:
            return ()
        return [one for one in every if one != site]

    def _price(self, edit: Sequence[Change]) -> float:
        """Model the price of ``edit``; infinite where it cannot be planned."""
        try:
            return self.model.price(edit)
        except ShardpassError:
            return math.inf

    # ---------------------------------------------------------------- compiled

    def _compiling(self, edit: Edit, draft: bool) -> Pending | None:
        """Starts to compile the program with ``edit``; returns None if the edit cannot be written into the module."""
        module = self._module(edit)
        return None if module is None else self.asked.compiler(module, draft)

    def _module(self, edit: Edit) -> bytes | None:
        kinds = {change.site.kind for change in edit}
        if MESH in kinds and not self.axes:
            return None  # in GSPMD's notation no mesh has a name
        if BORDER in kinds or (MESH in kinds and self.has_regions):
            written = self.text.written(edit) if self.asked.again is not None else None
            return (self.asked.again(written.edits) or None) if written and self.asked.again is not None else None
        try:
            return with_changes(self.module, self.sites.program.mesh.mesh, [*self.changes, *edit])
        except (ShardpassError, ir.MLIRError):
            return None

    def _figures(self, pending: Pending | None) -> Figures | None:
        explanation = _compiled(pending)
        return None if explanation is None else figures(explanation)

    def _drafted(self, trials: Iterable[Trial], most: int, part: float = 1.0) -> list[Trial]:
        """Compile drafts of at most ``most`` edits, until ``part`` of the time is spent; return those that compile."""
        left = islice(trials, most)
        result: list[Trial] = []
        following = self._next_draft(left)
        while following is not None and not (result and self.asked.budget.is_over(part)):
            trial, pending = following
            following = self._next_draft(left)  # while the other is compiled
            after = self._figures(pending)
            if after is not None:
                result.append(trial.with_figures(after))
        return result

    def _next_draft(self, trials: Iterator[Trial]) -> tuple[Trial, Pending | None] | None:
        trial = next(trials, None)
        return None if trial is None else (trial, self._compiling(trial.edit, True))

    def _keep_best(self, draft: Figures, drafted: list[Trial]) -> Figures:
        """Append the findings that save time; return the figures of ``draft`` after these edits."""
        plain, saving = draft, _that_save(draft, drafted)
        while saving and len(self.findings) < MOST_FINDINGS:
            first = best(draft, saving)
            saving += _that_save(draft, self._drafted(self._refined(first), MOST_REFINED))
            kept = self._first_that_saves(draft, saving)
            if kept is None or kept.after is None:
                break
            draft = kept.after
            if self._is_late() or self._is_rewritten():
                break
            others = [one for one in drafted if not _share(one.edit, kept.edit) and not one.harm]
            others = sorted(_that_save(plain, others), key=lambda one: -one.worth(plain))
            saving = _that_save(draft, self._drafted(others[:MOST_AGAIN], MOST_AGAIN), NEXT)
            drafted = others
        return draft

    def _first_that_saves(self, draft: Figures, saving: Sequence[Trial]) -> Trial | None:
        """Compile the best of ``saving`` in full, then the next, until one is a finding; return it."""
        left = list(saving)
        for tried in range(MOST_TRIED):
            if not left or (tried and self._is_late()):
                return None
            chosen = best(draft, left)
            if self._verified(chosen, chosen.saves):
                return chosen
            left.remove(chosen)
        return None

    def _keep_thinner(self, draft: Figures, drafted: Sequence[Trial], least: float = LEAST_MEMORY) -> Figures:
        """Append edits that save memory at no cost in time, the part ``least`` of it at least.

        Proposed is what shrinks arguments on top of the findings: a moment has to be split as its parameter is by then.
        ``drafted``: other edits, of which there are drafts. Returns the figures of a draft with the findings.
        """
        for _ in range(0 if self._is_rewritten() else MOST_THINNER):
            tried = [*drafted, *self._drafted(self._thin(draft), MOST_THIN)]
            drafted = []  # drafts of the program without the finding
            kept = next((one for one in thinnest(draft, tried, least)[:MOST_TRIED] if self._may_keep(one)), None)
            if kept is None or kept.after is None:
                break
            draft = kept.after
        return draft

    def _thin(self, draft: Figures) -> list[Trial]:
        """Return edits of all kinds that shrink arguments on top of the findings.

        Of each kind those come first of which the model's time, less the part of the memory that is saved, is least.
        """
        context = replace(self.context, sites=self.context.sites.with_changes(self.changes))
        thinning, seen = list[tuple[float, Kind, Edit]](), set[object]()
        for kind in (*KINDS, SPREAD):
            for edit in map(self._closed, islice(kind.propose(context), MOST)):
                saved = thinner(context, edit) / max(1, draft.memory)
                enough = saved > LEAST_MEMORY or (kind.together and saved >= 0)
                if enough and self._is_new(edit, seen) and not harm(context, edit) and not _is_part(context, edit):
                    thinning.append((saved, kind, edit))
        thinning.sort(key=lambda one: -one[0])
        base = self._price(self.changes) or 1.0
        prices = (self._price([*self.changes, *edit]) / base for _, _, edit in thinning[: self._most_priced])
        trials = [
            self._trial(edit, kind, price - saved) for (saved, kind, edit), price in zip(thinning, prices, strict=False)
        ]
        return in_turn(trials)

    def _may_keep(self, trial: Trial) -> bool:
        """Compile ``trial`` in full; after the end of the time only where there is no finding yet."""
        return not (self.findings and self._is_late()) and self._verified(trial, trial.saves_memory)

    def _is_rewritten(self) -> bool:
        """Return whether a finding is of a program with other sites, so that nothing goes on top of it."""
        return any(change.site.kind in (BORDER, MESH) for change in self.changes)

    def _is_changed(self, trial: Trial) -> bool:
        """Return whether a finding changes a place of ``trial``."""
        return _share(trial.edit, self.changes)

    def _refined(self, trial: Trial) -> Iterator[Trial]:
        """Yield ``trial`` with other axes where it splits a dimension over several: fewer, or in another order."""
        new = {names for change in trial.edit for names in change.spec or () if len(names) > 1}
        for names in sorted(new):
            for count in range(1, len(names) + 1):
                for other in permutations(names, count):
                    if other != names:
                        yield self._trial(_with_axes(trial.edit, names, other), trial.kind, trial.price)

    def _verified(self, trial: Trial, worth: Callable[[Figures, Figures], bool]) -> bool:
        """Compile the program with an edit in full; record a finding and return True if it saves."""
        edit = trial.edit
        written = self.text.written(edit)
        for module, kept, is_text in self._modules(edit, written):
            self.compiled += 1
            explanation = _compiled(self.asked.compiler(module, False))
            if explanation is None or not worth(self.figures, figures(explanation)):
                continue
            if kept is not None:
                self.text.keep(kept)
            rows = explanation.rows
            if kept is not None and is_text:
                rows = tuple(replace(row, place=kept.before(row.place)) for row in rows)
            finding = self._finding(edit, explanation, rows, kept)
            self.findings.append(finding)
            self.changes += edit
            self.rows, self.figures = rows, finding.after
            self.asked.show(finding)
            return True
        return False

    def _modules(self, edit: Edit, written: Written | None) -> Iterator[tuple[bytes, Written | None, bool]]:
        """Yield the program with ``edit``, its text, and whether it is the program of that text.

        The text is traced again where that can be done, else the edit is written into the module. No text is kept that
        JAX refuses, or that may change more than the edit.
        """
        traced, refused = b"", False
        if written is not None and self.asked.again is not None:
            made = self.asked.again(written.edits)
            refused = made is None
            traced, written = made or b"", None if refused else written
            if traced and written is not None and not written.is_certain and not self._is_placed(edit, traced):
                traced, written = b"", None  # the text places other arrays
        if traced:
            yield traced, written, True
            written = None  # it is another program than the edit's
        if self.is_text and (refused or any(change.site.kind not in (ARGUMENT, RESULT) for change in edit)):
            return  # types do not follow what is written into the module
        module = self._module(edit)
        if module is not None:
            yield module, written if written is not None and written.is_certain else None, False

    def _is_placed(self, edit: Edit, traced: bytes) -> bool:
        """Return whether the arguments of ``edit`` have its annotations in a program that was traced again."""
        module, mesh = parse_module(traced, trusted=True), self.sites.program.mesh.mesh
        with module.context:
            notation, rows = Notation(module, mesh), Signature(main_of(module)).arguments
            wanted = [
                (position, None if sharding is None else notation.value(sharding))
                for kind, position, sharding in signed(edit, mesh)
                if kind == ARGUMENT
            ]
            return all(place < len(rows) and rows[place].get(notation.attribute) == one for place, one in wanted)

    def _finding(self, edit: Edit, explanation: Explanation, rows: Sequence[Row], kept: Written | None) -> Finding:
        before, after, place = self.figures, figures(explanation), self.text.place_of(edit)
        kind, clause = self.kinds.of(edit)
        sizes = "" if self.findings else misfit(self.sites, {(row.place.file, row.place.line) for row in self.rows})
        placed = self.text.is_placed
        mistake = sentence(edit, before, after, clause, self.text.helper_of(edit), placed=placed)
        clauses = mistake, label(self.context, edit), sizes
        annotations = tuple(
            Annotated(
                change.site.kind,
                change.site.pattern,
                *specs_of(change),
                change.site.place,
                change.site.positions,
            )
            for change in edit
        )
        return Finding(
            action_of(edit),
            "; ".join(filter(None, clauses)),
            annotations,
            tuple(dict.fromkeys(code_of(change, placed) for change in edit)),
            before,
            after,
            "" if kept is None else kept.diff,
            kept.place if kept is not None and place == NOWHERE else place,
            changed_lines(self.rows, rows),
            kind,
        )


def _that_save(draft: Figures, trials: Iterable[Trial], least: float = 0.0) -> list[Trial]:
    """Return the trials whose drafts improve on ``draft``, by at least the fraction ``least`` of the time."""
    return [
        trial
        for trial in trials
        if trial.after is not None and trial.saves(draft, trial.after)
        if trial.after.seconds <= draft.seconds * (1 - least)
    ]


def _unions(draft: Figures, saving: Sequence[Trial]) -> Iterator[Trial]:
    """Yield pairs of edits of one kind that both save and that change other places, those worth most first.

    Arrays that are split otherwise are left to the kinds that know which belong together.
    """
    most = sorted((one for one in saving if not one.harm and not one.moves), key=lambda one: -one.worth(draft))[
        : 2 * MOST_UNIONS
    ]
    for one, other in combinations(most, 2):
        if one.kind is other.kind and not _share(one.edit, other.edit):
            yield replace(one, edit=(*one.edit, *other.edit), after=None)


def _with_axes(edit: Edit, names: tuple[str, ...], other: tuple[str, ...]) -> Edit:
    """Return ``edit`` with ``other`` wherever it splits a dimension over ``names``."""
    return tuple(
        change
        if change.spec is None
        else replace(change, spec=tuple(other if one == names else one for one in change.spec))
        for change in edit
    )


def _is_part(context: Context, edit: Edit) -> bool:
    """Return whether ``edit`` changes only one of several arguments with the same spec, such as a single moment."""
    sites = {change.site for change in edit if change.site.kind == ARGUMENT}
    alike = {site for site in context.sites.arguments for one in sites if axes_of(one.spec) and site.spec == one.spec}
    return len(sites) == 1 and len(alike) > 1


def _of_rank(change: Change) -> Change | None:
    """Return ``change`` with the spec of as many dimensions as its array has; None where it lacks a split one."""
    if change.spec is None:
        return change
    rank = change.site.array.rank
    spec = (*change.spec, *((),) * rank)[:rank]
    return None if any(change.spec[rank:]) else replace(change, spec=spec)


def _share(one: Sequence[Change], other: Sequence[Change]) -> bool:
    """Return whether two edits change one place."""
    places = {key for change in other for key in _keys(change.site)}
    return any(key in places for change in one for key in _keys(change.site))


def _keys(site: Site) -> Iterator[object]:
    if site.positions:
        yield from ((site.kind == RESULT, position) for position in site.positions)
    else:
        yield from site.origins


def _compiled(pending: Pending | None) -> Explanation | None:
    """Wait for the explanation of a compiled program; None if ``pending`` is None or the partitioner fails."""
    try:
        return None if pending is None else pending()
    except ShardpassError:
        return None
