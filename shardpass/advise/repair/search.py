"""Find the cheapest edits with which a program traces that raised a sharding type error.

Problem. A function raises an error of types while JAX traces it; with an edit there it goes on, perhaps to the next
error. Find the sequences of edits with which it traces to its end, and of these the cheapest.

1. A state is the text of the user's files with some edits. It is traced (``trace``), which ends with a program or with
   the next error.
2. At an error the program is traced once more with a probe, which sees the types of the op's operands, and once with
   all operands whole, which shows the result; ``candidates`` are the edits there. Where there are none, those at the
   calling expression are tried, and so on outwards.
3. States wait in the order of their regret: by how much their edits cost more, each alone, than the cheapest edit at
   the same place. So the first program is that of the cheapest edit at every error. Next, each edit of the first error
   gets a program, as an edit decides what comes behind it. Then a state is worth the best program that has all its
   edits but the last ones, and its regret above that program's.
4. A program that traces is priced as a whole on the machine. When the first edits have their programs, ENOUGH more of
   these or BEYOND traces end the search, or TRACES traces in all, with the best so far.
5. An operand that may be an argument of the function has its spec changed there, in place of an edit. Such programs
   come behind all others: what an argument is, is for the user to say.

Invariant: each program that is returned was traced, from the text that its diff shows.

Cost: at most TRACES traces, a price for each program, and for each error with other types of its operands some hundred
traces of one op.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax

from shardpass.advise.find.source import SourceFile
from shardpass.advise.place.specs import Spec
from shardpass.advise.repair.alone import Probe, Values, priced
from shardpass.advise.repair.candidates import Candidate, Known, whole
from shardpass.advise.repair.carries import carry_edits
from shardpass.advise.repair.errors import Clash, read
from shardpass.advise.repair.expression import OUT, Edit, Expression, expression_at
from shardpass.advise.repair.specs import type_text
from shardpass.advise.repair.trace import CannotTrace, Edited, Swap, running_text
from shardpass.advise.repair.waiting import State, Waiting
from shardpass.report.findings import Figures

TRACES = 72
ENOUGH, BEYOND = 6, 24  # programs and traces, behind the first program of each first edit
DEEPEST = 12  # edits of one program
SAME = 0.015  # of the price: a difference that is not worth a further edit
OF_ARGUMENTS = 8  # traces with other arguments
_FILTERING = "jax_traceback_filtering"

Lower = Callable[[Mapping[int, Spec]], str]  # the program with other specs of arguments, by number


@dataclass(frozen=True)
class Argument:
    """An argument of the function: a leaf of the pytree, with its path."""

    path: str
    type: str
    spec: Spec


@dataclass(frozen=True)
class Program:
    """A program that JAX can trace. ``price``: its modeled seconds, plus a small cost for the memory that it needs."""

    state: State
    figures: Figures
    price: float


@dataclass(frozen=True)
class Site:
    """An op that raised an error: its text, and the types of its operands."""

    text: str
    operands: tuple[tuple[str, str], ...]


class Search:
    """One search. State: the states to try, the programs that trace, and the site of the first error."""

    def __init__(self, lower: Lower, arguments: tuple[Argument, ...], machine: str, spec_only: bool) -> None:
        self.lower, self.arguments, self.machine = lower, arguments, machine
        self.spec_only = spec_only  # a PartitionSpec may be written without its mesh
        self.swap = Swap()
        self.programs: list[Program] = []
        self.site: Site | None = None
        self.traces = self.tried = 0
        self._known = Known(machine)
        self._waiting = Waiting()
        self._of_arguments: list[State] = []
        self._later: list[tuple[State, Clash, int]] = []
        self._seen: set[Any] = set()

    def run(self, first: Clash) -> None:
        """Search from the error ``first``, with tracebacks as they are: to filter each costs JAX more than to trace an
        op, and a search raises some thousand that nobody reads.
        """
        before = jax.config.values[_FILTERING]
        jax.config.update(_FILTERING, "off")
        try:
            self._run(first)
        finally:
            jax.config.update(_FILTERING, before)

    def _run(self, first: Clash) -> None:
        self._expand(State(), first, 0)
        most, enough = TRACES, TRACES  # traces and programs
        while self.traces < most and len(self.programs) < enough:
            if self._waiting:
                if most == TRACES and not self._waiting.follows_first_edits:
                    most, enough = min(TRACES, self.traces + BEYOND), len(self.programs) + ENOUGH
                self._try(self._waiting.next())
            elif self._later and not self.programs:
                self._expand(*self._later.pop(0))
            else:
                break
        self._of_arguments.sort(key=lambda one: one.regret)
        for one in self._of_arguments[:OF_ARGUMENTS]:
            self._try(one, last=True)
        every = self.programs
        self.programs = _ordered([one for one in every if not one.state.arguments])
        self.programs += _ordered([one for one in every if one.state.arguments])

    # ---------------------------------------------------------------- traces

    def _try(self, state: State, last: bool = False) -> None:
        """Trace ``state``, and queue its successors unless it is the ``last``."""
        self.tried += 1
        result = self._traced(state)
        if isinstance(result, Clash):
            if len(state.edits) < DEEPEST and not last:
                self._expand(state, result, 0)
        elif result is not None:
            program = priced(result, self.machine)
            if program is not None:
                self.programs.append(Program(state, *program))
                self._waiting.reached(state, program[1])

    def _traced(self, state: State, probe: Probe | None = None, texts: Mapping[str, str] | None = None) -> Any:
        """Return the program of ``state``, the sharding type error that it raises, or None for any other error."""
        self.traces += 1
        edited = (state.texts if texts is None else texts).items()
        files = [Edited(path, running_text(path), text) for path, text in edited]
        try:
            with self.swap.edited(files), nullcontext() if probe is None else probe.called():
                return self.lower(state.arguments)
        except CannotTrace:
            return None
        except Exception as error:  # of the user's program, which an edit may have made wrong
            return read(error)

    # ---------------------------------------------------------------- what is tried next

    def _expand(self, state: State, clash: Clash, frame: int) -> None:
        """Queue the states with one more edit at the expression of ``frame`` (0 is the innermost)."""
        if frame >= len(clash.frames):
            return
        self._later.append((state, clash, frame + 1))
        path = clash.frames[frame].place.file
        text = state.texts.get(path) or running_text(path)
        try:
            file = SourceFile(path, text)
        except (SyntaxError, ValueError):
            return
        at = expression_at(file, clash.frames[frame], self.spec_only)
        if at is None:
            return
        values = self._probed(state, at, at.probed())
        if not state.edits and (self.site is None or not self.site.operands):
            rows = ((at.operand(number), type_text(one)) for number, one in values.items() if number >= 0)
            self.site = Site(at.text, tuple(dict.fromkeys((text, kind) for text, kind in rows if kind)))
        for one, edit in carry_edits(at, clash):
            self._put(state, Candidate(one, edit, 0.0), values)
        for candidate in self._known.candidates(at, values, lambda: self._result(state, at, values)):
            self._put(state, candidate, values)

    def _probed(self, state: State, at: Expression, text: str) -> Values:
        """Return the arguments that a trace of ``state`` passes to the probe, with ``text`` for the file of ``at``."""
        probe = Probe()
        self._traced(state, probe, {**state.texts, at.file.path: text})
        return probe.values

    def _result(self, state: State, at: Expression, values: Values) -> Any:
        """Return an object with the shape of the expression's result, traced with whole operands or a whole result."""
        for edit in (whole(values), Edit(out=())):
            seen = self._probed(state, at, at.watched(edit))
            if OUT in seen:
                return seen[OUT]
            if not at.may_say:
                break
        return None

    def _put(self, state: State, one: Candidate, values: Values) -> None:
        path = one.at.file.path
        text = one.at.edited(one.edit)
        texts = {**state.texts, path: text}
        made = State(texts, (*state.edits, str(one)), state.arguments, state.regret + one.price, state)
        if not one.again and self._is_new(made):
            self._waiting.add(made)
        match one.edit:
            case Edit(operands=((number, spec),), out=None) if number != OUT:
                kind = type_text(values[number])
                same = [place for place, argument in enumerate(self.arguments) if argument.type == kind]
                if len(same) == 1 and same[0] not in state.arguments:
                    arguments = {**state.arguments, same[0]: spec}
                    other = State(state.texts, state.edits, arguments, state.regret + one.price, state.before)
                    if self._is_new(other):
                        self._of_arguments.append(other)

    def _is_new(self, state: State) -> bool:
        key = tuple(sorted(state.texts.items())), tuple(sorted(state.arguments.items()))
        new = key not in self._seen
        self._seen.add(key)
        return new


def _ordered(programs: list[Program]) -> list[Program]:
    """Return the programs cheapest first; of those that cost about as little as the cheapest, the simplest leads."""
    least = min((one.price for one in programs), default=0.0)
    near = [one for one in programs if one.price <= least * (1 + SAME)]
    others = [one for one in programs if one.price > least * (1 + SAME)]
    lengths = {one: sum(map(len, one.state.texts.values())) for one in near}
    near.sort(key=lambda one: (len(one.state.edits) + len(one.state.arguments), lengths[one]))
    return [*near, *sorted(others, key=lambda one: one.price)]
