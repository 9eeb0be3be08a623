"""Name arguments by the paths that users write, for libraries that flatten trees before they call ``jax.jit``.

``flax.nnx.jit`` passes modules as a graph and a list of leaves, so JAX calls a weight ``model.states[0][22]``;
``equinox.filter_jit`` passes all arrays in two tuples, ``dynamic_donate['rest'][17]``. Both keep the tree beside the
leaves, as a static value. Filled with numbers in place of leaves, the tree gives the path of each:
``model.head.kernel``, ``state[0].mu.blocks[0].up``.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jax
from jaxlib.mlir import ir

from shardpass.ir.annotations import Signature, main_of
from shardpass.ir.locations import named

_RESULT = re.compile(r"result\[0\]\[(\d+)\](\.states\[0\]\[\d+\])")  # of nnx: the modules come back
_RESULT_INFO = "jax.result_info"
_OTHER_FORM = (AttributeError, ImportError, IndexError, KeyError, TypeError, ValueError)


def set_leaf_names(module: Any, function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Rename the arguments and results of ``module``, the program of ``function(*arguments, **keywords)``.

    If a library stores its tree in an unknown form, the names stay unchanged, and a line on stderr reports it.
    """
    try:
        names = dict(_names(function, arguments, keywords))
    except _OTHER_FORM as error:
        print(f"shardpass: leaves have the names of JAX, not of their library: {error!r}", file=sys.stderr)
        return
    if not names:
        return
    roots = _parameters(function)
    with module.context:
        main = main_of(module)
        for argument in main.regions[0].blocks[0].arguments:
            name, stack = named(argument.location)
            if name in names:
                argument.set_location(ir.Location.name(names[name], stack))
        signature = Signature(main)
        for row in signature.results:
            match = _RESULT.fullmatch(row[_RESULT_INFO].value) if _RESULT_INFO in row else None
            root = roots[int(match[1])] if match and int(match[1]) < len(roots) else ""
            if match and root + match[2] in names:
                path = names[root + match[2]].removeprefix(root)
                row[_RESULT_INFO] = ir.StringAttr.get(f"result[0][{match[1]}]{path}")
        signature.write()


def _names(function: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield, for each leaf, JAX's name and the user's name."""
    if len(arguments) == 3 and _is_of_equinox(*arguments):
        yield from _of_equinox(*arguments)
        return
    given = [*zip(_parameters(function), arguments, strict=False), *keywords.items()]
    for root, value in given:
        if type(value).__module__.startswith("flax.nnx") and len(getattr(value, "states", ())) == 1:
            yield from _of_nnx(root, value)


def _parameters(function: Any) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ()


def _of_nnx(root: str, value: Any) -> Iterator[tuple[str, str]]:
    from flax import nnx

    count = len(jax.tree.leaves(value.states[0]))
    module = nnx.merge(value._graphdef, list(range(count)))
    for path, variable in nnx.to_flat_state(nnx.state(module)):
        number = variable.get_raw_value() if hasattr(variable, "get_raw_value") else variable
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
        yield f"{root}.states[0][{number}]", root + "".join(steps)


def _is_of_equinox(donated: Any, kept: Any, static: Any) -> bool:
    both = isinstance(donated, dict) and isinstance(kept, dict) and isinstance(static, tuple) and len(static) == 3
    return both and {"first", "rest"} <= donated.keys() | kept.keys()


def _of_equinox(donated: dict[str, Any], kept: dict[str, Any], static: tuple[Any, ...]) -> Iterator[tuple[str, str]]:
    function, first, rest = static
    roots = next((_parameters(leaf) for leaf in function[0] if callable(leaf)), ())
    for name, (leaves, tree) in (("first", first), ("rest", rest)):
        group = "dynamic_donate" if name in donated else "dynamic_nodonate"
        numbered = jax.tree.unflatten(tree, range(len(leaves)))
        for path, number in jax.tree_util.tree_flatten_with_path(numbered)[0]:
            place, steps = 0, path
            if name == "rest":
                if path[0].idx == 1:  # keywords
                    yield f"{group}['rest'][{number}]", path[1].key + jax.tree_util.keystr(path[2:])
                    continue
                place, steps = path[1].idx + 1, path[2:]
            root = roots[place] if place < len(roots) else f"[{place}]"
            yield f"{group}['{name}'][{number}]", root + jax.tree_util.keystr(steps)
