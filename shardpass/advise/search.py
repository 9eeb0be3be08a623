"""The findings of a program that another partitioner compiled: which annotation to drop, replace or add.

Problem: of all annotations that a program has, or could have, name the few that cost most, and show for each what the
partitioner makes of the program without, or with, the annotation.

1. Candidates (``candidates``), first those about what is written, are priced by a model of what a partitioner does
   that propagates and searches nothing (``model``), at most ``TRIES`` ops in all.
2. The cheapest is compiled. Where it saves (``verify.saves``) it is a finding, and stays applied while others are
   looked for: those that the model still finds cheaper are priced again on top of it. Of equal prices the earlier
   candidate is chosen, so that the user's own annotations are questioned before new ones are proposed.
   A candidate behind a finding has to promise more (NEXT, of the price or of the memory), as the model errs by more
   than the least that counts; and most such candidates fail, so a draft is compiled first, which takes a third.
   The candidates of the next round are priced while the partitioner compiles.
3. What does not save when it is compiled is no finding. At most ``MOST_COMPILED`` candidates are compiled, and none
   after one that fails behind a finding.
4. Where these edits give no finding, the program is decided with constraints free. The lines that send more than this
   decision sends there are the surplus, the difference of two programs matched by the ops of the user; and the decided
   shardings are candidates for new constraints.

Invariant: each finding was compiled with those before it, by the partitioner of the report; its figures are those of
the compiled programs.

Example: a transformer whose feed-forward has a leftover ``with_sharding_constraint(u, P('data'))`` between weights
split over 'model': the constraint dropped is cheapest by the model, and compiled it saves a fifth of all bytes.

Cost: one import, one decision, TRIES / ops prices, and a compilation for each edit that is verified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from jaxlib.mlir import ir

from shardpass.advise.kinds import Kinds
from shardpass.advise.price import Model
from shardpass.advise.propose import Candidates, Edit
from shardpass.advise.sentences import action_of, sentence
from shardpass.advise.sites import Site, Sites, read
from shardpass.advise.text import JaxText, code_of, spec_text
from shardpass.advise.verify import LEAST, changed_lines, figures, saves
from shardpass.advise.write import Change, with_changes
from shardpass.cost.machine import Machine
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.context import parse_module
from shardpass.ir.doors import Given
from shardpass.ir.replica_groups import meshes_of
from shardpass.report.explanation import Explanation
from shardpass.report.findings import Annotated, Figures, Finding, Findings, Surplus
from shardpass.report.naming import Sources
from shardpass.sharding import Mesh

TRIES = 6_000  # ops that are priced in all
FEWEST, MOST = 16, 120  # candidates that are priced
AGAIN = 6  # candidates that are priced again with a finding applied
MOST_FINDINGS = 3
MOST_COMPILED = 3  # of each list of candidates
NEXT = 0.05  # of the price or of the peak, that a candidate saves by the model to be compiled behind a finding
MOST_NAMED = 5  # arrays of which most is sent
MOST_LINES = 4  # whose values are candidates
MOST_SURPLUS = 3
SAME = 0.01  # of the price: a difference that does not decide between candidates
ROUGH = 0.05  # of the work and the memory of a draft, by which these may be wrong
ENOUGH = 0.5  # of what the best edit at a place saves: a user's annotation that is dropped for so much is dropped


Pending = Callable[[], Explanation]  # waits for the compile of a program and explains it
Compiler = Callable[
    [bytes, bool], Pending
]  # with the partitioner of the report; True: a draft (``jax_private.drafts``)


@dataclass(frozen=True)
class _Priced:
    edit: Edit
    price: float
    order: int


def find_edits(
    data: Given,
    file: str,
    base: Explanation,
    compiler: Compiler,
    machine: Machine,
    sources: Sources,
) -> Findings:
    """Returns the findings of ``base``, which explains ``data`` as ``compiler`` compiles it."""
    try:
        reading = read(data, file, sources)
    except ShardpassError as error:
        return Findings(why_not=f"the program cannot be imported: {error.diagnostics[0].message}")
    with reading.module.context:
        return _Search(data, file, base, compiler, machine, sources, Sites(reading)).run()


class _Search:
    """One search for edits. State: the findings so far, their changes, and the program with them."""

    def __init__(
        self,
        data: Given,
        file: str,
        base: Explanation,
        compiler: Compiler,
        machine: Machine,
        sources: Sources,
        sites: Sites,
    ) -> None:
        self.module = parse_module(data, file, trusted=True)  # of this process's making
        meshes = [mesh for mesh in meshes_of(self.module).values() if isinstance(mesh, Mesh)]
        self.axes = {name for mesh in meshes for name, _ in mesh.axes}  # of the user's; none in GSPMD's notation
        self.sites, self.compiler = sites, compiler
        self.kinds = Kinds(sites)
        self.model = Model(sites.reading, machine)
        self.text = JaxText(sites, sources, base.file)
        self.rows, self.figures = base.rows, figures(base)
        self.changes: list[Change] = []
        self.findings: list[Finding] = []
        self.compiled = 0

    def run(self) -> Findings:
        sites = self.sites
        if sites.program.mesh.mesh.size < 2:
            return Findings(why_not="the program runs on one device")
        signature = Signature(main_of(self.module))
        if len(signature.arguments) != len(sites.program.body.arguments):
            return Findings(why_not="main has arguments that are no arrays")
        if len(signature.results) != len(sites.program.body.returned):
            return Findings(why_not="main has results that are no arrays")
        names = [row.array for row in sorted(self.rows, key=lambda row: -row.bytes_received)]
        candidates = Candidates(sites, self._lines(), names[:MOST_NAMED])
        self._look(candidates.written())
        if self.findings:
            return Findings(tuple(self.findings), compiled=self.compiled)
        surplus = self._surplus()
        self._look(candidates.decided(self.model.decided()))
        return Findings(tuple(self.findings), surplus[:MOST_SURPLUS], self.compiled)

    def _look(self, candidates: Iterable[Edit]) -> None:
        """Compiles the cheapest ``candidates`` by the model, and appends the edits that save to ``findings``."""
        priced, most = self._priced(candidates), self.compiled + MOST_COMPILED
        while priced and len(self.findings) < MOST_FINDINGS and self.compiled < most:
            edit = priced.pop(0).edit
            self.compiled += 1
            if self.findings and not self._drafted(edit):
                break
            pending = self._compiling(edit)
            following = self._again(priced, edit)  # while it is compiled
            if self._verified(edit, pending):
                priced = following
            elif self.findings:
                break

    def _lines(self) -> list[Place]:
        """Lists the MOST_LINES lines of which the collectives send most bytes."""
        sums: dict[tuple[str, int], int] = {}
        places: dict[tuple[str, int], Place] = {}
        for row in self.rows:
            if row.place != NOWHERE:
                key = row.place.file, row.place.line
                places.setdefault(key, row.place)
                sums[key] = sums.get(key, 0) + row.bytes_received
        return [places[key] for key in sorted(sums, key=lambda key: -sums[key])[:MOST_LINES]]

    # ---------------------------------------------------------------- by the model

    def _priced(self, candidates: Iterable[Edit]) -> list[_Priced]:
        """Prices ``candidates`` by the model and returns those cheaper than the unchanged program, cheapest first."""
        base = self.model.price(())
        count = self.model.task.folded.program.count
        left = min(MOST, max(FEWEST, TRIES // max(1, count)))
        result = []
        for order, edit in enumerate(filter(self._has_words, candidates)):
            if order >= left:
                break
            result.append(_Priced(edit, self._price(edit), order))
        return self._cheaper(result, base, LEAST / 2)

    def _has_words(self, edit: Edit) -> bool:
        """Whether the axes of an edit are axes of the user's meshes, rather than parts that two meshes share."""
        return not self.axes or all(
            name in self.axes for change in edit for names in change.spec or () for name in names
        )

    def _price(self, edit: Sequence[Change]) -> float:
        """Models the price of ``edit`` together with the findings until now; infinite where it cannot be planned."""
        try:
            return self.model.price([*self.changes, *edit])
        except ShardpassError:
            return math.inf

    def _again(self, priced: Sequence[_Priced], edit: Edit) -> list[_Priced]:
        """Prices the candidates ``priced`` again on top of ``edit``, without those of its sites, and of findings'."""
        changes = [*self.changes, *edit]
        sites = {change.site for change in changes}
        left = [one for one in priced if not any(change.site in sites for change in one.edit)][:AGAIN]
        if not left:
            return []
        base, peak = self.model.price(changes), self.model.peak(changes)

        def promises(candidate: _Priced) -> bool:
            """Whether ``candidate`` saves the fraction NEXT of the price, or of the memory at no higher price."""
            if candidate.price < base * (1 - NEXT):
                return True
            return candidate.price < base and self.model.peak([*changes, *candidate.edit]) < peak * (1 - NEXT)

        again = [_Priced(one.edit, self._price([*edit, *one.edit]), one.order) for one in left]
        return self._cheaper([one for one in again if promises(one)], base, 0.0)

    def _cheaper(self, priced: Sequence[_Priced], base: float, least: float) -> list[_Priced]:
        """Selects the edits that save the part ``least`` of the price ``base``, cheapest first.

        Where dropping an annotation saves nearly as much as its best edit (ENOUGH), its other edits are left out.
        """
        cheaper = [one for one in priced if one.price < base * (1 - least)]
        best: dict[Site, float] = {}
        for one in cheaper:
            site = one.edit[0].site
            best[site] = min(best.get(site, one.price), one.price)
        dropped = {
            one.edit[0].site
            for one in cheaper
            if len(one.edit) == 1 and one.edit[0].spec is None
            if base - one.price >= ENOUGH * (base - best[one.edit[0].site])
        }
        cheaper = [one for one in cheaper if one.edit[0].site not in dropped or one.edit[0].spec is None]
        return sorted(cheaper, key=lambda one: (round(one.price / base / SAME), one.order))

    def _surplus(self) -> tuple[Surplus, ...]:
        """Lists the lines that send more than in shardpass's decision, in descending order of the difference."""
        ours: dict[tuple[str, int], int] = {}
        names = self.sites.names
        for one in self.model.plan().collectives:
            if one.op is not None:
                place = names.frame(one.op).place
                key = place.file, place.line
                ours[key] = ours.get(key, 0) + one.bytes * one.times
        sent: dict[tuple[str, int], int] = {}
        places: dict[tuple[str, int], Place] = {}
        for row in self.rows:
            key = row.place.file, row.place.line
            places.setdefault(key, row.place)
            sent[key] = sent.get(key, 0) + row.bytes_received
        result = [Surplus(places[key], size, ours.get(key, 0)) for key, size in sent.items() if places[key] != NOWHERE]
        if sum(ours.values()) >= self.figures.bytes:
            return ()  # what is sent less at one line is sent at others
        least = LEAST * max(1, self.figures.bytes)
        return tuple(sorted((one for one in result if one.bytes > least), key=lambda one: -one.bytes))

    # ---------------------------------------------------------------- compiled

    def _compiling(self, edit: Edit, *, draft: bool = False) -> Pending | None:
        """Starts to compile the program with ``edit``; returns None if the edit cannot be written into the module."""
        try:
            module = with_changes(self.module, self.sites.program.mesh.mesh, [*self.changes, *edit])
        except (ShardpassError, ir.MLIRError):
            return None
        return self.compiler(module, draft)

    def _drafted(self, edit: Edit) -> bool:
        """Whether a draft compilation shows that ``edit`` saves, its work time and memory reduced by the usual
        error of drafts.
        """
        explanation = _compiled(self._compiling(edit, draft=True))
        if explanation is None:
            return False
        after = figures(explanation)
        seconds = after.seconds - ROUGH * (explanation.compute_seconds or 0.0)
        return saves(self.figures, replace(after, seconds=seconds, memory=round(after.memory * (1 - ROUGH))))

    def _verified(self, edit: Edit, pending: Pending | None) -> bool:
        """Waits for the program with ``edit``; records a finding and returns True if it saves."""
        explanation = _compiled(pending)
        if explanation is None:
            return False
        after = figures(explanation)
        if not saves(self.figures, after):
            return False
        self.findings.append(self._finding(edit, self.figures, after, explanation))
        self.changes += edit
        self.rows, self.figures = explanation.rows, after
        return True

    def _finding(self, edit: Edit, before: Figures, after: Figures, explanation: Explanation) -> Finding:
        kind, clause = self.kinds.of(edit)
        annotations = tuple(
            Annotated(
                change.site.kind,
                change.site.pattern,
                "" if change.site.spec is None else spec_text(change.site.spec),
                "" if change.spec is None else spec_text(change.spec),
                change.site.place,
                change.site.positions,
            )
            for change in edit
        )
        return Finding(
            action_of(edit),
            sentence(edit, before, after, clause),
            annotations,
            tuple(dict.fromkeys(map(code_of, edit))),
            before,
            after,
            self.text.diff(edit),
            edit[0].site.place,
            changed_lines(self.rows, explanation.rows),
            kind,
        )


def _compiled(pending: Pending | None) -> Explanation | None:
    """Returns the program of ``pending``; None if the partitioner refuses it."""
    try:
        return None if pending is None else pending()
    except ShardpassError:
        return None
