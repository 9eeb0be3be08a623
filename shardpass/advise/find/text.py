"""An edit as JAX's text, and as a diff of the user's file where that can be edited with certainty.

1. A constraint is the call that stands at its line. Dropped, the call is its first argument, and an assignment of a
   name to itself goes. Replaced, the second argument is written anew in its own form, ``P(...)`` or ``NamedSharding``.
   Where constraints outside of the edit share the line, as those of a helper do, the call of the helper is edited.
2. A value that a name is assigned is constrained in a line of its own; any other expression where it stands.
3. Arguments and results are leaves of ``in_shardings`` and ``out_shardings`` of the one call that has these for the
   function: tuples, lists, dicts and calls with keywords are followed by the path, names to their one assignment, maps
   over a tree to the tree. A leaf may stand for a whole tree; the edit is then written only if it is about all arrays
   of that tree, with one spec or with those of another argument, whose expression takes its place.
4. Arguments of any other function have the split that a literal of the script says (``literals``).

Where any part of an edit cannot be placed, there is no diff, and the text has path and spec.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shardpass.advise.find.literals import literal
from shardpass.advise.find.propose.program import Edit
from shardpass.advise.find.source import Edits, Files, Replacement, SourceFile, called, overlap, sharding_of
from shardpass.advise.place.sites import (
    ARGUMENT,
    BORDER,
    CAST,
    CHUNKS,
    CONSTRAINT,
    CUT,
    MESH,
    RESULT,
    VALUE,
    Site,
    Sites,
)
from shardpass.advise.place.specs import Spec, spec_text
from shardpass.advise.place.write import Change, mesh_sizes
from shardpass.diagnostics import Place
from shardpass.ir.frames import Frame
from shardpass.report.naming import Sources

_STEP = re.compile(r"\.(\w+)|\[(-?\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_ROOT = re.compile(r"\w*")
_MAPS = ("map", "tree_map")

Steps = tuple[str | int, ...]


@dataclass(frozen=True)
class _Tree:
    """The tree of ``in_shardings`` or ``out_shardings``: ``root``, and the path of each array below it."""

    root: ast.expr
    every: Mapping[str, Steps]


@dataclass(frozen=True)
class _Part:
    """Replacements in one file. ``is_certain``: whether they change the edit's places alone, without a trace."""

    file: SourceFile
    replacements: Sequence[Replacement]
    is_certain: bool = True


@dataclass(frozen=True)
class Written:
    """An edit as a diff, with all edits of the files that it belongs to, and its first line. ``is_certain``: every part
    is.
    """

    diff: str
    edits: Edits
    is_certain: bool
    place: Place

    def before(self, place: Place) -> Place:
        """Return the line of the user's file at which ``place``, of the traced text, stands."""
        for file, replacements in self.edits.items():
            if file.path == place.file and place.line:
                return replace(place, line=file.line_before(place.line, replacements))
        return place


def code_of(change: Change, placed: bool = False) -> str:
    """Return the annotation to write, as one line of JAX's text. ``placed``: see ``JaxText.is_placed``."""
    site, name = change.site, change.site.pattern
    if site.kind == CUT:
        axes = " and ".join((change.spec or ())[site.cut])
        parts = ", ".join(str(end - start) for start, end in site.pieces)
        return f"store {name} by devices of {axes}: its part of each of ({parts}) along dimension {site.cut}, in turn"
    if site.kind == CHUNKS:
        (rows, *rest), (_, count) = site.array.shape, site.pieces[0]
        split = (rows, count, rest[0] // count) if site.cut else (rows // count, count)
        return f"{name}: reshape({', '.join(map(str, split))}, ...).swapaxes(0, 1) before the reshape into chunks"
    spec = "" if change.spec is None else spec_text(change.spec)
    padded = "" if change.padded is None else f", padded to {change.padded}"
    if site.kind == ARGUMENT:
        return f"{'device_put' if placed else 'in_shardings'}: {name} = {spec or 'None'}{padded}"
    if site.kind == RESULT:
        return f"out_shardings: {name} = {spec or 'None'}{padded}"
    if site.kind == BORDER:
        return f"in_specs: {name} = {spec}, and a body that works on this part"
    if site.kind == MESH:
        return f"mesh: {', '.join(f'{name}={size}' for name, size in mesh_sizes(change))}"
    if site.kind == CAST:
        return f"with_sharding_constraint({name}, {spec}) before the cast"
    if site.kind == VALUE:
        made = f"with_sharding_constraint({name}, {spec})"
        return f"{name} = {made}" if name.isidentifier() else made
    if change.spec is None:
        return f"drop with_sharding_constraint({name}, {spec_text(site.spec or ())})"
    return f"with_sharding_constraint({name}, {spec})"


class JaxText:
    """Writes edits as diffs, each on top of the previous ones.

    ``function``: the name of the jitted function; ``script``: the file that calls it, "" where none is known.
    """

    def __init__(self, sites: Sites, sources: Sources, function: str, script: str = "") -> None:
        self.sites, self.function = sites, function
        self._script = os.path.abspath(script)
        self._sources, self._files = sources, Files(sources)
        self._made: dict[SourceFile, list[Replacement]] = {}

    def written(self, edit: Edit) -> Written | None:
        """Return the edit of the user's files on top of those kept; None if its place is not certain.

        Padding has no place in the text, as the array's shape comes from elsewhere, and what is cast may have no name.
        """
        if any(change.padded is not None or change.site.kind == CAST for change in edit):
            return None
        kinds = {change.site.kind for change in edit}
        parts: list[_Part | None]
        if kinds <= {CONSTRAINT, VALUE, BORDER, MESH}:
            parts = [self._in_the_body(edit, change) for change in edit]
            parts = parts if None not in parts else [self._of_types(edit)]
        else:
            signature = tuple(change for change in edit if change.site.kind in (ARGUMENT, RESULT))
            whole = self._in_the_signature(signature)
            body = [change for change in edit if change not in signature]
            parts = [whole] if whole is not None else [*self._where_placed(signature)]
            parts += [self._in_the_body(edit, change) for change in body]
        new: dict[SourceFile, list[Replacement]] = {}
        for part in parts:
            if part is None:
                return None
            new.setdefault(part.file, []).extend(part.replacements)
        made = {file: self._made.get(file, []) for file in (*self._made, *new)}
        if any(overlap([*made[file], *here]) for file, here in new.items()):
            return None
        diff = "".join(file.diff(here, made[file]) for file, here in new.items())
        every = {file: [*before, *new.get(file, [])] for file, before in made.items()}
        first = next(iter(new))
        place = Place(first.path, first.line_at(min(one.start for one in new[first])))
        return Written(diff, every, all(part is not None and part.is_certain for part in parts), place)

    @cached_property
    def is_placed(self) -> bool:
        """Whether the script is known and its function has no ``in_shardings``, so that arguments are placed before."""
        files = filter(None, map(self._files.at, self._paths()))
        is_known = self._files.at(self._script) is not None
        return is_known and all(file.shardings(self.function, "in_shardings") is None for file in files)

    def keep(self, written: Written) -> None:
        """Keep an edit, so that further edits are written on top of it."""
        self._made = {file: list(replacements) for file, replacements in written.edits.items()}

    # ---------------------------------------------------------------- constraints and values

    def _in_the_body(self, edit: Edit, change: Change) -> _Part | None:
        site = change.site
        if site.kind == MESH:
            return self._of_the_mesh(change)
        if site.kind == BORDER:
            file = self._files.at(site.place.file)
            entry = None if file is None else file.in_spec(site.frame, *site.pieces[0])
            if file is None or entry is None:
                return None
            new = file.sharding(spec_text(change.spec or ()), file.resolved(entry))
            return _Part(file, [Replacement(*file.span(entry), new)], is_certain=False)
        if site.kind == VALUE:
            file = self._files.at(site.place.file)
            added = None if file is None else self._added(file, site, change.spec or ())
            return None if file is None or added is None else _Part(file, added)
        frames = site.frame, *site.calls
        level = self._level(edit, site)
        file = None if level is None else self._files.at(frames[level].place.file)
        if level is None or file is None:
            return None
        made = self._constraint(file, site.frame, change) if not level else self._call(file, frames, level, change)
        return None if made is None else _Part(file, made, is_certain=not level)

    def _of_types(self, edit: Edit) -> _Part | None:
        """Return the text of the one spec that lines give to the types of what they make (``out_sharding=``)."""
        splits = {
            (change.site.kind, _full(change.site, change.site.spec), _full(change.site, change.spec)) for change in edit
        }
        lines = [self._sources.line(change.site.place) for change in edit]
        ((kind, old, new), *others) = splits
        if others or kind != CONSTRAINT or edit[0].spec is None:
            return None
        made = literal(self._files.beside(self._paths()), lines, old, new)
        return None if made is None else _Part(made[0], [made[1]], is_certain=False)

    def _of_the_mesh(self, change: Change) -> _Part | None:
        """Return the replacement of the sizes of the mesh, where they are written once as numbers."""
        now, new = (
            [size for _, size in mesh_sizes(replace(change, spec=spec))] for spec in (change.site.spec, change.spec)
        )
        names = self.sites.names
        paths = (names.frame(op).place.file for op in self.sites.program.body.every_op())
        files = filter(None, map(self._files.at, dict.fromkeys(paths)))
        places = [(file, some) for file in files for some in file.mesh_sizes(now)]
        if len(places) != 1:
            return None
        ((file, numbers),) = places
        made = [Replacement(*file.span(node), str(size)) for node, size in zip(numbers, new, strict=True)]
        return _Part(file, made, is_certain=False)

    def _level(self, edit: Edit, site: Site) -> int | None:
        """Return the number of the frame of ``site``, from the inside, at which an edit changes no others."""
        others = [one for one in self.sites.constraints if all(one is not changed.site for changed in edit)]
        every = {frame for other in others for frame in (other.frame, *other.calls)}
        return next((level for level, frame in enumerate((site.frame, *site.calls)) if frame not in every), None)

    def place_of(self, edit: Edit) -> Place:
        """Return the line to edit. For a constraint in a helper, that is the line of the relevant call."""
        site = edit[0].site
        level = self._level(edit, site) if site.kind == CONSTRAINT else None
        return site.calls[level - 1].place if level else site.place

    def _constraint(self, file: SourceFile, frame: Frame, change: Change) -> list[Replacement] | None:
        """Edit the call of ``with_sharding_constraint`` at ``frame``."""
        call = file.constraint_at(frame)
        if call is None or any(isinstance(one, ast.Starred) for one in call.args):
            return None
        if change.spec is not None:
            return [_with_sharding(file, call, call.args[0], sharding_of(call), change.spec)]
        return file.unwrapped(call, call.args[0])

    def _call(self, file: SourceFile, frames: Sequence[Frame], level: int, change: Change) -> list[Replacement] | None:
        """Edit the call of a helper that constrains one of its parameters; ``frames[level]`` is the call."""
        call = file.expression_at(frames[level])
        inner = self._files.at(frames[level - 1].place.file)
        if inner is None or not isinstance(call, ast.Call) or level != 1:
            return None
        constraint = inner.constraint_at(frames[0])
        helper = None if constraint is None else inner.function_around(constraint)
        if constraint is None or helper is None or not isinstance(constraint.args[0], ast.Name):
            return None
        names = [one.arg for one in helper.args.args]
        name = constraint.args[0].id
        if name not in names:
            return None
        place = names.index(name) - (names[0] == "self")
        given = {one.arg: one.value for one in call.keywords}
        kept = call.args[place] if place < len(call.args) else given.get(name)
        if kept is None or any(isinstance(one, ast.Starred) for one in call.args[: place + 1]):
            return None
        if change.spec is None:
            return file.unwrapped(call, kept)
        handed = file.handed_over(call, helper, sharding_of(constraint), kept, spec_text(change.spec))
        return [handed or _with_sharding(file, call, kept, None, change.spec)]

    def helper_of(self, edit: Edit) -> tuple[str, int]:
        """Return the name of the function whose one constraint ``edit`` changes for several calls, and their number.

        The name is "" for any other edit.
        """
        sites = [change.site for change in edit]
        if any(site.kind != CONSTRAINT or site.frame != sites[0].frame for site in sites):
            return "", 0
        if any(one.frame == sites[0].frame for one in self.sites.constraints if one not in sites):
            return "", 0  # some of the calls alone
        count = sum(len(site.origins) for site in sites)
        file = self._files.at(sites[0].place.file) if count > 1 and sites[0].calls else None
        call = None if file is None else file.constraint_at(sites[0].frame)
        function = None if file is None or call is None else file.function_of(call)
        if function is None or call is None or ast.unparse(call.args[0]) not in {one.arg for one in function.args.args}:
            return "", 0  # of a layer that constrains a value of its own
        return function.name, count

    def _added(self, file: SourceFile, site: Site, spec: Spec) -> list[Replacement] | None:
        node = file.expression_at(site.frame)
        if node is None:
            return None
        sharding, statement = file.sharding(spec_text(spec)), file.statement_of(node)
        call = file.constraint_name
        if (
            isinstance(statement, ast.Assign)
            and statement.value is node
            and len(statement.targets) == 1
            and isinstance(target := statement.targets[0], ast.Name)
        ):
            line = f"{file.indent(statement)}{target.id} = {call}({target.id}, {sharding})\n"
            end = file.line_end(statement)
            return [Replacement(end, end, line if file.raw[:end].endswith(b"\n") else f"\n{line}")]
        start, end = file.span(node)
        return [Replacement(start, end, f"{call}({file.text(node)}, {sharding})")]

    # ---------------------------------------------------------------- arguments and results

    def _signature_file(self) -> SourceFile | None:
        """Return the file with the in_shardings or out_shardings of the function; None without such a file."""
        for path in self._paths():
            file = self._files.at(path)
            if file is not None and any(
                file.shardings(self.function, keyword) is not None for keyword in ("in_shardings", "out_shardings")
            ):
                return file
        return None

    def _in_the_signature(self, edit: Edit) -> _Part | None:
        """Return replacements of the arrays' expressions: in trees that are assigned to names, or else of the names.

        Returns None if an array outside of the edit would change too.
        """
        file = self._signature_file()
        if file is None:
            return None
        trees = {}
        for kind, keyword in ((ARGUMENT, "in_shardings"), (RESULT, "out_shardings")):
            node = file.shardings(self.function, keyword)
            every = {name: self._steps(file, name, kind) for name in self._every(kind)}
            if node is not None and None not in every.values():
                trees[kind] = _Tree(node, {name: steps for name, steps in every.items() if steps is not None})
        if any(change.site.kind not in trees for change in edit):
            return None
        for inside in (True, False):
            texts = self._replaced(file, edit, trees, inside)
            if texts is not None:
                return _Part(file, [Replacement(*file.span(node), text) for node, text in texts.items()])
        return None

    def _where_placed(self, edit: Edit) -> Iterator[_Part | None]:
        """Yield the texts by which the script places the arguments of an edit; results follow these."""
        alike: dict[tuple[Spec, Spec], list[str]] = {}
        for change in edit:
            if change.site.kind == ARGUMENT:
                old, new = (_full(change.site, spec) for spec in (change.site.spec, change.spec))
                alike.setdefault((old, new), []).extend(change.site.names)
        if not alike or any(change.site.spec is None for change in edit):
            yield None
        for (old, new), names in alike.items():
            made = literal(self._files.beside(self._paths()), names, old, new)
            yield None if made is None else _Part(made[0], [made[1]], is_certain=False)

    def _paths(self) -> list[str]:
        """List the files of the user's lines, and the script."""
        names, body = self.sites.names, self.sites.program.body
        return list(dict.fromkeys([*(names.frame(op).place.file for op in body.every_op()), self._script]))

    def _replaced(
        self, file: SourceFile, edit: Edit, trees: Mapping[str, _Tree], inside: bool
    ) -> dict[ast.expr, str] | None:
        """Map each expression to the text that replaces it; ``inside``: see ``_leaf``."""
        result: dict[ast.expr, str] = {}
        for kind, tree in trees.items():
            new = {name: one.spec for one in edit if one.site.kind == kind for name in one.site.names}
            for name in new:
                leaf = _leaf(file, tree.root, tree.every[name], inside=inside)
                text = None if leaf is None else self._text(file, trees, kind, leaf, new)
                if leaf is None or text is None or result.setdefault(leaf[0], text) != text:
                    return None
        for kind, tree in trees.items():
            changed = {name for one in edit if one.site.kind == kind for name in one.site.names}
            for name in tree.every.keys() - changed:
                leaf = _leaf(file, tree.root, tree.every[name], inside=inside)
                if leaf is not None and leaf[0] in result:
                    return None
        return result

    def _text(
        self,
        file: SourceFile,
        trees: Mapping[str, _Tree],
        kind: str,
        leaf: tuple[ast.expr, Steps],
        new: Mapping[str, Spec | None],
    ) -> str | None:
        """Return the text that replaces a leaf, the sharding of all arrays below a path; None where none can."""
        node, prefix = leaf
        every = trees[kind].every
        covered = {name: steps for name, steps in every.items() if steps[: len(prefix)] == prefix}
        if any(name not in new for name in covered):
            return None
        specs = {new[name] for name in covered}
        if len(specs) == 1:
            spec = specs.pop()
            return "None" if spec is None else file.sharding(spec_text(spec), file.resolved(node))
        tails = {steps[len(prefix) :]: new[name] for name, steps in covered.items()}
        for other, tree in sorted(trees.items(), key=lambda one: one[0] != kind):
            known = {name: site.spec for site in self._sites(other) for name in site.names}
            for path in dict.fromkeys(
                steps[:length] for steps in tree.every.values() for length in range(len(steps) + 1)
            ):
                theirs = {
                    steps[len(path) :]: known.get(name)
                    for name, steps in tree.every.items()
                    if steps[: len(path)] == path
                }
                if (other, path) != (kind, prefix) and theirs == tails:
                    beside = _leaf(file, tree.root, path, whole=True)
                    if beside is not None:
                        return file.text(beside[0])
        return None

    def _sites(self, kind: str) -> Sequence[Site]:
        return self.sites.arguments if kind == ARGUMENT else self.sites.results

    def _every(self, kind: str) -> Iterator[str]:
        """Yield the names of all arguments or all results (``kind``), including scalars."""
        if kind == ARGUMENT:
            yield from map(self.sites.names.of, self.sites.program.body.arguments)
        else:
            yield from self.sites.result_names

    def _steps(self, file: SourceFile, name: str, kind: str) -> Steps | None:
        """Return the path of an argument or result within ``in_shardings`` or ``out_shardings``; None if unknown."""
        root = _ROOT.match(name)[0]  # type: ignore[index]
        steps: list[str | int] = []
        if kind == ARGUMENT:
            parameters = file.parameters(self.function)
            if root not in parameters:
                return None
            steps.append(parameters.index(root))
        rest = name[len(root) :]
        position = 0
        while position < len(rest):
            step = _STEP.match(rest, position)
            if step is None:
                return None
            attribute, index, single, double = step.groups()
            steps.append(int(index) if index is not None else attribute or single or double or "")
            position = step.end()
        return tuple(steps)


def _full(site: Site, spec: Spec | None) -> Spec:
    """Return a spec with an entry for each dimension of the array of ``site``."""
    return (*(spec or ()), *((),) * site.array.rank)[: site.array.rank]


def _leaf(
    file: SourceFile,
    node: ast.expr,
    steps: Steps,
    *,
    inside: bool = True,
    whole: bool = False,
    done: Steps = (),
) -> tuple[ast.expr, Steps] | None:
    """Return the expression of the sharding at ``steps``, and the path of the subtree that has this sharding.

    ``inside``: for a tree assigned to a name with several uses, the expression in the tree, else the name itself.
    ``whole``: the expression of the tree at ``steps``, whatever it is.
    """
    if whole and not steps:
        return node, done
    if file.is_sharding(node) or (isinstance(node, ast.Constant) and node.value is None):
        return node, done
    if isinstance(node, ast.Name):
        value = file.assigned(node.id, node)
        if value is None:
            return None
        if file.is_sharding(value):
            return (value if file.uses(node.id) == 1 else node), done
        if not inside and file.uses(node.id) > 1:
            return node, done
        return _leaf(file, value, steps, inside=inside, whole=whole, done=done)
    if isinstance(node, ast.Call) and called(node).rpartition(".")[2] in _MAPS and len(node.args) > 1:
        return _leaf(file, node.args[1], steps, inside=inside, whole=whole, done=done)
    if not steps:
        return None
    step, rest = steps[0], steps[1:]
    inner: ast.expr | None = None
    if isinstance(node, ast.Tuple | ast.List) and isinstance(step, int) and step < len(node.elts):
        inner = node.elts[step]
    elif isinstance(node, ast.Dict):
        keys = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        inner = node.values[keys.index(step)] if keys.count(step) == 1 else None
    elif isinstance(node, ast.Call):
        inner = next((one.value for one in node.keywords if one.arg == step), None)
    if inner is None or isinstance(inner, ast.Starred):
        return None
    return _leaf(file, inner, rest, inside=inside, whole=whole, done=(*done, step))


def _with_sharding(
    file: SourceFile, call: ast.Call, kept: ast.expr, sharding: ast.expr | None, spec: Spec
) -> Replacement:
    """Return the replacement of ``sharding``; where ``call`` has none, of the call by a constraint of ``kept``."""
    start, end = file.span(sharding or call)
    text = file.sharding(spec_text(spec), sharding)
    return Replacement(start, end, text if sharding else f"{file.constraint_name}({file.text(kept)}, {text})")
