"""SP84x: programs over meshes with Explicit axes."""

from __future__ import annotations

from shardpass.diagnostics.core import code

NO_EDIT = code("SP840")
NO_CALL = code("SP841")
NO_WAIT = code("SP842")
NOT_COMPILED = code("SP843")
