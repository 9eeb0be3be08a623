"""SP9xx: machines, for which programs are decided, planned and timed, and targets, for which they are compiled."""

from __future__ import annotations

from shardpass.diagnostics.core import code

UNKNOWN_MACHINE = code("SP901")
UNREADABLE_MACHINE = code("SP902")
BAD_MACHINE = code("SP903")
OTHER_MACHINE = code("SP904")
UNKNOWN_DEVICE = code("SP906")
MEASURED_ELSEWHERE = code("SP907")
UNKNOWN_TARGET = code("SP908")
NO_COMPILER = code("SP909")
TARGET_SIZE = code("SP910")
TARGET_FAILED = code("SP911")
TARGET_PARTITIONER = code("SP912")
