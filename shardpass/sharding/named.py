"""XLA's named form (V3): ``{mesh['x'=4,'y'=2], [{'x'}, {?}], unreduced={'y'}}``.

XLA aborts the process on what this refuses: an axis unknown or used twice, a sub-axis that is none, neighbours
that are one axis, kinds out of mesh order. A mesh that has no meaning it lets through; strict reading does not.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import numpy as np

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.axes import Axes, check_disjoint
from shardpass.sharding.digits import Ints
from shardpass.sharding.errors import ShardingError, ShardingParseError, placed
from shardpass.sharding.ill_formed import canonical
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.metadata import RULES, metadata_of
from shardpass.sharding.model import Sharding
from shardpass.sharding.notes import Kind, Notes
from shardpass.sharding.source import Node, Source, first_offset, pieces, trees

_INDEX = re.compile(r"\s*[+-]?[0-9]+\s*", re.ASCII)


def named_of(source: Source, tree: Node) -> Sharding:
    """The sharding of the named form.

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
    axes, shape, order = _mesh_parts(source, tree)
    at = first_offset(tree)
    problem = _mesh_problem(source, at, axes, shape)
    if problem is not None:
        if source.strict:
            raise problem
        return _loose(source, axes, shape, order, spec, problem)
    mesh = _mesh(source, at, axes, order)
    shown = _mesh_text(source, at, mesh, order if shape is None else None)
    try:
        made = _spec(source, mesh, spec)
    except ShardingParseError:
        raise
    except ShardingError as error:
        raise placed(error, source.text, first_offset(spec) or at) from None
    text = "{" + shown + str(made).removeprefix("{" + str(mesh))
    return made.replaced(notes=replace(made.notes, metadata=metadata, text=text))


def mesh_of_tree(source: Source, tree: Node) -> Mesh:
    """The mesh of its text alone; here device ids may count up."""
    axes, shape, order = _mesh_parts(source, tree)
    problem = _mesh_problem(source, 0, axes, shape)
    if problem is not None:
        raise problem
    try:
        return Mesh(axes, order)
    except ShardingError as error:
        raise placed(error, source.text, 0) from None


# ------------------------------------------------------------------------------------- the mesh

Axis = tuple[str, int]


def _mesh_parts(source: Source, tree: Node) -> tuple[list[Axis], tuple[list[int], list[int]] | None, Ints | None]:
    """Axes, the shape and transpose of an iota of device ids, and the device ids."""
    axes: list[Axis] = []
    for part in tree.iter_subtrees_topdown():
        if part.data == "mesh_axis":
            name, size = pieces(part)
            axes.append((_name(source, name), source.one(size)))
    for part in trees(tree):
        if part.data.startswith("ids_") and not axes:
            raise source.contradiction(
                first_offset(part), "a mesh without axes has no device ids", "leave out device_ids"
            )
        if part.data == "ids_list":
            listed = [token for token in pieces(part) if token.type == "INTS"]
            return axes, None, source.ints(listed[0]) if listed else np.array([], dtype=np.int64)
        if part.data == "ids_iota":
            shape, perm = _iota(source, part)
            if sorted(perm) != list(range(len(shape))) or min(shape) < 1 or math.prod(shape) != _size(axes):
                return axes, (shape, perm), None
            grid = np.arange(math.prod(shape)).reshape(shape).transpose(perm)
            return axes, (shape, perm), grid.reshape(-1)
    return axes, None, None


def _iota(source: Source, part: Node) -> tuple[list[int], list[int]]:
    tokens = pieces(part)
    shape = source.ints(tokens[1]).tolist()
    if (len(shape) == 1) != (len(tokens) == 2):
        hint = "write T(..) after an iota of several dimensions, and none after an iota of one"
        at = tokens[1].end_pos
        raise source.fault(
            table.SYNTAX, at, expected="T(..)" if len(shape) > 1 else "')'", found="something else", hint=hint
        )
    perm = source.ints(tokens[3]).tolist() if len(shape) > 1 else [0]
    if any(not 0 <= p < len(shape) for p in perm) or len(perm) != len(shape):
        shown = ",".join(map(str, perm))
        raise source.fault(table.TRANSPOSE, tokens[3].start_pos, len(shown), perm=shown, last=len(shape) - 1)
    return shape, perm


def _size(axes: list[Axis]) -> int:
    return math.prod(size for _, size in axes)


def _name(source: Source, token: Node) -> str:
    name = source.string(token)
    if source.strict and ("'" in name or "\\" in name):
        raise source.contradiction(
            token.start_pos, f"XLA prints the axis name {token} so that it cannot be read again",
            "choose a name without quotes and backslashes", len(token),
        )  # fmt: skip
    return name


def _mesh_problem(
    source: Source, at: int, axes: list[Axis], iota: tuple[list[int], list[int]] | None
) -> ShardingParseError | None:
    """What XLA lets through of a mesh that has no meaning."""
    for name, size in axes:
        if size < 1:
            return source.contradiction(at, f"axis {name!r} has the size {size}", "give each axis a size of at least 1")
    if iota is not None:
        shape, perm = iota
        if sorted(perm) != list(range(len(shape))):
            return source.fault(table.TRANSPOSE, at, perm=",".join(map(str, perm)), last=len(shape) - 1)
        if math.prod(shape) != _size(axes):
            hint = "write an iota that lists each device of the mesh once"
            return source.fault(table.IOTA_SIZE, at, tiles=_size(axes), devices=math.prod(shape), hint=hint)
    return None


def _mesh(source: Source, at: int, axes: list[Axis], order: Ints | None) -> Mesh:
    try:
        mesh = Mesh(axes, order)
    except ShardingError as error:
        raise placed(error, source.text, at) from None
    return mesh


def _mesh_text(source: Source, at: int, mesh: Mesh, listed: Ints | None) -> str:
    """A list of device ids stays a list; XLA dies on one that counts up."""
    if listed is None:
        return str(mesh)
    if mesh.is_iota:
        raise source.contradiction(at, "the device ids are 0, 1, 2.. already", "leave out device_ids")
    plain = str(Mesh(mesh.axes))
    return f"{plain}, device_ids=({','.join(map(str, listed.tolist()))})"


def _check_stray(source: Source, tree: Node) -> None:
    """XLA 0.10 eats one comma too many, or a name, before the axes."""
    stray = next((part for part in trees(tree) if part.data == "stray"), None)
    commas: Node = next((token for token in pieces(tree) if token.type == "STRAY_COMMAS"), None)
    if stray is None and commas is None:
        return
    axes = next(part for part in trees(tree) if part.data == "mesh_axes")
    at = first_offset(stray) if stray is not None else commas.end_pos - 1
    if source.strict or not trees(axes):
        found = str(stray.children[0]) if stray is not None else ","
        raise source.fault(
            table.SYNTAX, at, len(found), expected="replicated, unreduced, manual or '['", found=repr(found), hint=""
        )


# ------------------------------------------------------------------------------------- the axes


def _spec(source: Source, mesh: Mesh, spec: Node) -> Sharding:
    if spec.data == "spec_dims":
        return _dims(source, mesh, spec)
    word = str(spec.children[0]).rstrip("=")
    every = tuple(AxisRef(name) for name, _ in mesh.axes)
    if not every and word != "replicated":
        raise source.contradiction(first_offset(spec), f"a mesh without axes cannot be {word}", "write replicated")
    if spec.data == "spec_kind":
        return _made(mesh, (), {word: every} if word != "replicated" else {}, (), "sum")
    if word != "unreduced":
        raise source.contradiction(first_offset(spec), f"{word} takes no reduction", "write unreduced=max")
    reduction = str(spec.children[1])
    listed = [part for part in trees(spec) if part.data == "axes"]
    axes = _axes(source, mesh, listed[0]) if listed else every
    return _made(mesh, (), {"unreduced": axes}, (), reduction)


def _dims(source: Source, mesh: Mesh, spec: Node) -> Sharding:
    dims: list[Axes] = []
    opened: list[int] = []
    kinds: dict[str, Axes] = {}
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
            kinds[word] = kinds.get(word, ()) + _axes(source, mesh, trees(part)[0])
    return _made(mesh, tuple(dims), kinds, tuple(opened), reduction)


def _check_open_last(source: Source, dim: Node) -> None:
    place = [getattr(child, "type", "") for child in dim.children].index("OPEN")
    if place + 1 < len(dim.children):
        at = dim.children[place].start_pos
        raise source.contradiction(at, "'?' stands last in its dimension", "write {'x', ?}")


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


def _made(mesh: Mesh, dims: tuple[Axes, ...], kinds: dict[str, Axes], opened: tuple[int, ...], op: str) -> Sharding:
    """The sharding, with XLA's checks of a named sharding (VerifyNamedSharding) and its text."""
    places = [*((axes, f"dimension {k}") for k, axes in enumerate(dims)), *((a, word) for word, a in kinds.items())]
    check_disjoint(mesh, places)
    for axes, where in places:
        _check_neighbours(axes, where)
    for word, axes in kinds.items():
        in_order = sorted(axes, key=lambda a: (mesh.names.index(a.name), a.pre))
        if list(axes) != in_order:
            raise table.AXIS_ORDER.error(kind=word, order=", ".join(map(str, in_order)))
    _check_gaps(mesh, [axis for axes, _ in places for axis in axes])
    plain = Sharding.tiled(mesh, dims, unreduced=kinds.get("unreduced", ()), manual=kinds.get("manual", ()))
    notes = Notes(
        named=True, open=opened, replicated=kinds.get("replicated", ()), text=_text(mesh, dims, kinds, opened, op)
    )
    return plain.replaced(notes=notes, reduction=op)


def _check_neighbours(axes: Axes, where: str) -> None:
    for major, minor in itertools.pairwise(axes):
        if major.name != minor.name or major.size is None or minor.size is None:
            continue
        if major.pre * major.size == minor.pre:
            joined = AxisRef(major.name, major.pre, major.size * minor.size)
            raise table.NEIGHBOURS.error(major=str(major), minor=str(minor), joined=str(joined), where=where)


def _check_gaps(mesh: Mesh, axes: list[AxisRef]) -> None:
    """Parts of one axis must fit one factorisation of it."""
    for name in {axis.name for axis in axes}:
        parts = sorted((a.pre, a.pre * a.size) for a in axes if a.name == name and a.size is not None)
        for (_, high), (low, _) in itertools.pairwise(parts):
            if low % high:
                raise table.SUB_AXIS.error(
                    axis=repr(name), message=f"its parts begin at {low} and end at {high}, which does not divide {low}"
                )


def _text(mesh: Mesh, dims: tuple[Axes, ...], kinds: dict[str, Axes], opened: tuple[int, ...], op: str) -> str:
    used = {word: axes for word, axes in kinds.items() if axes}
    if not dims:
        if not used:
            return f"{{{mesh}, replicated}}"
        for word in ("unreduced", "manual"):
            if word in used and math.prod(map(mesh.ref_size, used[word])) == mesh.size:
                return f"{{{mesh}, {word}{'=' + op if word == 'unreduced' and op != 'sum' else ''}}}"
    shown = ", ".join(
        "{" + ", ".join([*map(str, axes), *(["?"] if k in opened else [])]) + "}" for k, axes in enumerate(dims)
    )
    text = f"{mesh}, [{shown}]"
    for word in ("replicated", "unreduced", "manual"):
        if word in used:
            how = op if word == "unreduced" and op != "sum" else ""
            text += f", {word}={how}{{{', '.join(map(str, used[word]))}}}"
    return "{" + text + "}"


def named_text(sharding: Sharding) -> str:
    """The V3 text of a sharding over a mesh.

    Raises:
        ShardingError: the sharding has no mesh, or subgroups that V3 has no word for.
    """
    mesh = sharding.mesh
    if mesh is None or sharding.maximal_axes:
        why = "the V3 notation needs the axes of a mesh, and this sharding has none"
        raise table.NO_TILES.error(sharding=str(sharding), why=why, hint="express it over a mesh first")
    kinds = {
        "replicated": sharding.notes.replicated, "unreduced": sharding.unreduced, "manual": sharding.manual,
    }  # fmt: skip
    return _text(mesh, sharding.dims, kinds, sharding.notes.open, sharding.reduction)


# ------------------------------------------------------------------------------------- without meaning


def _loose(
    source: Source, axes: list[Axis], iota: tuple[list[int], list[int]] | None, order: Ints | None, spec: Node,
    problem: ShardingParseError,
) -> Sharding:  # fmt: skip
    """A mesh without meaning, as XLA keeps it: the text alone."""
    names = [name for name, _ in axes]
    if len(set(names)) < len(names):
        raise problem
    stand_in = Mesh((name, size if size > 0 else 1 << 20) for name, size in axes)
    made = _spec(source, stand_in, spec)
    shape = ",".join(f"'{name}'={size}" for name, size in axes)
    mesh = f"mesh[{shape}]"
    if iota is not None:
        short, perm = canonical(list(iota[0]), list(iota[1]))
        if len(short) > 1:
            mesh += f", device_ids=([{','.join(map(str, short))}]T({','.join(map(str, perm))}))"
    elif order is not None:
        raise problem
    text = str(made).replace(str(stand_in), mesh, 1)
    return Sharding(Kind.TILED, notes=Notes(named=True, text=text, problems=problem.diagnostics))
