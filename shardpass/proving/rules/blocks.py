"""Ops that need whole rows: operands and results share some dimensions, and a device needs all elements along the
others.

A row of the table says, for each dimension of each operand and result, the label of the dimension it is shared as, or
None for one that is needed whole. Example: a sort along dimension 1 of f32[8, 6] has ("i", None) everywhere: each row
is sorted by itself, and a tile of rows is sorted as the rows are. The term names the op, the operands' terms, how rows
lie in them, and the position in the result; it is the same for the whole program and for a tile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from shardpass.ir.annotations import custom_call_target
from shardpass.ir.tensors import ints
from shardpass.proving.relations.combine import cells, combine
from shardpass.proving.relations.evaluate import Rule, Site, Unknown, type_of
from shardpass.proving.relations.pieces import Content, Piece, full, made, tidy
from shardpass.proving.relations.terms import Key, Terms
from shardpass.proving.rules.bodies import functions_key, region_key
from shardpass.proving.rules.contraction import kept_boxes, met
from shardpass.proving.rules.elementwise import attribute_text, key_of
from shardpass.proving.rules.integers import Box

Labels = Sequence[object]
SOLVE = re.compile(r"lapack_[sdcz]trsm_ffi")
HOW, CONFIGURATION = "mhlo.backend_config", "backend_config"
ALIASES, CALLED = "output_operand_aliases", "called_computations"
_USUAL = (("has_side_effect", "false"),)
_OF_CALLS = (HOW, CONFIGURATION, "api_version", CALLED, ALIASES)  # aliases are promises
SIDE_OF_SOLVE = re.compile(r"\bside = (\d+) : ui8")


def blockwise(
    site: Site, operands: Sequence[Labels], results: Sequence[Labels], key: Key, given: Sequence[Content] | None = None
) -> list[Content]:
    """Relate an op whose dimensions are labelled; ``key`` says what the op does with unlabelled dimensions.

    A site of scalar terms has a way of its own. What an op computes may depend on the types of all results: random bits
    advance their state by as many as they are.
    """
    types = [type_of(result) for result in site.op.results]
    needed_whole = tuple(
        (element, tuple(size for size, label in zip(shape, labels, strict=True) if label is None))
        for (shape, element), labels in zip(types, results, strict=True)
    )
    key = (key, needed_whole)
    if not isinstance(site, Site):
        found_there: list[Content] = site.labelled(operands, results, key)
        return found_there
    contents = site.operands if given is None else given
    answer = []
    for index, labels in enumerate(results):
        shape, _ = types[index]
        if 0 in shape:
            answer.append(site.result([], index))
            continue
        groups: list[list[Piece]] = []
        hows: dict[int, Key] = {}
        for content, own in zip(contents, operands, strict=True):
            whole = [d for d, label in enumerate(own) if label is None or label not in labels]
            groups.append([])
            for piece, how in _rows(site.terms, content, whole):
                groups[-1].append(_placed(piece, own, whole, labels, shape))
                hows[id(groups[-1][-1])] = how
        positions = [_position(site, shape, d) for d, label in enumerate(labels) if label is None]
        parts = []
        for chosen, box in cells([*groups, *([p] for p in positions)]):
            structure = tuple(hows[id(p)] for p in chosen[: len(groups)])
            parts.append(combine(site.terms, ("rows", key, index, structure), chosen, box))
        if not groups and not positions:
            raise Unknown("it has neither operands nor dimensions")
        answer.append(site.result(parts, index))
    return answer


def _rows(terms: Terms, content: Content, whole: Sequence[int]) -> list[tuple[Piece, Key]]:
    """Return pieces with all of the dimensions ``whole``, and how the rows lie in the term of each."""
    pieces = list(content.pieces)
    if not all(_holds_all(p, content, whole) for p in pieces):
        pieces = patched(terms, content, whole)
    sizes = tuple(content.shape[d] for d in whole)
    return [
        (p, (sizes, tuple(tuple(p.a[:, d].tolist()) if content.shape[d] > 1 else () for d in whole), content.element))
        for p in pieces
    ]


def _holds_all(piece: Piece, content: Content, whole: Sequence[int]) -> bool:
    size = np.array(content.shape, np.int64)[list(whole)]
    lo, hi = piece.lo[piece.on][:, list(whole)], piece.hi[piece.on][:, list(whole)]
    return bool((lo == 0).all() and (hi == size).all())


def patched(terms: Terms, content: Content, whole: Sequence[int]) -> list[Piece]:
    """Join pieces that lie side by side along ``whole`` into one term, for each box of the other dimensions.

    The parts are the same on all devices that have the box.
    """
    if not content.pieces or not content.covered():
        raise Unknown("part of the rows that it needs is not known")
    result = []
    for box in kept_boxes(content, whole):
        parts = tidy([made(p.term, p.a, p.b, *met(p, box)) for p in content.pieces])
        if len(parts) == 1 and (parts[0].on == box[2]).all() and _holds_all(parts[0], content, whole):
            result.append(parts[0])
        else:
            result.append(_patched_box(terms, content, whole, box, parts))
    return result


def _patched_box(terms: Terms, content: Content, whole: Sequence[int], box: Box, pieces: Sequence[Piece]) -> Piece:
    lo, hi, on = box
    rest = [d for d in range(content.rank) if d not in whole]
    rows = []
    for p in pieces:
        first, last = p.lo[p.on], p.hi[p.on]
        steady = all((e[:, whole] == e[:1, whole]).all() for e in (first, last)) and (p.on == on).all()
        if not steady or (p.lo[on][:, rest] != lo[on][:, rest]).any() or (p.hi[on][:, rest] != hi[on][:, rest]).any():
            raise Unknown("its rows are patched of parts that differ from device to device")
        a = p.a.copy()
        columns = tuple(tuple(p.a[:, d].tolist()) if content.shape[d] > 1 else () for d in whole)
        a[:, list(whole)] = 0
        place = (tuple(first[0, list(whole)].tolist()), tuple(last[0, list(whole)].tolist()), columns)
        rows.append((place, Piece(p.term, a, p.b, *box)))
    rows.sort(key=lambda row: row[0][:2])
    positions = []
    for d in whole:
        a = np.zeros((1, content.rank), np.int64)
        a[0, d] = 1
        positions.append(full(terms.position, a, np.zeros((len(on), 1), np.int64), content.shape))
    key = ("patched", tuple(place for place, _ in rows), content.element)
    return combine(terms, key, [*(p for _, p in rows), *positions], box)


def _placed(piece: Piece, own: Labels, whole: Sequence[int], labels: Labels, shape: Sequence[int]) -> Piece:
    """Return ``piece`` in the dimensions of the result, without its whole dimensions."""
    rank = len(shape)
    a = np.zeros((len(piece.a), rank), np.int64)
    lo = np.zeros((len(piece.on), rank), np.int64)
    hi = np.broadcast_to(np.array(shape, np.int64), lo.shape).copy()
    for d, label in enumerate(own):
        if d not in whole:
            to = list(labels).index(label)
            a[:, to] += piece.a[:, d]
            lo[:, to], hi[:, to] = np.maximum(lo[:, to], piece.lo[:, d]), np.minimum(hi[:, to], piece.hi[:, d])
    return Piece(piece.term, a, piece.b, lo, hi, piece.on & (lo < hi).all(1))


def _position(site: Site, shape: Sequence[int], dim: int) -> Piece:
    piece = site.walk.everywhere(site.terms.position, np.zeros((site.devices, 1), np.int64), shape)
    piece.a[0, dim] = 1
    return piece


# ---------------------------------------------------------------- keys


def name_and(op: Any, *names: str) -> Key:
    return (op.name, *((name, attribute_text(op, name)) for name in names if name in op.attributes))


def call_key(op: Any, functions: Mapping[str, Any]) -> Key:
    """Return a key for the computation of an op.

    Of a custom call that has its configuration, which has two places, its layouts, and what the functions compute that
    it calls.
    """
    if op.name != "stablehlo.custom_call":
        return key_of(op)
    name, attributes, *_ = key_of(op)
    kept = tuple(row for row in attributes if row[0] not in _OF_CALLS and row not in _USUAL)
    typed = HOW in op.attributes or isinstance(op.attributes.get(CONFIGURATION), ir.DictAttr)
    version = "typed" if typed else attribute_text(op, "api_version") if "api_version" in op.attributes else ""
    called = [name.value for name in op.attributes[CALLED]] if CALLED in op.attributes else []
    return (name, kept, version, _configuration(op), functions_key(called, functions))


def _configuration(op: Any) -> str:
    texts = [attribute_text(op, name) for name in (CONFIGURATION, HOW) if name in op.attributes]
    return "; ".join(text for text in texts if text != '""')


def everything(site: Site) -> list[Content]:
    """Relate an op for which every device needs all of each operand."""
    operands = [[None] * c.rank for c in site.operands]
    results = [[None] * len(type_of(r)[0]) for r in site.op.results]
    return blockwise(site, operands, results, (call_key(site.op, site.walk.functions), region_key(site.op)))


def leading_batch(site: Site) -> list[Content]:
    """Relate LAPACK's calls on matrices: all dimensions before the matrix of the first operand are a batch.

    Of a triangular solve, a x = b, each column of b is solved by itself; of x a = b each row.
    """
    batch = site.operands[0].rank - 2
    side = _side(site) if len(site.operands) == 2 and len(site.op.results) == 1 else ""
    if side:
        leading: list[object] = list(range(batch))
        of_b = [*leading, None, "free"] if side == "L" else [*leading, "free", None]
        return blockwise(site, [[*leading, None, None], of_b], [of_b], call_key(site.op, site.walk.functions))

    def labels(rank: int) -> Labels:
        return [d if d < batch else None for d in range(rank)]

    results = [labels(len(type_of(r)[0])) for r in site.op.results]
    return blockwise(site, [labels(c.rank) for c in site.operands], results, call_key(site.op, site.walk.functions))


def _side(site: Site) -> str:
    """Return L or R, the side on which the matrix of a triangular solve stands; empty for other calls."""
    if not SOLVE.fullmatch(custom_call_target(site.op) or ""):
        return ""
    side = SIDE_OF_SOLVE.search(_configuration(site.op))
    return {"76": "L", "82": "R"}.get(side[1], "") if side else ""


# ---------------------------------------------------------------- ops


def sort(site: Site) -> list[Content]:
    dim = int(site.op.attributes["dimension"].value)
    labels = [None if d == dim else d for d in range(site.operands[0].rank)]
    stable = "is_stable" in site.op.attributes and attribute_text(site.op, "is_stable") == "true"
    key = (site.op.name, stable, region_key(site.op))
    return blockwise(site, [labels] * len(site.operands), [labels] * len(site.operands), key)


def last_dimensions(count: int) -> Rule:
    """Return the rule of ops on the last ``count`` dimensions of every operand and result."""

    def rule(site: Site) -> list[Content]:
        def labels(rank: int) -> Labels:
            return [d if d < rank - count else None for d in range(rank)]

        results = [labels(len(type_of(r)[0])) for r in site.op.results]
        return blockwise(site, [labels(c.rank) for c in site.operands], results, key_of(site.op))

    return rule


def fft(site: Site) -> list[Content]:
    return last_dimensions(len(ints(site.op.attributes["fft_length"])))(site)


def triangular_solve(site: Site) -> list[Content]:
    a = site.operands[0]
    left = str(site.op.attributes["left_side"]) == "true"
    leading: list[object] = list(range(a.rank - 2))
    of_b = [*leading, None, "free"] if left else [*leading, "free", None]
    return blockwise(site, [[*leading, None, None], of_b], [of_b], key_of(site.op))


def reduce_rows(site: Site) -> list[Content]:
    """Relate reductions of several operands at once, or by bodies of several ops."""
    dims = ints(site.op.attributes["dimensions"])
    half = len(site.operands) // 2
    labels = [None if d in dims else d for d in range(site.operands[0].rank)]
    kept = [d for d in labels if d is not None]
    scalars: list[Labels] = [[] for _ in range(half)]
    return blockwise(site, [*([labels] * half), *scalars], [kept] * half, (site.op.name, region_key(site.op)))


def reduce_window(site: Site) -> list[Content]:
    half = len(site.operands) // 2
    rank = site.operands[0].rank
    attributes = site.op.attributes
    still = [True] * rank
    for name, neutral in (
        ("window_dimensions", 1),
        ("window_strides", 1),
        ("base_dilations", 1),
        ("window_dilations", 1),
    ):
        if name in attributes:
            still = [s and n == neutral for s, n in zip(still, ints(attributes[name]), strict=True)]
    if "padding" in attributes:
        rows = np.array(attributes["padding"]).reshape(-1, 2)
        still = [s and not row.any() for s, row in zip(still, rows, strict=True)]
    labels = [d if s else None for d, s in enumerate(still)]
    moving = tuple(d for d, s in enumerate(still) if not s)
    how = tuple(
        (name, tuple(np.array(attributes[name]).reshape(rank, -1)[list(moving)].ravel().tolist()))
        for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
        if name in attributes
    )
    scalars: list[Labels] = [[] for _ in range(half)]
    return blockwise(site, [*([labels] * half), *scalars], [labels] * half, (site.op.name, how, region_key(site.op)))


def select_and_scatter(site: Site) -> list[Content]:
    rank = site.operands[0].rank
    attributes = site.op.attributes
    still = (
        [n == 1 for n in ints(attributes["window_dimensions"])] if "window_dimensions" in attributes else [True] * rank
    )
    if "window_strides" in attributes:
        still = [s and n == 1 for s, n in zip(still, ints(attributes["window_strides"]), strict=True)]
    if "padding" in attributes:
        still = [
            s and not row.any() for s, row in zip(still, np.array(attributes["padding"]).reshape(-1, 2), strict=True)
        ]
    labels = [d if s else None for d, s in enumerate(still)]
    moving = [d for d, s in enumerate(still) if not s]
    how = tuple(
        (name, tuple(np.array(attributes[name]).reshape(rank, -1)[moving].ravel().tolist()))
        for name in ("window_dimensions", "window_strides", "padding")
        if name in attributes
    )
    return blockwise(site, [labels, labels, []], [labels], (site.op.name, how, region_key(site.op)))


def top_k(site: Site) -> list[Content]:
    labels = [*range(site.operands[0].rank - 1), None]
    key = (*order_of_top_k(site.op), attribute_text(site.op, "k"))
    return blockwise(site, [labels], [labels] * len(site.op.results), key)


def order_of_top_k(op: Any) -> Key:
    """Return which elements come first, for CHLO's and MHLO's op alike."""
    least = "largest" in op.attributes and attribute_text(op, "largest") == "false"
    return ("top_k", "from the least on") if least else ("top_k",)


def map_(site: Site) -> list[Content]:
    labels = list(range(site.operands[0].rank))
    return blockwise(site, [labels] * len(site.operands), [labels], (site.op.name, region_key(site.op)))


def batch_norm(of_operands: str, of_results: str, *, whole: bool = True) -> Rule:
    """Return the rule of batch norms: "x" for operands and results of the whole shape, "f" for vectors of features.

    ``whole``: a device needs all of the other dimensions, over which the op takes means.
    """

    def rule(site: Site) -> list[Content]:
        feature = int(site.op.attributes["feature_index"].value)
        big = ["f" if d == feature else None if whole else d for d in range(site.operands[0].rank)]
        where: dict[str, Labels] = {"x": big, "f": ["f"]}
        key = (*name_and(site.op, "epsilon"), feature)
        return blockwise(site, [where[c] for c in of_operands], [where[c] for c in of_results], key)

    return rule


def either(first: Rule, second: Rule) -> Rule:
    """Return a rule that tries the first rule, and the second where the first does not apply."""

    def rule(site: Site) -> list[Content]:
        try:
            answer = first(site)
        except Unknown:
            return second(site)
        return answer if any(c.pieces for c in answer) else second(site)

    return rule


RULES: dict[str, Rule] = {
    "stablehlo.sort": sort,
    "stablehlo.fft": fft,
    "stablehlo.cholesky": last_dimensions(2),
    "stablehlo.triangular_solve": triangular_solve,
    "stablehlo.select_and_scatter": select_and_scatter,
    "stablehlo.map": map_,
    "stablehlo.rng_bit_generator": everything,
    "stablehlo.torch_index_select": everything,
    "stablehlo.einsum": everything,
    "chlo.top_k": top_k,
    "mhlo.topk": top_k,
    "stablehlo.batch_norm_training": batch_norm("xff", "xff"),
    "stablehlo.batch_norm_inference": batch_norm("xffff", "x", whole=False),
    "stablehlo.batch_norm_grad": batch_norm("xfffx", "xff"),
}
