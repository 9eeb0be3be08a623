"""The text by which a script places arrays: a spec in ``device_put``, a rule's, that of a partitioned initializer.

Problem: the split of an argument is seldom written at the jitted function, but in a table of rules, at the
initializer of a weight, or where a batch is placed.

1. Candidates are the calls of ``PartitionSpec``, and the tuples that a function named after partitioning takes, which
   say the split that the arrays have: in the mesh's axes, or in other names, one for each (logical axes).
2. Each is scored by the words of the arrays' paths that begin a word around it, half as much for each level of syntax.
3. The best is edited; of several that are as good the n-th where the arrays' module is the n-th of its class, or none.
   Whether it places these arrays shows when the script is run again.

Example: of ``[("mlp/w1", P("data", "model")), ("mlp/w2", P("data", "model"))]`` the second is that of
``params['layers']['mlp']['w2']``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from shardpass.advise.find.source import Replacement, SourceFile, called
from shardpass.advise.place.specs import Spec, spec_text

_WORD = re.compile(r"[a-z]+\d*")
_NUMBER = re.compile(r"\w_(\d+)\W+\w+\W*$")  # of a module, by which linen tells those of one class apart
_PARTITIONS = "partition"  # in the names of functions that take the names of axes
_CONSTRAINS = "constraint"
_SHORTEST = 2  # letters of a word that tells something


def literal(
    files: Iterable[SourceFile], names: Sequence[str], old: Spec, new: Spec
) -> tuple[SourceFile, Replacement] | None:
    """Return the edit of the one text that splits the arrays ``names`` as ``old``, for ``new``; None without one.

    ``old``, ``new``: with an entry for each dimension.
    """
    words = {word for name in names for word in _WORD.findall(name.lower()) if len(word) >= _SHORTEST}
    scored = [
        (exact, _score(file, node, words), file, Replacement(*file.span(node), text))
        for file in files
        for node in ast.walk(file.tree)
        for exact, text in _rewritten(file, node, old, new)
    ]
    best = max((one[:2] for one in scored), default=(False, 0.0))
    alike = [one[2:] for one in scored if one[:2] == best and best[1]]
    alike.sort(key=lambda one: (one[0].path, one[1].start))
    numbers = {int(last[1]) if (last := _NUMBER.search(name)) else 0 for name in names}
    place = 0 if len(alike) == 1 else numbers.pop() if len(numbers) == 1 and _NUMBER.search(names[0]) else len(alike)
    return alike[place] if place < len(alike) else None


def _rewritten(file: SourceFile, node: ast.AST, old: Spec, new: Spec) -> Iterator[tuple[bool, str]]:
    """Yield the text for ``new`` in place of a node that says ``old``, and whether it has the axes' own names."""
    entries = _entries(file, node)
    if entries is None or len(entries) > len(old):
        return
    given = [*map(_axes, entries), *((),) * (len(old) - len(entries))]
    exact = given == list(old)
    texts: dict[tuple[str, ...], str] = {(): "None"}
    for axes, here, entry in zip(old, given, [*entries, *(None,) * len(old)], strict=False):
        if bool(axes) != (here != ()) or (
            entry is not None and texts.setdefault(axes, file.text(entry)) != file.text(entry)
        ):
            return  # split where the array is not, or one name of two sets of axes
    if len(set(texts.values())) < len(texts) or not (exact or all(axes in texts for axes in new)):
        return
    is_call = isinstance(node, ast.Call)
    if exact and is_call:
        yield True, file.sharding(spec_text(new), node)  # type: ignore[arg-type]
        return
    mark = file.quote(node)
    for axes in new:
        own = [f"{mark}{axis}{mark}" for axis in axes]
        texts.setdefault(axes, own[0] if len(own) == 1 else f"({', '.join(own)})")
    parts = [texts[axes] for axes in new]
    if is_call:
        while parts and parts[-1] == "None":
            parts.pop()
        yield exact, f"{called(node)}({', '.join(parts)})"  # type: ignore[arg-type]
    else:
        yield exact, f"({', '.join(parts)}{',' * (len(parts) == 1)})"


def _entries(file: SourceFile, node: ast.AST) -> list[ast.expr] | None:
    """Return the entries of a spec that is no constraint's; None of any other node."""
    if file.is_spec(node):
        entries = node.args
        if node.keywords or any(isinstance(one, ast.Starred) for one in entries):
            return None
    elif isinstance(node, ast.Tuple) and isinstance(call := file.parents.get(node), ast.Call):
        entries = node.elts
        if _PARTITIONS not in called(call).lower():
            return None
    else:
        return None
    around = (one for one, _ in _around(file, node))
    constrains = any(isinstance(one, ast.Call) and _CONSTRAINS in called(one) for one in around)
    return None if constrains else entries


def _axes(entry: ast.expr) -> tuple[str, ...] | None:
    """Return the axes that an entry names; None of an expression."""
    if isinstance(entry, ast.Constant):
        return () if entry.value is None else (str(entry.value),)
    if isinstance(entry, ast.Tuple | ast.List):
        every = [one.value for one in entry.elts if isinstance(one, ast.Constant)]
        return tuple(map(str, every)) if len(every) == len(entry.elts) else None
    return None


def _around(file: SourceFile, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the nodes around one, from the inside, with the text of each: of a block, its head alone."""
    outer = file.parents.get(node)
    while outer is not None and not isinstance(outer, ast.Module):
        if isinstance(outer, ast.FunctionDef | ast.ClassDef):
            yield outer, outer.name.lower()
        elif isinstance(outer, ast.If | ast.While):
            yield outer, ast.unparse(outer.test).lower()
        elif isinstance(outer, ast.match_case):
            yield outer, ast.unparse(outer.pattern).lower()
        elif isinstance(outer, ast.expr | ast.keyword | ast.Assign | ast.AnnAssign | ast.Return):
            yield outer, ast.unparse(outer).lower()
        outer = file.parents.get(outer)


def _score(file: SourceFile, node: ast.AST, words: Iterable[str]) -> float:
    texts = [text for _, text in _around(file, node)]
    begins = [re.compile(rf"(?<![a-z]){word}") for word in words]
    return sum(next((0.5**level for level, text in enumerate(texts) if one.search(text)), 0.0) for one in begins)
