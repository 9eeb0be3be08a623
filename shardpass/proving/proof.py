"""The proof: both programs are walked by one table of terms, and the results' pieces are compared.

Sound: each piece is a true statement of a device's tile for all inputs (each rule keeps that), and a result is proved
only where its pieces name, for every element that is no padding, the term and the index of the whole program's element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.diagnostics.table_driver import TOO_DEEP
from shardpass.ir.annotations import TO_SHARD, custom_call_target, main_of
from shardpass.ir.collectives import OPS
from shardpass.ir.locations import place_of
from shardpass.ir.walk import operation
from shardpass.proving.effects import OPS as EFFECTS
from shardpass.proving.effects import Effects, is_effect, token
from shardpass.proving.ending import Behind, where_it_ends
from shardpass.proving.loop_sums import summed_inside
from shardpass.proving.progress import without_partners
from shardpass.proving.promises import donated_alone
from shardpass.proving.refuting import Waits, counterexample
from shardpass.proving.relations.calls import from_main, functions_of, noted_in, refuse_circles
from shardpass.proving.relations.compare import differs
from shardpass.proving.relations.evaluate import Loss, Walk, is_token
from shardpass.proving.relations.laws import Laws, joined
from shardpass.proving.relations.lying import where_in
from shardpass.proving.relations.pieces import Content, full
from shardpass.proving.relations.sides import Side
from shardpass.proving.relations.terms import Term, Terms
from shardpass.proving.scalars.proof import ElementProof
from shardpass.proving.signature import sides
from shardpass.proving.table import RULES
from shardpass.proving.verdict import ASSUMED, DRAWS, GIVEN, OBJECT, OPEN, SHOWN, Finding, Verdict

REGION, CONVERT = "sdy.manual_computation", "stablehlo.convert"
_NOTED = (*OPS, *EFFECTS, REGION, CONVERT, "stablehlo.custom_call")  # ops that are looked for in both programs


def prove_modules(whole: Any, local: Any, *, refute: bool = True, strict: bool = False) -> Verdict:
    """Compare two modules. With ``refute``, small programs that are not proved are run, to see whether they differ.

    With ``strict``, laws that floats keep only in part prove nothing.

    Raises:
        ShardpassError: the modules are not a whole program and its program of one device; SP205 where functions of one
            of them call one another in a circle; SP124 where one nests too deep.
    """
    attributes = local.operation.attributes
    proved_object = attributes[OBJECT].value if OBJECT in attributes else GIVEN
    try:
        return replace(_proved(whole, local, refute, Laws(strict)), object=proved_object)
    except RecursionError as error:
        raise TOO_DEEP.error(place_of(main_of(whole).location), name="the prover", reason=str(error)) from None


def _proved(whole: Any, local: Any, refute: bool, laws: Laws) -> Verdict:
    given, local = local, summed_inside(local, laws)
    arguments, results, devices = sides(whole, local)
    terms = Terms()
    functions = [functions_of(module) for module in (whole, local)]
    noted = [noted_in(rows, _NOTED) for rows in functions]
    for rows in noted:
        refuse_circles(rows)
    count = devices if any(map(_is_border, (op for ops in noted[0].values() for op in ops))) else 1
    known = Walk(terms, count, functions[0], RULES, laws)
    walk = Walk(terms, devices, functions[1], RULES, laws)
    met = from_main(noted[1])
    if any(map(is_effect, (*from_main(noted[0]), *met))):
        known.effects = Effects()
        walk.effects = Effects(known.effects)
    inputs = [terms.make(Term(("argument", index), (), len(side.shape))) for index, side in enumerate(arguments)]
    given_whole = [_whole_argument(t, side, count) for t, side in zip(inputs, arguments, strict=True)]
    wanted = _not_tokens(whole, known.block(_body(whole), _with_tokens(whole, given_whole, token(terms, count))))
    walk.unkept += donated_alone(whole, given)
    walk.known_loops, walk.known_promises, walk.sides = known.loops, known.promises, [*arguments, *results]
    result = walk.block(_body(local), [_argument(t, side, devices) for t, side in zip(inputs, arguments, strict=True)])

    boxes, of_elements = set[int](), Laws(laws.strict)

    @cache
    def elements() -> ElementProof:
        return ElementProof(
            (_body(whole), known.functions, count),
            (_body(local), walk.functions),
            arguments,
            results,
            devices,
            of_elements,
        )

    drawn: tuple[str, ...] = ()
    results = [
        side if side.named else _as_it_lies(want, have, side)
        for want, have, side in zip(wanted, result, results, strict=True)
    ]
    unnamed = tuple(f"result {k} {_words(side)}" for k, side in enumerate(results) if not side.named)
    assumed = (*ASSUMED, *unnamed, *_open_conversions(met))
    refute = refute and all(side.named for side in results)
    finding: Finding | None = None
    for index, (want, have, side) in enumerate(zip(wanted, result, results, strict=True)):
        why = differs(terms, want, have, side)
        if why is None:
            boxes.add(index)
            continue
        if elements().proved(index):
            drawn = (DRAWS,) if elements().draws else ()
            continue
        finding = where_it_ends(walk, known, elements().losses(index), whole, local, index, want, why)
        break
    if finding is None:
        loss = without_partners(met, devices) or _of_all(walk, elements)
        lone = _lone_effect(list(from_main(noted[0])), met) if loss is not None and not walk.stuck else None
        loss = lone or loss
        if loss is None:
            used = laws.summary(Behind((whole, local), boxes))
            used += of_elements.summary(Behind((whole, local), set(range(len(results))) - boxes))
            return Verdict(True, assumed=(*assumed, *drawn), laws=joined(used))
        finding = Finding(loss.op.name, place_of(loss.op.location), loss.why, None)
        if loss.certain:
            return Verdict(False, refuted=finding, assumed=assumed)
    difference = counterexample(whole, given) if refute else ""
    if isinstance(difference, str):
        return Verdict(False, unknown=finding, assumed=assumed, runs=difference)
    if isinstance(difference, Waits):
        return Verdict(False, refuted=replace(finding, why=f"{finding.why}; {difference}"), waits=difference)
    finding = replace(finding, why=f"{finding.why}; result {difference.result} differs: {difference}")
    return Verdict(False, refuted=finding, difference=difference)


def _of_all(walk: Walk, elements: Callable[[], ElementProof]) -> Loss | None:
    """Return the part that is not proved although every result is: devices that may deadlock, effects, or promises."""
    if walk.stuck:
        stuck = elements().stuck  # loops of known length are walked there
        for loss in walk.stuck:
            if stuck is None or loss.op in stuck:
                return replace(loss, why=f"the devices may wait for one another here, or run forever: {loss.why}")
    effect: Loss | None = None if walk.effects is None else walk.effects.missing()
    return effect or next(iter(walk.unkept), None)


def _lone_effect(whole: Sequence[Any], local: Sequence[Any]) -> Loss | None:
    """Return an effect in the body of one of the programs, of a kind that the other program has nowhere."""
    kinds = [{_kind(op) for op in ops if is_effect(op)} for ops in (whole, local)]
    for ops, others, what in ((whole, kinds[1], "does not make this call of"), (local, kinds[0], "makes, unlike")):
        for op in ops:
            main = operation(op).parent
            if is_effect(op) and _kind(op) not in others and main.name == "func.func" and _is_main(main):
                return Loss(op, f"the program of one device {what} the whole program", True)
    return None


def _kind(op: Any) -> tuple[str, str]:
    return op.name, custom_call_target(op) or ""


def _is_main(function: Any) -> bool:
    return str(function.attributes["sym_name"].value) == "main"


def _is_token(module: Any, side: str) -> list[bool]:
    return [is_token(kind) for kind in getattr(main_of(module).attributes["function_type"].value, side)]


def _with_tokens(whole: Any, values: list[Content], one: Content) -> list[Content]:
    """Return the arguments of main, with ``one`` for each that is a token."""
    rest = iter(values)
    return [one if token else next(rest) for token in _is_token(whole, "inputs")]


def _not_tokens(whole: Any, values: list[Content]) -> list[Content]:
    return [value for value, token in zip(values, _is_token(whole, "results"), strict=True) if not token]


def _open_conversions(ops: Iterable[Any]) -> tuple[str, ...]:
    """Return the assumptions about conversions of floats to integers, with the first places."""
    places = [
        str(place_of(op.location))
        for op in ops
        if op.name == CONVERT
        and isinstance(op.operands[0].type.element_type, ir.FloatType)
        and isinstance(op.results[0].type.element_type, ir.IntegerType)
        and op.results[0].type.element_type.width > 1  # to i1 any number but 0 is true, NaN too
    ]
    if not places:
        return ()
    more = ", ..." if len(places) > SHOWN else ""
    return (f"{OPEN} ({len(places)} place{'s' * (len(places) > 1)}: {', '.join(places[:SHOWN])}{more})",)


def _as_it_lies(want: Content, have: Content, side: Side) -> Side:
    """Return where the tiles of a result lie that no sharding names; ``side`` where the tiles do not show it."""
    shown = where_in(want, have, len(side.offsets))
    if shown is None:
        return side
    inside = (shown.offsets < np.array(side.shape, np.int64)).all(1)  # uneven tiles end before the last device
    starts = {tuple(row) for row in shown.offsets[inside].tolist()}
    every = set(product(*(range(0, size, tile or 1) for size, tile in zip(side.shape, side.tile, strict=True))))
    return replace(shown, named=False) if starts == every else side


def _words(side: Side) -> str:
    devices = range(min(len(side.offsets), SHOWN))
    places = ", ".join(f"at {side.offsets[device].tolist()} on device {device}" for device in devices)
    more = ", ..." if len(side.offsets) > SHOWN else ""
    return f"begins {places}{more}: no sharding in the programs says where"


def _body(module: Any) -> Any:
    return operation(main_of(module)).regions[0].blocks[0]


def _is_border(op: Any) -> bool:
    """Return whether a manual region begins at ``op``."""
    return op.name == REGION or custom_call_target(op) == TO_SHARD


def _whole_argument(term: int, side: Side, devices: int) -> Content:
    rank = len(side.shape)
    piece = full(term, np.eye(rank, dtype=np.int64), np.zeros((devices, rank), np.int64), side.shape)
    return Content(side.shape, side.element, (piece,))


def _argument(term: int, side: Side, devices: int) -> Content:
    rank = len(side.shape)
    piece = full(term, np.eye(rank, dtype=np.int64), side.offsets, side.tile)
    valid = piece.boxed(np.zeros(rank, np.int64), np.array(side.shape, np.int64) - side.offsets)
    return Content(side.tile, side.element, () if valid is None else (valid,))
