"""Keep partitioned programs in JAX's compilation cache on disk, for later processes.

State: JAX's cache, if the user enabled it (``jax_compilation_cache_dir``). An entry is a hash followed by the module
that each device runs, as bytecode with locations. ``manual_region`` converts it to a program for JAX, with the same
checks as for a newly partitioned module.

Invariant: an entry is used only if partitioning would give the same module. Its key is a hash of the module that JAX
lowered, the passes, the machine, this package's own files, and the versions of its dependencies. Programs that
depend on anything else are not cached:

1. functions of the user that are called during partitioning, or identified by their address (callbacks);
2. an op or a custom call whose sharding rule comes from a third party;
3. a pipeline chosen by the user, with the user's own passes or profiles.

Everything else is as in JAX: its own entries contain XLA's part of the same programs; locations are part of a key
only with ``jax_compilation_cache_include_metadata_in_key``; a program that took less than
``jax_persistent_cache_min_compile_time_secs`` (here including partitioning) is not cached, and only process 0
writes. JAX reads and writes in the same place, and reports errors there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jaxlib
import numpy as np

from shardpass.ir import jax_private
from shardpass.ir.annotations import get_text
from shardpass.ir.context import parse_module
from shardpass.ir.written import bytecode
from shardpass.ops.families.custom_call import targets_of_others
from shardpass.ops.registry import ops_of_others

PACKAGE = Path(__file__).parents[1]
HASH_BYTES = hashlib.sha256().digest_size
# parts of names of custom calls that lead to functions in this process
_CALLS_PYTHON = ("callback", "CustomSPMDPartitioning", "InspectSharding")


class Entry:
    """The place of one program in the cache. An unreadable file counts as absent, and is overwritten."""

    def __init__(self, cache: Any, key: str) -> None:
        self._cache = cache
        self._key = key
        self._fresh = b""  # what is to be written
        self._spoiled = False

    def find(self, context: Any) -> Any | None:
        """Return the partitioned module, in ``context``; None if the cache has no readable entry."""
        try:
            data: bytes | None = self._cache.get(self._key)
        except Exception:  # whatever a file system raises
            return None
        if data is None:
            return None
        if hashlib.sha256(data[HASH_BYTES:]).digest() == data[:HASH_BYTES]:
            try:
                return parse_module(data[HASH_BYTES:], context=context, trusted=True)
            except Exception:  # whatever the parsers of other bytes, and of other versions' bytecode, raise
                pass
        self.spoil()
        return None

    def spoil(self) -> None:
        """Mark the entry that ``find`` returned as invalid, so that ``keep`` overwrites it."""
        self._spoiled = True

    def take(self, module: Any) -> None:
        """Keep the bytecode of ``module``, which was just partitioned, for ``keep``."""
        self._fresh = bytecode(module)

    def keep(self, seconds: float) -> None:
        """Write the module of ``take`` to the cache, if partitioning and compiling took enough ``seconds``."""
        if not self._fresh or jax.process_index() or seconds < jax.config.jax_persistent_cache_min_compile_time_secs:
            return
        try:
            if self._spoiled:
                jax_private.drop_from_disk(self._cache, self._key)
            self._cache.put(self._key, hashlib.sha256(self._fresh).digest() + self._fresh)
        except Exception:  # whatever a file system raises
            return


def entry_of(backend: Any, module: Any, passes: str, machine: str) -> Entry | None:
    """Return the cache entry of ``module``, as JAX lowered it, for ``passes`` and ``machine``.

    None without a cache on disk, if third parties define ops, and for programs that call Python or a custom call of
    third parties.
    """
    cache = jax_private.cache_on_disk(backend)
    if cache is None or ops_of_others():
        return None
    located: bool = jax.config.jax_compilation_cache_include_metadata_in_key
    text: bytes = module.operation.get_asm(binary=True, enable_debug_info=located)
    if any(word.encode() in text for word in (*_CALLS_PYTHON, *targets_of_others())):
        return None
    name = get_text(module.operation, "sym_name") or "main"
    digest = hashlib.sha256(repr((passes, machine, _package())).encode())
    digest.update(text)
    return Entry(cache, f"{name}-shardpass-{digest.hexdigest()}")


@lru_cache(maxsize=1)
def _package() -> tuple[str, ...]:
    """Identify this package by a digest of its files and the versions of its dependencies."""
    digest = hashlib.sha256()
    for path in sorted(_files(PACKAGE)):
        digest.update(f"{path.relative_to(PACKAGE)} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest(), jax.__version__, jaxlib.__version__, np.__version__


def _files(folder: Path) -> Iterator[Path]:
    for child in os.scandir(folder):
        if child.is_file():
            yield Path(child)
        elif child.name != "__pycache__":
            yield from _files(Path(child))
