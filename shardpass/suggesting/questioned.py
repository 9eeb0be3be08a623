"""The user's own annotations of arguments and results, where no splits beside them keep the limit of memory.

Problem: ``suggest`` keeps what the user annotated. Momentum that is annotated over one axis of two may be what a device
has no memory for, and then no annotation of anything else helps.

Method: the program is asked about again without its annotations of main's arguments and results; constraints inside of
it stay. What the answer has as the user wrote it is left out of the advice, and what it has otherwise says in place of
which annotation it stands.

Example on d=4, m=2, of ``m = P(None, 'm')``: ``m = P('d', 'm')  # in place of P(None, 'm')``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from shardpass.ir.annotations import ANNOTATIONS, Signature, main_of
from shardpass.ir.context import copy_module
from shardpass.program.program import Program
from shardpass.suggesting.places import ARGUMENT, RESULT
from shardpass.suggesting.report import Advice, Suggestion
from shardpass.suggesting.specs import spec_text
from shardpass.suggesting.trials import Annotation

Written = Mapping[tuple[str, int], str]  # kind and value, as those of ``Group``: the text of the annotation


def written(program: Program) -> Written:
    """Returns the annotations of main's arguments and results, of arrays with dimensions."""
    body, annotated = program.body, program.annotations
    rows = [((ARGUMENT, value), value, annotated[value]) for value in body.arguments if value in annotated]
    for place, (value, row) in enumerate(zip(body.returned, program.result_annotations, strict=True)):
        rows.append(((RESULT, place), value, row))
    texts = {}
    for key, value, row in rows:
        array = program.arrays[value]
        if row.sharding is not None and array is not None and array.rank:
            dims = program.mesh.dims(row.sharding, array.rank)
            if dims is not None:
                texts[key] = spec_text(dims, program.mesh)
    return texts


def without_annotations(imported: Any) -> Any:
    """Returns a copy of the module ``imported`` without the annotations of main's arguments and results."""
    module = copy_module(imported)
    with module.context, ir.Location.unknown():
        signature = Signature(main_of(module))
        for row in (*signature.arguments, *signature.results):
            for name in ANNOTATIONS:
                row.pop(name, None)
        signature.write()
    return module


def named(every: Iterable[Annotation], few: Sequence[Annotation], annotations: Written) -> list[Annotation]:
    """Lists those of ``every`` that are not among ``few``, of groups with a value that the user annotated."""
    return [
        one
        for one in every
        if one not in few and any((one.group.kind, value) in annotations for value in one.group.values)
    ]


def beside(suggestion: Suggestion, annotations: Written) -> Suggestion:
    """Returns ``suggestion`` as a change of the user's ``annotations``."""
    return replace(suggestion, advice=tuple(_changes(suggestion.advice, annotations)))


def _changes(advice: tuple[Advice, ...], annotations: Written) -> Iterator[Advice]:
    for one in advice:
        group = one.annotation.group
        before = [annotations.get((group.kind, value)) for value in group.values]
        texts = list(dict.fromkeys(text for text in before if text is not None))
        if not texts:
            yield one
        elif texts != [one.spec] or None in before:
            yield replace(one, note=f"in place of {', '.join(texts)}", instead=tuple(texts))
