"""SP5xx: compile, run, interpreter."""

from __future__ import annotations

from shardpass.diagnostics.core import ShardpassError, code

NOT_PARTITIONED = code("SP501")
BAD_BOUNDARY = code("SP502")
WRONG_DEVICE_COUNT = code("SP503")
NO_GLOBAL_VALUE = code("SP504")
UNSUPPORTED_TYPE = code("SP505")
LEFT_OVER = code("SP506")
CALLS_PYTHON = code("SP508")
BAD_CHANNEL = code("SP507")
TOO_FEW_DEVICES = code("SP510")
COMPILE_FAILED = code("SP511")
RUN_FAILED = code("SP512")
WRONG_ARGUMENT_COUNT = code("SP520")
WRONG_ARGUMENT = code("SP521")
NOT_PLACED = code("SP522")
MANUAL_REGION = code("SP530")
INTERPRETER_FAILED = code("SP540")
DEVICES_WAIT = code("SP541")
CHECK_NEEDS_WHOLE = code("SP550")
DIFFERS = code("SP551")
SPECIAL_DIFFERS = code("SP554")
NAN_LOST = code("SP555")
NAN_LOST_ON_ONE_DEVICE = code("SP557")
NOT_COMPARED = code("SP556")
XLA_DIFFERS = code("SP558")
PEER_FAILED = code("SP553")
ADDED_BY_XLA = code("SP552")


class Disagreement(ShardpassError):
    """The processes of a program do not run the same program: none of them may go on."""


PROGRAMS_DIFFER = code("SP560", Disagreement)
NOBODY_CAME = code("SP561", Disagreement)
PROCESS_LOST = code("SP562")
UNSHARED = code("SP563")
CANNOT_JOIN = code("SP564")
PROCESS_ENDED = code("SP565")
