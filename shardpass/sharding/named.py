"""XLA's named form (V3): ``{mesh['x'=4,'y'=2], [{'x'}, {?}], unreduced={'y'}}``."""

from __future__ import annotations

from dataclasses import replace

from lark import Token
from lark import Tree as LarkTree

from shardpass.diagnostics import table_sharding as table
from shardpass.sharding.errors import ShardingError, ShardingParseError, fault
from shardpass.sharding.mesh import AxisRef, Mesh
from shardpass.sharding.metadata import metadata_of
from shardpass.sharding.model import PLAIN, Axes, Kind, Notes, Sharding, check_disjoint, in_mesh_order

Tree = LarkTree[Token]


def named_of(text: str, tree: Tree, strict: bool) -> Sharding:
    """The sharding of the named form; XLA aborts the process on most of what is refused here."""
    metadata: tuple[str, ...] = ()
    for child in tree.children:
        if isinstance(child, LarkTree) and child.data in ("one_metadata", "no_metadata", "list_metadata"):
            metadata = metadata_of(text, child)
    if tree.data == "maximal_mesh":
        device = int(_token(tree.children[3] if len(tree.children) > 3 else tree.children[1]))
        notes = Notes(named=True, metadata=metadata, text=f"{{maximal_mesh[device_id={device}]}}")
        return Sharding(Kind.MAXIMAL, device=device, notes=notes)
    parts = [child for child in tree.children if isinstance(child, LarkTree)]
    mesh = mesh_of_tree(text, tree)
    (spec,) = (part for part in parts if part.data in ("spec_kind", "spec_dims"))
    attrs = [part for part in parts if part.data == "axes_attr"]
    try:
        return _spec(mesh, spec, attrs, metadata)
    except ShardingParseError:
        raise
    except ShardingError as error:
        at = _first(spec)
        raise fault(table.CONTRADICTION, text, at, message=error.diagnostics[0].message,
                    hint=error.diagnostics[0].remedy) from None  # fmt: skip


def _spec(mesh: Mesh, spec: Tree, attrs: list[Tree], metadata: tuple[str, ...]) -> Sharding:
    notes = Notes(named=True, metadata=metadata)
    if spec.data == "spec_kind":
        kind = str(spec.children[0])
        notes = replace(notes, text=f"{{{mesh}, {kind}}}")
        every = tuple(AxisRef(name) for name, size in mesh.axes if size > 1)
        if kind == "manual":
            return Sharding(Kind.TILED, mesh, manual=every, notes=notes)
        if kind == "unreduced":
            return Sharding(Kind.TILED, mesh, unreduced=every, notes=notes)
        return Sharding(Kind.TILED, mesh, notes=notes)
    dims: list[Axes] = []
    opened: list[int] = []
    for dim in spec.children:
        if not isinstance(dim, LarkTree):
            continue
        dims.append(_axes(mesh, dim))
        if any(isinstance(child, Token) and child.type == "OPEN" for child in dim.children):
            opened.append(len(dims) - 1)
    by_kind = {str(a.children[0])[:-1]: _axes(mesh, a) for a in attrs}
    places = [(axes, f"dimension {k}") for k, axes in enumerate(dims)]
    check_disjoint(mesh, [*places, *((axes, kind) for kind, axes in by_kind.items())])
    plain = Sharding.tiled(mesh, dims, unreduced=by_kind.get("unreduced", ()), manual=by_kind.get("manual", ()))
    replicated = in_mesh_order(mesh, by_kind.get("replicated", ()))
    notes = replace(notes, open=tuple(opened), replicated=replicated)
    made = Sharding(Kind.TILED, mesh, plain.dims, unreduced=plain.unreduced, manual=plain.manual, notes=notes)
    return Sharding(
        Kind.TILED, mesh, plain.dims, unreduced=plain.unreduced, manual=plain.manual,
        notes=replace(notes, text=named_text(made)),
    )  # fmt: skip


def named_text(sharding: Sharding) -> str:
    """The V3 text of a sharding over a mesh."""
    mesh = sharding.mesh
    assert mesh is not None
    dims = ", ".join(
        "{" + ", ".join([*map(str, axes), *(["?"] if k in sharding.notes.open else [])]) + "}"
        for k, axes in enumerate(sharding.dims)
    )
    text = f"{mesh}, [{dims}]"
    for kind, axes in (
        ("replicated", sharding.notes.replicated), ("unreduced", sharding.unreduced), ("manual", sharding.manual),
    ):  # fmt: skip
        if axes:
            text += f", {kind}={{{', '.join(map(str, axes))}}}"
    return "{" + text + "}"


def _axes(mesh: Mesh, tree: Tree) -> Axes:
    return tuple(_axis(mesh, child) for child in tree.children if isinstance(child, LarkTree))


def _axis(mesh: Mesh, tree: Tree) -> AxisRef:
    tokens = [c for c in tree.children if isinstance(c, Token)]
    name = _unquoted(tokens[0])
    if name not in mesh.sizes and name.isdigit() and int(name) < len(mesh.axes):
        name = mesh.axes[int(name)][0]
    numbers = [int(t) for t in tokens if t.type == "INT"]
    return mesh.ref(AxisRef(name, *numbers) if numbers else AxisRef(name))


def mesh_of_tree(text: str, tree: Tree) -> Mesh:
    axes = []
    ids: list[int] | None = None
    for child in tree.iter_subtrees_topdown():
        if child.data == "mesh_axis":
            name, size = (c for c in child.children if isinstance(c, Token))
            axes.append((_unquoted(name), int(size)))
        elif child.data in ("ids_list", "ids_iota"):
            ids = _ids(text, child)
    try:
        return Mesh(axes, ids)
    except ShardingError as error:
        raise fault(table.CONTRADICTION, text, _first(tree), message=error.diagnostics[0].message,
                    hint=error.diagnostics[0].remedy) from None  # fmt: skip


def _ids(text: str, tree: Tree) -> list[int]:
    import numpy as np

    from shardpass.sharding import build

    tokens = [c for c in tree.children if isinstance(c, Token) and c.type in ("INTS", "LIST")]
    if tree.data == "ids_list":
        return build.ints(text, tokens[0]).tolist() if tokens else []
    shape = build.ints(text, tokens[0]).tolist()
    perm = build.ints(text, tokens[1]).tolist() if len(tokens) > 1 else list(range(len(shape)))
    if sorted(perm) != list(range(len(shape))):
        raise fault(table.TRANSPOSE, text, tokens[1].start_pos or 0, perm=",".join(map(str, perm)), last=len(shape) - 1)
    found: list[int] = np.arange(np.prod(shape)).reshape(shape).transpose(perm).reshape(-1).tolist()
    return found


def _unquoted(token: Token) -> str:
    import re

    body = str(token)[1:-1]
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t", "r": "\r"}.get(m[1], m[1]), body)


def _token(node: Token | Tree) -> str:
    return str(node)


def _first(tree: Tree) -> int:
    for token in tree.scan_values(lambda t: isinstance(t, Token)):
        return token.start_pos or 0
    return 0


__all__ = ["PLAIN", "mesh_of_tree", "named_of", "named_text"]
