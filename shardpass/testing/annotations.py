"""The annotations of a program: shardings of arguments and results, constraints and their lines, casts to wider
floats.

The line of a collective is where its bytes are needed. The cause may be elsewhere: a spec that lost an axis, a new
constraint, a cast. So a budget contains the annotations of its program, and the report of a program over its budget
lists those that differ.

Example: ``params['w_out']`` lost its axis, and a constraint was added:

    train.py:20: constraint of h: f16[32,256] P('data', None) is new
    argument params['w_out']: f16[256,64] P('model', None) became f16[256,64] P(None, None)

Complexity: O(ops + arguments), and one import of the module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from shardpass.advise.place.sites import Reading, Site, Sites, read
from shardpass.advise.place.specs import full_text
from shardpass.diagnostics import NOWHERE, Place, ShardpassError
from shardpass.ir.doors import Given
from shardpass.program.program import Array
from shardpass.report.collectives import Annotation
from shardpass.report.naming import Sources
from shardpass.report.rows import short

_FLOATS = ("bf", "f")
_ORDER = ("constraint", "cast")  # those with lines come first


def annotations_of(data: Given, file: str, folders: Iterable[Path] | None = None) -> tuple[Annotation, ...]:
    """Return the annotations of an unpartitioned program; () if the module cannot be imported."""
    try:
        reading = read(data, file, Sources(None if folders is None else list(folders)), trusted=False)
        sites = Sites(reading)
    except ShardpassError:
        return ()
    signature = [_annotation(f"argument {one.pattern}", one) for one in sites.arguments]
    signature += [_annotation(one.pattern, one) for one in sites.results]
    constraints = [_annotation(f"constraint of {one.pattern}", one) for one in sites.constraints]
    return (*signature, *constraints, *_casts(reading))


def _annotation(what: str, site: Site) -> Annotation:
    spec = "" if site.spec is None else f" {full_text(site.spec)}"
    return Annotation(what, f"{_type(site.array)}{spec}", _lines(site.place, *(one.place for one in site.calls[:1])))


def _casts(reading: Reading) -> Iterator[Annotation]:
    """Yield each source line that converts floats to a wider type once, except lines of the backward pass."""
    program, names = reading.program, reading.names
    found: dict[tuple[str, str, Place], None] = {}
    for op in program.body.every_op():
        if op.name != "stablehlo.convert" or names.is_backward(op):
            continue
        before, after = program.arrays[op.operands[0]], program.arrays[op.results[0]]
        place = names.frame(op).place
        if before is None or after is None or place == NOWHERE:
            continue
        if after.bytes > before.bytes and str(before.element).startswith(_FLOATS):
            found[names.of(op.results[0]), f"{before.element} to {after.element}", Place(place.file, place.line)] = None
    for name, says, place in found:
        yield Annotation(f"cast of {name}" if name else "cast", says, _lines(place))


def _type(array: Array) -> str:
    return f"{array.element}[{','.join(map(str, array.shape))}]"


def _lines(*places: Place) -> tuple[str, ...]:
    return tuple(dict.fromkeys(short(Place(one.file, one.line)) for one in places if one != NOWHERE))


def changed(before: Iterable[Annotation], now: Iterable[Annotation]) -> tuple[str, ...]:
    """Return a sentence for each annotation that differs in more than name or line."""
    old, new = list(before), list(now)
    kept = Counter((one.what, one.says) for one in old) & Counter((one.what, one.says) for one in new)
    gone, come = _without(old, kept), _without(new, kept)
    shown: list[tuple[int, str]] = []
    for one in come:
        was = next((other for other in gone if other.what == one.what), None)
        renamed = next((other for other in gone if (other.kind, other.says) == (one.kind, one.says)), None)
        if was is not None or renamed is not None:
            gone.remove(was or renamed)  # type: ignore[arg-type]
        if was is not None:
            shown.append(_sentence(one, _became(was.says, one.says)))
        elif renamed is None:
            shown.append(_sentence(one, f"{one.says} is new"))
    shown += [_sentence(one, f"{one.says} is gone") for one in gone]
    return tuple(text for _, text in sorted(shown, key=lambda row: row[0]))


def _became(before: str, now: str) -> str:
    """Return the changed part, type or spec; equal parts appear once."""
    (old, _, old_spec), (new, _, spec) = before.partition(" "), now.partition(" ")
    if old == new:
        return f"{old}: {old_spec or 'no spec'} became {spec or 'no spec'}"
    return f"{old} became {new}" if old_spec == spec else f"{before} became {now}"


def _without(some: Iterable[Annotation], kept: Counter[tuple[str, str]]) -> list[Annotation]:
    left, rest = Counter(kept), []
    for one in some:
        if left[one.what, one.says]:
            left[one.what, one.says] -= 1
        else:
            rest.append(one)
    return rest


def _sentence(one: Annotation, words: str) -> tuple[int, str]:
    where = f"{', '.join(one.lines)}: " if one.lines else ""
    return (_ORDER.index(one.kind) if one.kind in _ORDER else len(_ORDER)), f"{where}{one.what}: {words}"


def read_annotation(text: str) -> Annotation:
    """Read the text that ``str`` of an annotation produced."""
    rest, lines = text, ""
    if text.startswith(_ORDER):
        rest, _, lines = text.rpartition(" at ") if " at " in text else (text, "", "")
    what, _, says = rest.rpartition(": ")
    return Annotation(what, says, tuple(filter(None, lines.split(", "))))
