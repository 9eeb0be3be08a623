"""SP1xx: files, pipelines, commands."""

from __future__ import annotations

from shardpass.diagnostics.core import Code

NOT_MLIR = Code(
    "SP101",
    "{reason}",
    remedy="the file must be MLIR text or bytecode with the dialects that JAX uses "
    "(builtin, func, stablehlo, chlo, mhlo, sdy); MLIR's parser stopped at this place",
    explanation="The message is that of MLIR's own parser or verifier. A common cause is a module written by "
    "a newer StableHLO than the one in the installed jaxlib.",
)

NOT_TEXT = Code(
    "SP102",
    "byte {byte} is neither UTF-8 text nor the start of MLIR bytecode",
    remedy="give a .mlir file in UTF-8, or MLIR bytecode (which opens with the bytes 'ML\\xefR')",
    explanation="The input is binary data of another kind, for example a compressed file or a protobuf.",
)

PASS_CANNOT_BE_LOADED = Code(
    "SP104",
    "pass {name} cannot be loaded from {target}: {reason}",
    remedy="repair or remove the package that provides it; shardpass finds passes through the entry-point "
    "group shardpass.passes",
    explanation="The pass is registered, but importing its module fails.",
)
