"""XLA's named form (V3), both ways: ``{mesh['x'=4,'y'=2], [{'x'}, {?}], unreduced={'y'}}``.

Source: NamedSharding and its parser in XLA (xla/hlo/ir/named_sharding.cc, hlo_parser.cc). XLA aborts its process on the
errors that this module raises: an axis unknown or used twice, a sub-axis that is none, neighbours that are one axis,
axes out of mesh order. XLA lets a mesh without meaning through; strict reading does not.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.axes import Axes, check_disjoint
from shardpass.sharding.errors import ShardingError, ShardingParseError, placed
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.model import Sharding
from shardpass.sharding.notations.metadata import RULES, metadata_of
from shardpass.sharding.notations.named_mesh import MeshText, mesh_of_tree
from shardpass.sharding.notations.source import Source
from shardpass.sharding.notations.trees import Node, first_offset, pieces, trees
from shardpass.sharding.notes import Kind, Notes

_INDEX = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)


def named_of(source: Source, tree: Node) -> Sharding:
    """Read the sharding of the named form.

    Raises:
        ShardingParseError: an axis or a mesh is not well formed.
    """
    metadata = tuple(
        entry for part in tree.iter_subtrees() if part.data in RULES for entry in metadata_of(source, part)
    )
    if tree.data == "maximal_mesh":
        device = source.one(pieces(tree)[1])
        notes = Notes(named=True, metadata=metadata, text=f"{{maximal_mesh[device_id={device}]}}")
        return Sharding(Kind.MAXIMAL, device=device, notes=notes)
    _check_stray(source, tree)
    (spec,) = (part for part in trees(tree) if part.data.startswith("spec_"))
    written, at = mesh_of_tree(source, tree), first_offset(tree)
    problem = written.problem(source, at)
    if problem is not None:
        if source.strict:
            raise problem
        return _without_meaning(source, written, spec, problem)
    mesh = written.mesh(source, at)
    shown = written.canonical_text(mesh, source, at)
    try:
        split = _checked(mesh, _split(source, mesh, spec))
    except ShardingParseError:
        raise
    except ShardingError as error:
        raise placed(error, source.text, first_offset(spec) or at) from None
    text, replicated = _text(shown, mesh, split), split.of("replicated")
    notes = Notes(text=text, metadata=metadata, open=split.open, replicated=replicated, named=True)
    unreduced, manual = split.of("unreduced"), split.of("manual")
    plain = Sharding.tiled(mesh, split.dims, unreduced=unreduced, manual=manual, reduction=split.reduction)
    return plain.replaced(notes=notes)


def named_text(sharding: Sharding) -> str:
    """Format a sharding over a mesh as V3 text.

    Raises:
        ShardingError: the sharding has no mesh, or subgroups that V3 has no word for.
    """
    mesh = sharding.mesh
    if mesh is None or sharding.maximal_axes:
        why = "the V3 notation needs the axes of a mesh, and this sharding has none"
        raise table.NO_TILES.error(sharding=str(sharding), why=why, hint="express it over a mesh first")
    by_word = {
        "replicated": sharding.notes.replicated, "unreduced": sharding.unreduced, "manual": sharding.manual,
    }  # fmt: skip
    return _text(str(mesh), mesh, _Split(sharding.dims, by_word, sharding.notes.open, sharding.reduction))


@dataclass(frozen=True, slots=True)
class _Split:
    """The part of the named form after the mesh.

    Attributes:
        dims: the axes that split each dimension.
        by_word: the axes of ``replicated={..}``, ``unreduced={..}`` and ``manual={..}``, in the order of the text.
        open: the dimensions that hold ``?``.
        reduction: the operation of ``unreduced``.
    """

    dims: tuple[Axes, ...] = ()
    by_word: Mapping[str, Axes] = field(default_factory=dict)
    open: tuple[int, ...] = ()
    reduction: str = "sum"

    def of(self, word: str) -> Axes:
        return self.by_word.get(word, ())


def _check_stray(source: Source, tree: Node) -> None:
    """Report the comma or name before the axes that XLA 0.10 swallows."""
    stray = next((part for part in trees(tree) if part.data == "stray"), None)
    commas: Node = next((token for token in pieces(tree) if token.type == "STRAY_COMMAS"), None)
    if stray is None and commas is None:
        return
    axes = next(part for part in trees(tree) if part.data == "mesh_axes")
    at = first_offset(stray) if stray is not None else commas.end_pos - 1
    if source.strict or not trees(axes):
        actual = str(stray.children[0]) if stray is not None else ","
        raise source.fault(
            table.SYNTAX, at, len(actual), expected="replicated, unreduced, manual or '['", found=repr(actual), hint=""
        )


# ------------------------------------------------------------------------------------- the axes


def _split(source: Source, mesh: Mesh, spec: Node) -> _Split:
    if spec.data == "spec_dims":
        return _split_of_dims(source, mesh, spec)
    word = str(spec.children[0]).rstrip("=")
    every = tuple(AxisRef(name) for name, _ in mesh.axes)
    if not every and word != "replicated":
        raise source.contradiction(first_offset(spec), f"a mesh without axes cannot be {word}", "write replicated")
    if spec.data == "spec_kind":
        return _Split() if word == "replicated" else _Split(by_word={word: every})
    if word != "unreduced":
        raise source.contradiction(first_offset(spec), f"{word} takes no reduction", "write unreduced=max")
    listed = [part for part in trees(spec) if part.data == "axes"]
    axes = _axes(source, mesh, listed[0]) if listed else every
    return _Split(by_word={"unreduced": axes}, reduction=str(spec.children[1]))


def _split_of_dims(source: Source, mesh: Mesh, spec: Node) -> _Split:
    dims: list[Axes] = []
    opened: list[int] = []
    by_word: dict[str, Axes] = {}
    reduction = "sum"
    for part in trees(spec):
        if part.data == "dim":
            if any(token.type == "OPEN" for token in pieces(part)):
                opened.append(len(dims))
                _check_open_last(source, part)
            dims.append(_axes(source, mesh, part))
        elif part.data == "axes_attr":
            word = str(part.children[0])[:-1]
            operation = [str(token) for token in pieces(part) if token.type == "REDUCTION"]
            if operation and word != "unreduced":
                raise source.contradiction(first_offset(part), f"{word} takes no reduction", "write unreduced=max{..}")
            reduction = operation[0] if operation else reduction
            by_word[word] = by_word.get(word, ()) + _axes(source, mesh, trees(part)[0])
    return _Split(tuple(dims), by_word, tuple(opened), reduction)


def _check_open_last(source: Source, dim: Node) -> None:
    place = [getattr(child, "type", "") for child in dim.children].index("OPEN")
    if place + 1 < len(dim.children):
        at = dim.children[place].start_pos
        raise source.contradiction(at, "'?' is not the last in its dimension", "write {'x', ?}")


def _axes(source: Source, mesh: Mesh, node: Node) -> Axes:
    return tuple(_axis(source, mesh, child) for child in trees(node))


def _axis(source: Source, mesh: Mesh, tree: Node) -> AxisRef:
    tokens = pieces(tree)
    name, at = source.string(tokens[0]), tokens[0].start_pos
    if name not in mesh.sizes and len(name) < 20 and _INDEX.fullmatch(name) and 0 <= int(name) < len(mesh.axes):
        name = mesh.axes[int(name)][0]
    numbers = [source.one(token) for token in tokens[1:]]
    try:
        axis = AxisRef(name, *numbers) if numbers else AxisRef(name)
        mesh.ref(axis)
        if numbers and not 1 < numbers[1] < mesh.sizes[name]:
            message = f"its size {numbers[1]} is not between 1 and {mesh.sizes[name]}, the size of {name!r}"
            raise table.SUB_AXIS.error(axis=str(axis), message=message)
    except ShardingError as error:
        raise placed(error, source.text, at, len(tokens[0])) from None
    return axis


def _checked(mesh: Mesh, split: _Split) -> _Split:
    """Check ``split`` by XLA's rules for a named sharding (VerifyNamedSharding), and return ``split``."""
    places = [(axes, f"dimension {k}") for k, axes in enumerate(split.dims)]
    places += [(axes, word) for word, axes in split.by_word.items()]
    check_disjoint(mesh, places, ones=True)
    for axes, where in places:
        _check_neighbours(axes, where)
    for word, axes in split.by_word.items():
        in_order = sorted(axes, key=lambda axis: (mesh.names.index(axis.name), axis.pre))
        if list(axes) != in_order:
            raise table.AXIS_ORDER.error(kind=word, order=", ".join(map(str, in_order)))
    _check_gaps([axis for axes, _ in places for axis in axes])
    return split


def _check_neighbours(axes: Axes, where: str) -> None:
    for major, minor in itertools.pairwise(axes):
        if major.name != minor.name or major.size is None or minor.size is None:
            continue
        if major.pre * major.size == minor.pre:
            joined = AxisRef(major.name, major.pre, major.size * minor.size)
            raise table.NEIGHBOURS.error(major=str(major), minor=str(minor), joined=str(joined), where=where)


def _check_gaps(axes: list[AxisRef]) -> None:
    """Check that the parts of an axis fit one common factorization of the axis."""
    for name in {axis.name for axis in axes}:
        parts = sorted((a.pre, a.pre * a.size) for a in axes if a.name == name and a.size is not None)
        for (_, high), (low, _) in itertools.pairwise(parts):
            if low % high:
                raise table.SUB_AXIS.error(
                    axis=repr(name), message=f"its parts begin at {low} and end at {high}, which does not divide {low}"
                )


def _text(mesh_text: str, mesh: Mesh, split: _Split) -> str:
    used = {word: axes for word, axes in split.by_word.items() if axes}
    operation = split.reduction if split.reduction != "sum" else ""
    if not split.dims:
        if not used:
            return f"{{{mesh_text}, replicated}}"
        for word in ("unreduced", "manual"):
            if word in used and math.prod(map(mesh.ref_size, used[word])) == mesh.size:
                return f"{{{mesh_text}, {word}{'=' + operation if word == 'unreduced' and operation else ''}}}"
    dims = []
    for k, axes in enumerate(split.dims):
        dims.append("{" + ", ".join([*map(str, axes), *(["?"] if k in split.open else [])]) + "}")
    text = f"{mesh_text}, [{', '.join(dims)}]"
    for word in ("replicated", "unreduced", "manual"):
        if word in used:
            text += f", {word}={operation if word == 'unreduced' else ''}{{{', '.join(map(str, used[word]))}}}"
    return "{" + text + "}"


# ------------------------------------------------------------------------------------- without meaning


def _without_meaning(source: Source, written: MeshText, spec: Node, problem: ShardingParseError) -> Sharding:
    """Make the sharding over a meaningless mesh that XLA keeps and prints."""
    names = [name for name, _ in written.axes]
    mesh = written.text_without_meaning()
    if mesh is None or len(set(names)) < len(names):
        raise problem
    stand_in = Mesh((name, size if size > 0 else 1 << 20) for name, size in written.axes)
    text = _text(mesh, stand_in, _checked(stand_in, _split(source, stand_in, spec)))
    return Sharding(Kind.TILED, notes=Notes(named=True, text=text, problems=problem.diagnostics))
