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

from jaxlib.mlir import ir

from shardpass.advise.place.sites import Reading, Sites
from shardpass.advise.place.specs import full_text
from shardpass.advise.place.write import Change
from shardpass.advise.suggest.report import Advice, Suggestion
from shardpass.ir.annotations import ANNOTATIONS, Signature, main_of
from shardpass.ir.context import copy_module
from shardpass.program.read import read_program

Written = Mapping[tuple[str, int], str]  # kind and place in the signature: the text of the annotation


def written(sites: Sites) -> Written:
    """Return the annotations of main's arguments and results, of arrays with dimensions."""
    every = (site for site in (*sites.arguments, *sites.results) if site.spec is not None)
    return {(site.kind, place): full_text(site.spec or ()) for site in every for place in site.positions}


def without_annotations(reading: Reading) -> Reading:
    """Return a copy of an imported program without the annotations of main's arguments and results."""
    module = copy_module(reading.module)
    with module.context, ir.Location.unknown():
        signature = Signature(main_of(module))
        for row in (*signature.arguments, *signature.results):
            for name in ANNOTATIONS:
                row.pop(name, None)
        signature.write()
        program, handles = read_program(module, "propagate")
    return replace(reading, module=module, program=program, handles=handles)


def named(every: Iterable[Change], few: Sequence[Change], annotations: Written) -> list[Change]:
    """List those of ``every`` that are not among ``few``, of sites with a place that the user annotated."""
    return [
        one
        for one in every
        if one not in few and any((one.site.kind, place) in annotations for place in one.site.positions)
    ]


def beside(suggestion: Suggestion, annotations: Written) -> Suggestion:
    """Return ``suggestion`` as a change of the user's ``annotations``."""
    return replace(suggestion, advice=tuple(_changes(suggestion.advice, annotations)))


def _changes(advice: tuple[Advice, ...], annotations: Written) -> Iterator[Advice]:
    for one in advice:
        site = one.annotation.site
        before = [annotations.get((site.kind, place)) for place in site.positions]
        texts = list(dict.fromkeys(text for text in before if text is not None))
        if not texts:
            yield one
        elif texts != [one.spec] or None in before:
            yield replace(one, note=f"in place of {', '.join(texts)}", instead=tuple(texts))
