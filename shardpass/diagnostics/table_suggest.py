"""SP8xx: suggestions."""

from __future__ import annotations

from shardpass.diagnostics.core import code

NOT_A_PROGRAM = code("SP801")
SHARDINGS_OF_WHAT = code("SP806")
NO_MESH = code("SP802")
MESH_SIZE = code("SP803")
LIMIT_TOO_LOW = code("SP804")
DOES_NOT_FIT = code("SP807")
MESH_TEXT = code("SP805")
OPTION_OF_JIT = code("SP808")
EDIT_SAVES = code("SP810")
