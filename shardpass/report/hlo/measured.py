"""Match the rows of an HLO report with a profile, by op names."""

from __future__ import annotations

from collections.abc import Sequence

from shardpass.hlo.collectives import HloCollective
from shardpass.hlo.read import HloProgram
from shardpass.report.profile import Measured, Share, join, newest, read_events
from shardpass.report.rows import Row


def measured(program: HloProgram, made: Sequence[tuple[Row, HloCollective]], folder: str) -> Measured:
    """Return the rows' measured seconds by the profile in ``folder``; ``made``: rows with their collectives."""
    files = newest(folder)
    done = _dones(program)
    whole: dict[int, list[float]] = {}
    for row, one in made:
        whole.setdefault(id(one), []).append(row.seconds)
    rows = []
    for row, one in made:
        parts = whole[id(one)]
        share = row.seconds / sum(parts) if sum(parts) else 1 / len(parts)
        rows.append(Share((one.op.name, *done.get(one.op.name, ())), one.times, share))
    return join(read_events(files), program.name, rows, str(files[0]))


def _dones(program: HloProgram) -> dict[str, tuple[str, ...]]:
    """Map the name of an asynchronous start, or of a collective inside a start, to the other ops of the pair."""
    result: dict[str, tuple[str, ...]] = {}
    for computation in program.computations.values():
        for op in computation.ops.values():
            if op.opcode.endswith("-done") and op.operands and op.operands[0] in computation.ops:
                start = computation.ops[op.operands[0]]
                result[start.name] = (op.name,)
                for _, called in start.called:
                    inner = program.computations.get(called)
                    for one in () if inner is None else inner.ops.values():
                        result[one.name] = (start.name, op.name)
    return result
