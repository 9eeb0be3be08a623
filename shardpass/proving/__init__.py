"""Does this program of one device compute that whole program?

``prove`` walks both programs by one set of rules (``rules/``) and compares the contents of their results: pieces of
terms of the whole program's arguments (``relations/``). No rule comes from planning or emission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardpass.proving.proof import prove_modules
from shardpass.proving.verdict import Finding as Finding
from shardpass.proving.verdict import Verdict as Verdict

if TYPE_CHECKING:
    from jaxlib.mlir import ir


def prove(
    whole: str | bytes | ir.Module, local: str | bytes | ir.Module, *, refute: bool = True, strict: bool = False
) -> Verdict:
    """Return whether ``local``, a partitioned program as shardpass emits it, computes ``whole``, a StableHLO program.

    Both are text, bytecode or an ``ir.Module``. With ``refute``, small programs that are not proved are run on
    StableHLO's reference interpreter: a difference refutes.

    A proof may take laws that floats keep only in part, such as ``x + 0 = x``, which -0 does not keep. The verdict
    lists them with places in ``laws``. With ``strict`` no proof takes one.

    Raises:
        ShardpassError: where one of them cannot be read, SP951 where ``local`` is of another program.
    """
    from shardpass.ir.context import parse_module

    def read(given: Any) -> Any:
        return parse_module(given) if isinstance(given, (str, bytes)) else given

    return prove_modules(read(whole), read(local), refute=refute, strict=strict)
