"""The forms in which a module leaves: MLIR text and bytecode, portable StableHLO, HLO text.

Each is read again by ``doors``. What each keeps:

| form | dialects | locations | attributes of arguments (``mhlo.sharding``, ``shardpass.*``) |
|---|---|---|---|
| text | all | if asked for | all |
| bytecode | all | all | all |
| portable | StableHLO, of an older version too; sdy | all | all |
| HLO text | StableHLO, CHLO, MHLO, sdy | as ``metadata`` | ``mhlo.sharding`` |

The last two are converted in a process of their own: jaxlib ends its process on some modules that it does not take.
"""

from __future__ import annotations

import enum
import io
import re
import sys
from typing import Any

from jaxlib.mlir import ir

from shardpass.diagnostics.table_driver import CANNOT_EMIT, PORTABLE_VERSION
from shardpass.ir.annotations import NUM_PARTITIONS
from shardpass.ir.child import said_last, served_by
from shardpass.ir.dialects import make_context
from shardpass.ir.walk import every_op


class Form(enum.Enum):
    """The words of ``--emit`` beside ``stablehlo``, which is MLIR text; the value is what messages call the form."""

    bytecode = "MLIR bytecode"
    vhlo = "a portable StableHLO artefact"
    hlo = "HLO text"


_SAYS = {Form.vhlo: {"sdy"}, Form.hlo: {"sdy", "chlo", "mhlo"}}  # of dialects beside StableHLO


def written(module: Any, form: Form, version: str = "") -> bytes:
    """``module`` in ``form``, for ``vhlo`` in StableHLO's ``version`` ("1.8.0"; none: that of this jaxlib).

    Raises ShardpassError: SP133 where jaxlib does not convert the module, SP134 where it writes no such version.
    """
    bytecode = _bytecode(module)
    if form is Form.bytecode:
        return bytecode
    if version:
        _check_version(version)
    child = served_by("shardpass.ir.written", "serve", form.name, version, data=bytecode)
    if child.returncode:
        foreign = sorted(_foreign(module) - _SAYS[form])
        hint = (
            f"this form has no word for ops of {', '.join(foreign)}: run a pipeline first that leaves none, as "
            "`partition` does"
            if foreign
            else "write it with --emit stablehlo or --emit bytecode"
        )
        raise CANNOT_EMIT.error(what=form.value, reason=said_last(child), hint=hint)
    return child.stdout


def serve(name: str, version: str) -> None:
    """The child process: MLIR bytecode on stdin, the same module in the form ``name`` on stdout."""
    context = make_context()
    with context:
        module = ir.Module.parse(sys.stdin.buffer.read())
    sys.stdout.buffer.write(_portable(module, version) if Form[name] is Form.vhlo else _hlo(module).encode())
    sys.stdout.buffer.flush()


def _portable(module: Any, version: str) -> bytes:
    from jaxlib.mlir.dialects import stablehlo as hlo

    with module.context:
        # Shardy's annotations stay as they are, as in what jax.export writes; they are not portable between versions
        mixed = _foreign(module) == {"sdy"}
        made: bytes = hlo.serialize_portable_artifact(module, version or hlo.get_current_version(), mixed)
    return made


def _hlo(module: Any) -> str:
    """With the number of partitions in its first line: a computation has none, and XLA's tools read it there."""
    from shardpass.ir import jax_private

    text = jax_private.mlir_to_hlo_text(_bytecode(module))
    if NUM_PARTITIONS not in module.operation.attributes:
        return text
    count = int(module.operation.attributes[NUM_PARTITIONS].value)
    return re.sub(r"^HloModule [^\n]*", lambda found: f"{found[0]}, num_partitions={count}", text, count=1)


def _bytecode(module: Any) -> bytes:
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _foreign(module: Any) -> set[str]:
    """The dialects of ops in ``module`` beside StableHLO and what every module has."""
    found = {op.name.partition(".")[0] for op in every_op(module.operation)}
    return found - {"builtin", "func", "stablehlo"}


def _check_version(version: str) -> None:
    from jaxlib.mlir.dialects import stablehlo as hlo

    oldest, newest = hlo.get_minimum_version(), hlo.get_current_version()
    if not _number(oldest) <= _number(version) <= _number(newest):
        raise PORTABLE_VERSION.error(version=version, oldest=oldest, newest=newest)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
