"""Traces a function again as though the user's files had edits, in this process and without running a file again.

The code of functions is swapped (``swap``). A region that exists already (``auto_axes`` of a module) is an object,
which is changed (``regions``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, nullcontext
from types import CodeType
from typing import Any

import jax

from shardpass.advise.find.source import Edits, Replacement, SourceFile
from shardpass.advise.repair.regions import Region
from shardpass.advise.repair.swap import LOCK, CannotTrace, Edited, Swap, compiled
from shardpass.jax.lowering import lowered_trace


class Retracer:
    """Traces ``jitted`` again with the arguments of its call, under the meshes in use when this object is made."""

    def __init__(self, jitted: Any, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        self.jitted, self.arguments, self.keywords = jitted, arguments, keywords
        self.mesh = jax.sharding.get_mesh()
        self.abstract = jax.sharding.get_abstract_mesh()
        self.swap = Swap()

    def traced(self) -> Any:
        """Return the function as it stands, as ``jax.jit(...).trace`` returns it; JAX's own result, if it has traced
        it.
        """
        with self._meshes():
            made = self.jitted.trace(*self.arguments, **self.keywords)
            return getattr(made, "traced", made)  # of flax.nnx, which has JAX's own inside

    def trace(self, edits: Edits, regions: Sequence[Region] = ()) -> Any:
        """Trace the function with ``edits`` of the text and of ``regions``. Raises CannotTrace, and what
        tracing raises.
        """
        files = [Edited(file.path, file.raw.decode(), file.traced(some).decode()) for file, some in edits.items()]
        with LOCK, self._meshes(), ExitStack() as inside:
            for region in regions:  # first, as regions are known by lines, which edits change
                if not inside.enter_context(region.used()):
                    raise CannotTrace(f"no region of {region.name} is known")
            inside.enter_context(self.swap.edited(files, all_reached=True))
            return self.traced()

    def again(self, edits: Edits) -> bytes | None:
        """Return the lowered program with ``edits``, as text; None if JAX or the function refuses them, and ``b""`` if
        they cannot be tried on the functions of this process.
        """
        try:
            if any(_is_of_module(file, replacements) for file, replacements in edits.items()):
                return b""  # that code ran already
            text: str = self.lower(self.trace(edits)).as_text(debug_info=True)
        except CannotTrace:
            return b""
        except Exception:  # the user's function, or JAX, refuses the edits
            return None
        return text.encode()

    def lower(self, traced: Any) -> Any:
        """Lower ``traced``; over an abstract mesh, which has no devices, for the CPU."""
        with self._meshes():
            return lowered_trace(traced)

    def _meshes(self) -> Any:
        if not self.mesh.empty:
            return nullcontext() if jax.sharding.get_mesh() == self.mesh else jax.set_mesh(self.mesh)
        return nullcontext() if self.abstract.empty else jax.sharding.use_abstract_mesh(self.abstract)


def _is_of_module(file: SourceFile, replacements: Sequence[Replacement]) -> bool:
    """Return whether the edits change code outside of functions, such as the arguments of a call of ``jax.jit``."""
    codes = (compiled(file.path, raw.decode()) for raw in (file.raw, file.changed(replacements)))
    old, new = ((one.co_code, [c for c in one.co_consts if not isinstance(c, CodeType)], one.co_names) for one in codes)
    return old != new
