"""SP1xx: files, pipelines, commands."""

from __future__ import annotations

from shardpass.diagnostics.core import ShardpassError, code

NOT_MLIR = code("SP101")
NOT_TEXT = code("SP102")
PIPELINE_SYNTAX = code("SP103")
PASS_CANNOT_BE_LOADED = code("SP104")
UNKNOWN_PASS = code("SP105")
UNKNOWN_OPTION = code("SP106")
WHOSE_OPTION = code("SP129")
OPTION_TYPE = code("SP107")
MLIR_OPTION = code("SP108")
NESTED_PASS = code("SP109")
NO_PIPELINE = code("SP110")
PASS_FAILED = code("SP111")
MLIR_FAILED = code("SP136")
INVALID_IR = code("SP112")
CANNOT_READ = code("SP120")
CANNOT_WRITE = code("SP121")
TOO_DEEP = code("SP124")
NO_MEMORY = code("SP125")
NOT_A_NAME = code("SP135")
EMPTY = code("SP126")
CANNOT_CONVERT = code("SP127")
CANNOT_EMIT = code("SP133")
PORTABLE_VERSION = code("SP134")
NO_REPRODUCER = code("SP128")
NOT_EXPECTED = code("SP130")
NOT_PRODUCED = code("SP131")
BAD_EXPECTATION = code("SP132")


class ArgumentError(ShardpassError, TypeError):
    """An argument of a public function has a type that the function does not accept."""


ARGUMENT = code("SP140", ArgumentError)
FOREIGN = code("SP139")
SCRIPT_FAILED = code("SP141")
NOT_COMPILED = code("SP142")
SCRIPT_TIMEOUT = code("SP144")
NOT_DEFINED = code("SP145")
NO_FUNCTION = code("SP146")
NO_CODE = code("SP143")
INTERNAL = code("SP199")
