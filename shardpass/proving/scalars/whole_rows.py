"""Ops that need whole rows: one term for the input rows, and one for each element of the output rows.

Which dimensions are shared and which are needed whole follows from the labels of ``rules/blocks.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import numpy as np

from shardpass.ir.tensors import enum_word, ints
from shardpass.proving.relations.pieces import Ints
from shardpass.proving.rules import blocks
from shardpass.proving.scalars.walk import ScalarRule, ScalarSite, Value

Labels = Sequence[object]


def labelled(site: ScalarSite, operands: Sequence[Labels], results: Sequence[Labels], key: Hashable) -> list[Value]:
    """Relate an op whose dimensions are labelled; None labels a dimension that is needed whole."""
    result = []
    for index, labels in enumerate(results):
        shape = site.shape(index)
        if 0 in shape:
            result.append(site.result(np.zeros((site.devices, *shape), np.int64), index))
            continue
        shared = [label for label in labels if label is not None]
        sizes = [shape[d] for d, label in enumerate(labels) if label is not None]
        columns: list[Ints] = []
        structure = []
        for value, own in zip(site.operands, operands, strict=True):
            rows, whole = _rows(value, own, shared, sizes)
            structure.append((whole, value.element))
            columns += [rows[..., k] for k in range(rows.shape[-1])]
        place = (site.devices, *sizes)
        columns = [np.broadcast_to(c, place) for c in columns]
        whole_sizes = [shape[d] for d, label in enumerate(labels) if label is None]
        name = ("rows", key, index, site.element(index), tuple(whole_sizes), tuple(structure))
        number = site.table.rows(name, columns) if columns else np.full(place, site.table.one((*name, "alone")))
        count = int(np.prod(whole_sizes, dtype=np.int64))
        at = site.table.integers(np.arange(count, dtype=np.int64))
        full = (*place, count)
        ids = site.table.rows(
            ("element of rows",), [np.broadcast_to(number[..., None], full), np.broadcast_to(at, full)]
        ) if whole_sizes else number  # fmt: skip
        ids = ids.reshape(*place, *whole_sizes)
        order = [d for d, label in enumerate(labels) if label is not None]
        order += [d for d, label in enumerate(labels) if label is None]
        result.append(site.result(ids.transpose(0, *(1 + int(d) for d in np.argsort(order))), index))
    return result


def _rows(value: Value, own: Labels, shared: Sequence[object], sizes: Sequence[int]) -> tuple[Ints, tuple[int, ...]]:
    """Return [devices, shared dimensions or 1, the row], and the sizes of the dimensions of a row."""
    whole = [d for d, label in enumerate(own) if label is None or label not in shared]
    kept = [label for label in shared if label in own]
    order = [list(own).index(label) for label in kept] + whole
    ids = value.ids.transpose(0, *(d + 1 for d in order))
    place = [size if label in kept else 1 for label, size in zip(shared, sizes, strict=True)]
    return ids.reshape(len(ids), *place, -1), tuple(value.shape[d] for d in whole)


class _Labels:
    """What the rules of ``blocks`` ask of a site."""

    def __init__(self, site: ScalarSite) -> None:
        self.op, self.operands, self.walk, self._site = site.op, site.operands, site.walk, site

    def labelled(self, operands: Sequence[Labels], results: Sequence[Labels], key: Hashable) -> list[Value]:
        return labelled(self._site, operands, results, key)


def by_labels(rule: Callable[..., object]) -> ScalarRule:
    """Return the rule of ``blocks`` on scalar terms."""

    def result(site: ScalarSite) -> list[Value]:
        return rule(_Labels(site))  # type: ignore[return-value]

    return result


def fft(site: ScalarSite) -> list[Value]:
    """Relate a Fourier transform of several dimensions as one of each, the last one first."""
    kind, lengths = enum_word(site.op.attributes["fft_type"]), ints(site.op.attributes["fft_length"])
    if kind == "IRFFT":
        made: list[Value] = by_labels(blocks.fft)(site)
        return made
    (value,) = site.operands
    for back, length in enumerate(reversed(lengths), 1):
        labels = [None if d == value.rank - back else d for d in range(value.rank)]
        key = ("fft", "FFT" if back > 1 and kind == "RFFT" else kind, length)
        (value,) = labelled(replace(site, operands=[value]), [labels], [labels], key)
    return [value]


RULES: dict[str, ScalarRule] = {name: by_labels(rule) for name, rule in blocks.RULES.items()} | {"stablehlo.fft": fft}
