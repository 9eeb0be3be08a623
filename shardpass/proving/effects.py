"""Effects: calls of the host, outfeeds and infeeds, sends and receives, and draws of random numbers.

The program of one device has the effects of the whole program if there is one for each, and no other. The walk over
the whole program lists its effects, and the walk over the other program finds for each op with an effect the one of the
list that it is: (1) the same op with the same attributes, (2) with the same operands, (3) in the same branches and
loops, and (4) made by the devices that have to make it. Example: the whole program prints x, and

    %all = all_gather %x;  if partition_id == 0 { print %all }

prints it once, on device 0. Without the branch every device prints it, which is another effect.

Which devices have to: in a manual region each of them; of a random number device 0, as other devices may draw what they
do not use; else one device, the one that the sharding of the op names if it names one.

**Order.** Where a token leads from one effect of the whole program to another, the operands of the other program must
lead from the first to the second. A branch, a loop and a call of the host begin when their operands are there, and are
over before anybody uses a result. Effects without tokens may change places.

A token is the integer 0 here: shardpass replaces tokens by this number (``shardpass.tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shardpass.diagnostics import ShardpassError
from shardpass.ir.annotations import MANUAL, SHARDING, TO_SHARD, custom_call_target, get_text
from shardpass.ir.effects import NO_CALLS
from shardpass.ir.locations import place_of
from shardpass.ir.walk import every_op, operation
from shardpass.proving.relations.calls import callee, reached
from shardpass.proving.relations.compare import differs_on, same_steps
from shardpass.proving.relations.evaluate import Loss, Rule, Site, Step, Unknown, is_token, nothing, type_of
from shardpass.proving.relations.pieces import Bools, Content, full
from shardpass.proving.relations.terms import Key, Term, Terms
from shardpass.proving.rules import calls
from shardpass.proving.rules.blocks import ALIASES, call_key
from shardpass.proving.rules.integers import constant_piece
from shardpass.proving.rules.manual import meshes_around
from shardpass.sharding import Sharding, parse_sharding
from shardpass.sharding.notations.sdy import parse_sdy

DRAW = "stablehlo.rng"
STATE = "mhlo.xla.rng_get_and_update_state"
OPS = (DRAW, STATE, *(f"stablehlo.{name}" for name in ("infeed", "outfeed", "send", "recv")))
_MADE = ("stablehlo.create_token", "stablehlo.after_all")
_SILENT = ("mhlo.sharding", "sdy.sharding", "result_layout", "xla_shape")
_ROWS = re.compile(r"dense<(?:\[([\d, ]*)\]|(\d*))>")


def is_effect(op: Any) -> bool:
    """Return whether ``op`` does more than compute its results."""
    if op.name == "stablehlo.custom_call":
        target = custom_call_target(op)
        return calls.has_effect(op) and target not in NO_CALLS and target not in calls.IDENTITIES
    return op.name in OPS


def effects_in(op: Any, functions: Mapping[str, Any]) -> list[Any]:
    """Return the ops with effects in ``op`` and in what it calls."""
    return [inner for inner in reached(op, functions) if is_effect(inner)]


@dataclass(eq=False)
class Effect:
    """An effect of the whole program.

    ``steps``: the branches and loops that it is in; ``on``: the devices that reach it; ``each``: whether every device
    of a manual region makes it; ``device``: the device that makes it, None where the program names none; ``after``:
    the effects from which tokens lead to it.
    """

    op: Any
    key: Key
    steps: tuple[Step, ...]
    on: Bools
    operands: list[Content]
    results: list[Content]
    each: bool
    device: int | None
    after: frozenset[int]


@dataclass(eq=False)
class Effects:
    """The effects of one walk. ``whole``: those of the whole program; None in the walk over the whole program
    itself.

    State: ``listed``, the effects of the whole program so far; ``made``, the numbers of those that ops of the other
    program are; ``faults``; ``after``, for each value the effects that are over before it is there.
    """

    whole: Effects | None = None
    listed: list[Effect] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    faults: list[Loss] = field(default_factory=list)
    after: dict[Any, frozenset[int]] = field(default_factory=dict)
    in_region: bool = False

    def state(self) -> tuple[int, int, int]:
        """Return the current state, for ``back_to``."""
        return len(self.listed), len(self.made), len(self.faults)

    def back_to(self, state: tuple[int, int, int]) -> None:
        """Restore ``state``: drop everything recorded since then."""
        del self.listed[state[0] :], self.made[state[1] :], self.faults[state[2] :]

    def enter(self, op: Any, functions: Mapping[str, Any]) -> tuple[int, int, int]:
        """Record which effects precede the block arguments of ``op``; return the state before ``op``."""
        name = callee(op)
        if name in functions:
            for block in functions[name].regions[0].blocks:
                for argument, value in zip(block.arguments, op.operands, strict=False):
                    self.after[argument] = self._after(value)
        elif len(op.regions):
            before = self._before(op)
            for block in (block for region in op.regions for block in region.blocks):
                self.after.update(dict.fromkeys(block.arguments, before))
        return self.state()

    def leave(self, op: Any, since: tuple[int, int, int], functions: Mapping[str, Any]) -> None:
        """Record which effects precede the results of ``op``. ``since``: the state before ``op``."""
        name = callee(op)
        if name in functions:
            *_, end = functions[name].regions[0].blocks[0].operations
            for result, value in zip(op.results, operation(end).operands, strict=True):
                self.after[result] = self._after(value)
            return
        inside = range(since[0], len(self.listed)) if self.whole is None else self.made[since[1] :]
        over = self._before(op).union(inside)
        for result in op.results:
            self.after[result] = over

    def lose(self, op: Any, why: str, since: tuple[int, int, int], functions: Mapping[str, Any]) -> None:
        """Note that the effects in ``op`` are not known, as the walk did not get through it."""
        self.back_to((since[0], since[1], since[2]))
        self.faults += [Loss(inner, f"its effect is not compared: {why}") for inner in effects_in(op, functions)]

    def _before(self, op: Any) -> frozenset[int]:
        return frozenset[int]().union(*map(self._after, op.operands))

    def _after(self, value: Any) -> frozenset[int]:
        if self.whole is None and not is_token(value.type):
            return frozenset()
        return self.after.get(value, frozenset())

    # ------------------------------------------------------------ one effect

    def meet(self, site: Site) -> list[Content]:
        """Return the results of an op with an effect."""
        return self._listed(site) if self.whole is None else self._found(site, self.whole.listed)

    def _listed(self, site: Site) -> list[Content]:
        walk, op, number = site.walk, site.op, len(self.listed)
        marked = is_manual_op(op)
        each = self.in_region or marked
        if walk.devices > 1 and not each and _has_borders(walk.functions):
            self.faults.append(Loss(op, "it may stand in a manual region, where every device makes the call"))
        results = [_result(site, number, k) for k in range(len(op.results))]
        if op.name in (DRAW, STATE):  # their numbers are compared element by element
            results = [nothing(value) for value in op.results]
        effect = Effect(op, effect_key(site), walk.steps, walk.active, site.operands, results, each,
                        None if each else device_of(op), self._before(op))  # fmt: skip
        self.listed.append(effect)
        return results

    def _found(self, site: Site, whole: Sequence[Effect]) -> list[Content]:
        key, on = effect_key(site), site.walk.active
        why = "the whole program makes no such call"
        for number, effect in enumerate(whole):
            if effect.key != key:
                continue
            if number in self.made:
                why = "the whole program makes this call less often"
                continue
            reason = _another(effect, site)
            if reason is not None:
                why = reason
                continue
            if not effect.after <= self._before(site.op):
                first = min(effect.after - self._before(site.op))
                why = f"it does not wait for the call at {place_of(whole[first].op.location)}, as a token makes it do"
                self.faults.append(Loss(site.op, why))
            self.made.append(number)
            return [_on(content, on, effect, site.devices) for content in effect.results]
        self.faults.append(Loss(site.op, why))
        return [nothing(value) for value in site.op.results]

    def missing(self) -> Loss | None:
        """Return the first fault, or the first effect of the whole program that the per-device program lacks."""
        assert self.whole is not None
        for loss in (*self.whole.faults, *self.faults):
            return loss
        for number, effect in enumerate(self.whole.listed):
            if number not in self.made:
                return Loss(effect.op, "the program of one device does not make this call of the whole program")
        return None


def _another(effect: Effect, site: Site) -> str | None:
    """Return why an op of the per-device program with the same name differs from ``effect``; None if it does not."""
    walk, on = site.walk, site.walk.active
    if not same_steps(site.terms, effect.steps, walk.steps, on):
        return "the whole program makes this call in other branches or loops"
    if effect.each and (on != effect.on).any():
        return "other devices make this call than in the whole program"
    if effect.op.name == DRAW and not on[0]:
        return "device 0 does not draw this number"
    if effect.op.name not in (DRAW, STATE) and not effect.each:
        devices = np.flatnonzero(on)
        if len(devices) != 1:
            return f"{len(devices)} devices make this call, and the whole program makes it once"
        if effect.device is not None and devices[0] != effect.device:
            return f"device {devices[0]} makes this call, and the whole program names device {effect.device}"
    if not effect.each and not effect.on.all():
        return "part of the devices reach this call in the whole program"
    for index, (want, have) in enumerate(zip(effect.operands, site.operands, strict=False)):
        why = differs_on(site.terms, want, have, on, each=effect.each)
        if why is not None:
            return f"operand {index} is not that of the whole program: {why}"
    return None if len(effect.operands) == len(site.operands) else "it has another number of operands"


def _result(site: Site, number: int, index: int) -> Content:
    """Return a result of the whole program's effect ``number``: values that follow from nothing else."""
    value = site.op.results[index]
    shape, element = type_of(value)
    if is_token(value.type):
        return token(site.terms, site.devices)
    rank = len(shape)
    term = site.terms.make(Term(("effect", number, index), (), rank + 1))
    a = np.concatenate([np.eye(rank, dtype=np.int64), np.zeros((1, rank), np.int64)])
    b = np.zeros((site.devices, rank + 1), np.int64)
    if site.walk.effects is not None and (site.walk.effects.in_region or is_manual_op(site.op)):
        b[:, rank] = np.arange(site.devices)
    return Content(shape, element, (full(term, a, b, shape),) if 0 not in shape else ())


def _on(content: Content, on: Bools, effect: Effect, devices: int) -> Content:
    """Return a result on the devices ``on`` that make the effect."""
    everyone = np.arange(devices) if effect.each else np.zeros(devices, np.int64)
    pieces = [piece.of_devices(everyone) for piece in content.pieces]
    made = [type(p)(p.term, p.a, p.b, p.lo, p.hi, p.on & on) for p in pieces]
    return Content(content.shape, content.element, tuple(p for p in made if p.on.any()))


def token(terms: Terms, devices: int) -> Content:
    """Return a token on each device."""
    none = np.zeros((devices, 0), np.int64)
    piece = constant_piece(terms, "i32", 0, (none, none, np.ones(devices, bool)))
    return Content((), "i32", () if piece is None else (piece,))


def tokens(site: Site) -> list[Content]:
    """Relate ``create_token`` and ``after_all``."""
    return [token(site.terms, site.devices)]


def effect_key(site: Site) -> Key:
    """Return a key of an effect without its operands: op, attributes, called bodies, and types."""
    op = site.op
    types = tuple(type_of(value) for value in (*op.operands, *op.results))
    if op.name == "stablehlo.custom_call":
        name, kept, *rest = call_key(op, site.walk.functions)
        kept = tuple(row for row in kept if not (row[0].endswith("_layouts") and _usual(row[1])))
        aliases = str(op.attributes[ALIASES]) if ALIASES in op.attributes else "[]"
        return (name, kept, *rest, aliases, types)
    kept = []
    for named in op.attributes:
        name = named if isinstance(named, str) else named.name
        if name not in _SILENT and not name.startswith(("shardpass.", "jax.")):
            kept.append((name, str(op.attributes[name])))
    return (op.name, tuple(sorted(kept)), types)


def _usual(layouts: str) -> bool:
    """Return whether each layout is that of rows after one another."""
    for rows, one in _ROWS.findall(layouts):
        order = [int(n) for n in (rows or one).split(",") if n.strip()]
        if order != sorted(order, reverse=True):
            return False
    return True


def is_manual_op(op: Any) -> bool:
    return get_text(op, SHARDING) == MANUAL


def device_of(op: Any) -> int | None:
    """Return the device that the sharding of ``op`` names; None where it names none."""
    try:
        if SHARDING in op.attributes:
            sharding = parse_sharding(get_text(op, SHARDING) or "")
            one = sharding if isinstance(sharding, Sharding) else next(iter(sharding.elements), None)
        else:
            text = str(op.attributes["sdy.sharding"]) if "sdy.sharding" in op.attributes else ""
            rows = re.findall(r"<(@[^<>]*)>", text)
            one = parse_sdy(f"#sdy.sharding<{rows[0]}>", meshes_around(op)) if rows else None
    except ShardpassError:
        return None
    return one.device if isinstance(one, Sharding) and one.is_maximal else None


def _has_borders(functions: Mapping[str, Any]) -> bool:
    return any(custom_call_target(op) == TO_SHARD for f in functions.values() for op in every_op(f))


def meet(site: Site) -> list[Content]:
    """Relate an op with effects: its calls must match those of the whole program."""
    if site.walk.effects is None:
        raise Unknown("it has an effect")
    results: list[Content] = site.walk.effects.meet(site)
    return results


def custom_call(site: Site) -> list[Content]:
    return meet(site) if is_effect(site.op) else calls.custom_call(site)


RULES: dict[str, Rule] = {
    **dict.fromkeys(OPS, meet),
    **dict.fromkeys(_MADE, tokens),
    "stablehlo.custom_call": custom_call,
}
