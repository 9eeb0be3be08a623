"""What a plan holds in the memory of a device: how much, at which line most, and which values.

Problem: before a program runs its user wants to know whether it fits. XLA decides about buffers after fusing and
ordering ops, so an account of values alone is too high where fused values need no buffer, and an estimate is needed.

Source: the rules of XLA's buffer assignment, as far as they follow from a program alone:

1. Arguments and results have buffers of their own throughout; all others are temporaries, from the op that makes them
   to their last use.
2. An op that computes element by element is fused into its users where all of them read it element by element, or
   reduce it: it has no buffer, and what it reads lives until they run. Where there are several users it is computed
   again in each, if it is cheap (no exponentials, no divisions).
3. A reshape, a constraint, and the border of a region are the buffer of their operand. An update of a slice, and an
   elementwise op, write into an operand that dies there.
4. A loop's carried values have one buffer each, which is that of the initial value where it dies there; what a body
   passes on unchanged is not copied. Inside, what its body holds most is added.
5. Ops run in the order of the program; with ``breadth`` as soon as they can, as XLA's CPU client orders them: all
   gathers of weights come first, say, and live until they are used.

Example: ``h = tanh(x @ w + b); y = h @ v`` holds ``x @ w`` and ``h`` in one buffer (cases 2 and 3) beside y.

State: one walk over the plan's steps for each block. Complexity: O(steps + uses of fused values).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from shardpass.diagnostics import NOWHERE, Place
from shardpass.ops.families import elementwise
from shardpass.planning.listed import redistribution
from shardpass.planning.loop_account import held_in_turn, in_turn
from shardpass.planning.op_parts import Results, operand_steps, results_of, sources_of, taken
from shardpass.planning.plan import ProgramPlan
from shardpass.planning.steps import (
    BlockPlan,
    BorderPlan,
    ConstraintPlan,
    ControlFlowPlan,
    Copy,
    LeftOutPlan,
    OperandPlan,
    OpPlan,
    Reshard,
    SplitPlan,
    Step,
    UntouchedPlan,
    WholePlan,
)
from shardpass.program.program import Program
from shardpass.report.naming import Names
from shardpass.report.rows import Holding, MemoryFacts, folded_name

ELEMENTWISE = frozenset(f"stablehlo.{name}" for name in elementwise.STABLEHLO.split())
ALIASES = frozenset({"stablehlo.reshape", "stablehlo.optimization_barrier", "stablehlo.bitcast_convert"})
UPDATES = frozenset({"stablehlo.dynamic_update_slice", "stablehlo.scatter"})
SHAPING = frozenset({
    "stablehlo.broadcast_in_dim", "stablehlo.iota", "stablehlo.constant", "stablehlo.slice", "stablehlo.transpose",
})  # fmt: skip
READ = frozenset({"stablehlo.reduce"})  # fuse what they read, and are not fused themselves
DEAR = frozenset({
    "stablehlo.exponential", "stablehlo.tanh", "stablehlo.log", "stablehlo.divide", "stablehlo.power", "stablehlo.sqrt",
    "stablehlo.rsqrt", "stablehlo.sine", "stablehlo.cosine", "stablehlo.logistic", "stablehlo.log_plus_one",
    "stablehlo.exponential_minus_one", "stablehlo.remainder", "stablehlo.cbrt", "stablehlo.atan2", "stablehlo.tan",
})  # fmt: skip
PLAIN, ALIAS, FUSED, READS, UPDATE = "plain", "alias", "fused", "reads", "update"

MOST_HELD = 12  # values at the peak that are listed

Buffer = int  # the number of a copy, or of a partial result, in ``Account.named``
_Computed = SplitPlan | WholePlan | BorderPlan


@dataclass(slots=True)
class _Moment:
    """What one op, or one step for it, makes and uses. ``inside``: the most that its regions hold beside."""

    number: int
    makes: list[Buffer]
    uses: list[Buffer]
    kind: str = PLAIN
    dear: bool = False
    inside: int = 0
    carried: dict[Buffer, Buffer] = field(default_factory=dict)  # of a loop: result -> operand that it may take over


@dataclass(frozen=True)
class Held:
    """The temporaries of a program: (op, bytes) in order, and what is alive at the peak, each value with its bytes."""

    at: tuple[tuple[int, int], ...]
    peak: int
    peak_op: int | None
    alive: tuple[tuple[int, int], ...]


class Account:
    """The account of one plan. ``breadth``: case 5."""

    def __init__(self, plan: ProgramPlan, breadth: bool = False) -> None:
        self.program: Program = plan.program
        self.machine, self.breadth = plan.machine, breadth
        self.named: list[Copy | int] = []  # of each buffer, its copy; of a partial result, its value
        self.sizes: list[int] = []
        self._numbers: dict[Copy, Buffer] = {}
        self.body = in_turn(plan.body, plan.loops or ())
        self.beside = held_in_turn(plan.loops or ())
        self.arguments = [self.number(Copy(value, sharding)) for value, sharding in self.body.arguments]
        self.results = {self.number(operand.copy) for operand in self.body.returned if operand is not None}

    def held(self) -> Held:
        """Of the whole program; its arguments and results are not counted."""
        return self._walk(self.body, frozenset((*self.arguments, *self.results)))

    def number(self, copy: Copy) -> Buffer:
        """The buffer of ``copy``."""
        found = self._numbers.get(copy)
        if found is None:
            found = self._numbers[copy] = len(self.named)
            type_ = self.program.array(copy.array)
            shape = type_.shape if copy.sharding.is_maximal else copy.sharding.tile_shape(type_.shape)
            self.named.append(copy)
            self.sizes.append(type_.element.bytes(prod(shape)))
        return found

    def numbers(self, operands: Iterable[OperandPlan]) -> list[Buffer]:
        return [self.number(operand.copy) for operand in operands]

    def bytes(self, buffers: Iterable[Buffer]) -> int:
        """Of tiles of a device."""
        return sum([self.sizes[buffer] for buffer in buffers])

    # ---------------------------------------------------------------- one block

    def _walk(self, block: BlockPlan, outside: frozenset[Buffer]) -> Held:
        moments: list[_Moment] = []
        for plan in block.ops:
            self._moments(plan, moments)
        for operand in block.returned:
            if operand is not None:
                self._steps(operand.steps, -1, moments)
        moments.append(_Moment(-1, [], self.numbers(operand for operand in block.returned if operand is not None)))
        kept = _fuse(_without_aliases(moments))
        return self._lives(_as_soon_as_they_can(kept) if self.breadth else kept, outside)

    def _lives(self, moments: list[_Moment], outside: frozenset[Buffer]) -> Held:
        last = {buffer: place for place, m in enumerate(moments) for buffer in (*m.makes, *m.uses)}
        ends: dict[int, list[Buffer]] = {}
        for buffer, place in last.items():
            ends.setdefault(place, []).append(buffer)
        sizes = self.sizes
        born: dict[Buffer, int] = {}
        now = peak = 0
        highest = -1
        at: list[tuple[int, int]] = []
        for place, moment in enumerate(moments):
            ending = [buffer for buffer in ends.get(place, ()) if buffer in born]
            fresh = [buffer for buffer in moment.makes if buffer not in born and buffer not in outside]
            reused = self._reused(moment, ending, fresh)
            for buffer in fresh:
                born[buffer] = place
                now += sizes[buffer]
            here = now - reused + moment.inside
            at.append((moment.number, here))
            if here > peak:
                peak, highest = here, place
            now -= self.bytes(buffer for buffer in ends.get(place, ()) if buffer in born)
        alive = [buffer for buffer, place in born.items() if place <= highest <= last[buffer]]
        return Held(
            tuple(at),
            peak,
            moments[highest].number if peak else None,
            tuple((self._value(buffer), sizes[buffer]) for buffer in alive),
        )

    def _value(self, buffer: Buffer) -> int:
        named = self.named[buffer]
        return named.array if isinstance(named, Copy) else named

    def _reused(self, moment: _Moment, dying: list[Buffer], fresh: list[Buffer]) -> int:
        """Bytes of what is made in the place of what dies (cases 3 and 4)."""
        if moment.carried:
            return self.bytes(made for made, taken in moment.carried.items() if taken in dying and made in fresh)
        if moment.kind not in (FUSED, UPDATE):
            return 0
        sizes = [self.sizes[buffer] for buffer in dying if buffer in moment.uses]
        found = 0
        for buffer in fresh:
            size = self.sizes[buffer]
            if size in sizes:
                sizes.remove(size)
                found += size
        return found

    # ---------------------------------------------------------------- moments of an op

    def _moments(self, plan: OpPlan, out: list[_Moment]) -> None:
        self._steps(operand_steps(plan), plan.op.number, out)
        match plan:
            case SplitPlan() | WholePlan() | BorderPlan():
                self._computed(plan, [self.number(copy) for copy in taken(plan)], results_of(plan), out)
            case UntouchedPlan():
                out.append(_Moment(plan.op.number, [], [self.number(copy) for copy in taken(plan)]))
            case ControlFlowPlan():
                self._control_flow(plan, out)
            case ConstraintPlan() | LeftOutPlan():
                pass

    def _steps(self, steps: Iterable[Step], number: int, out: list[_Moment]) -> None:
        for step in steps:
            if isinstance(step, Reshard):
                ends = self.number(step.source), self.number(step.made)
                beside = max(0, redistribution(step, self.machine).peak_live_bytes - self.bytes(ends))
                out.append(_Moment(number, [ends[1]], [ends[0]], inside=beside))
            else:
                uses = [self.number(copy) for copy in sources_of(step)]
                out.append(_Moment(number, [self.number(step.made)], uses, _kind(step.op.name)))

    def _computed(self, plan: _Computed, uses: list[Buffer], results: Results, out: list[_Moment]) -> None:
        op = plan.op
        made: list[Buffer] = []
        joined: list[tuple[Buffer, Buffer]] = []
        for index, result in enumerate(results):
            if result is None:
                continue
            whole = self.number(Copy(result.value, result.computed))
            if result.completions and isinstance(plan, SplitPlan):
                part = self._partial(result.value, plan.local.split.result_tile(index))
                joined.append((part, whole))
                made.append(part)
            else:
                made.append(whole)
        kind = ALIAS if isinstance(plan, BorderPlan) else _kind(op.name)
        out.append(_Moment(op.number, made, uses, kind, op.name in DEAR, self.beside.get(op.number, 0)))
        out += [_Moment(op.number, [whole], [part]) for part, whole in joined]
        for result in results:
            if result is not None and result.reshard is not None:
                self._steps([result.reshard], op.number, out)

    def _partial(self, value: int, tile: tuple[int, ...]) -> Buffer:
        self.named.append(value)
        self.sizes.append(self.program.array(value).element.bytes(prod(tile)))
        return len(self.named) - 1

    def _control_flow(self, plan: ControlFlowPlan, out: list[_Moment]) -> None:
        op = plan.op
        inside = max((self._walk(block, self._entering(block)).peak for block in plan.blocks), default=0)
        made = [self.number(Copy(value, sharding)) for value, sharding in zip(op.results, plan.shardings, strict=True)]
        uses = self.numbers(plan.operands)
        carried: dict[Buffer, Buffer] = {}
        if op.is_loop:
            body = op.blocks[-1]
            carried = dict(zip(made, uses, strict=True))
            for place, (value, argument) in enumerate(zip(body.returned, body.arguments, strict=True)):
                if value == argument:
                    out.append(_Moment(op.number, [made[place]], [uses[place]], ALIAS))
        out.append(_Moment(op.number, made, uses, inside=inside, carried=carried))

    def _entering(self, block: BlockPlan) -> frozenset[Buffer]:
        return frozenset(self.number(Copy(value, sharding)) for value, sharding in block.arguments)


def _kind(name: str) -> str:
    if name in ALIASES:
        return ALIAS
    if name in ELEMENTWISE or name in SHAPING:
        return FUSED
    return READS if name in READ else UPDATE if name in UPDATES else PLAIN


def _without_aliases(moments: list[_Moment]) -> list[_Moment]:
    """Every buffer by the name of the first that it is; case 3."""
    root: dict[Buffer, Buffer] = {}
    out = []
    for moment in moments:
        moment.uses = [root.get(buffer, buffer) for buffer in moment.uses]
        if moment.kind == ALIAS and len(moment.makes) == len(moment.uses):
            root.update(zip(moment.makes, moment.uses, strict=True))
            continue
        moment.makes = [buffer for buffer in moment.makes if buffer not in root]
        moment.carried = {made: root.get(taken, taken) for made, taken in moment.carried.items() if made not in root}
        out.append(moment)
    return out


def _fuse(moments: list[_Moment]) -> list[_Moment]:
    """The moments that remain where fused values have no buffers; case 2."""
    users: dict[Buffer, list[_Moment]] = {}
    for moment in moments:
        for buffer in dict.fromkeys(moment.uses):
            users.setdefault(buffer, []).append(moment)
    gone: set[int] = set()
    for moment in reversed(moments):
        if moment.kind != FUSED or len(moment.makes) != 1:
            continue
        made = moment.makes[0]
        readers = users.get(made, [])
        if not readers or any(reader.kind not in (FUSED, READS) for reader in readers):
            continue
        if len(readers) > 1 and moment.dear:
            continue
        gone.add(id(moment))
        for reader in readers:
            reader.uses = [buffer for buffer in reader.uses if buffer != made]
            fresh = [buffer for buffer in moment.uses if buffer not in reader.uses]
            reader.uses += fresh
            for buffer in fresh:
                users.setdefault(buffer, []).append(reader)
        for buffer in moment.uses:
            users[buffer] = [one for one in users[buffer] if one is not moment]
    return [moment for moment in moments if id(moment) not in gone]


def _as_soon_as_they_can(moments: list[_Moment]) -> list[_Moment]:
    """``moments`` by the longest way from what is there at the start; the last, the end of the block, stays."""
    level: dict[Buffer, int] = {}
    levels = []
    for moment in moments[:-1]:
        here = 1 + max((level.get(buffer, 0) for buffer in moment.uses), default=0)
        level.update(dict.fromkeys(moment.makes, here))
        levels.append(here)
    order = sorted(range(len(levels)), key=lambda place: (levels[place], place))
    return [*(moments[place] for place in order), moments[-1]]


# ---------------------------------------------------------------- for people


def memory_facts(plan: ProgramPlan, names: Names, breadth: bool = False) -> MemoryFacts:
    """The account of ``plan``, with the lines and names of what is alive at the peak."""
    account = Account(plan, breadth)
    held = account.held()
    arguments, results = account.bytes(account.arguments), account.bytes(account.results)
    by_number = {op.number: op for op in plan.program.body.every_op()}
    at_peak = by_number.get(held.peak_op) if held.peak_op is not None else None
    return MemoryFacts(
        arguments,
        results,
        held.peak,
        tuple((number, arguments + results + count) for number, count in held.at),
        held.peak_op,
        NOWHERE if at_peak is None else names.frame(at_peak).place,
        _holdings(held, plan.program, names),
    )


def _holdings(held: Held, program: Program, names: Names) -> tuple[Holding, ...]:
    """What is alive at the peak, equal ones of one line together, most bytes first."""
    found: dict[tuple[str, str, Place], list[int]] = {}
    for value, size in held.alive:
        maker = names.makers.get(value)
        place = NOWHERE if maker is None else names.frame(maker).place
        array = program.array(value)
        kind = f"{array.element.mlir}[{','.join(map(str, array.shape))}]"
        found.setdefault((folded_name(names.of(value)), kind, place), []).append(size)
    rows = [Holding(name, kind, sum(sizes), place, len(sizes)) for (name, kind, place), sizes in found.items()]
    return tuple(sorted(rows, key=lambda one: -one.bytes)[:MOST_HELD])
