"""Write modules in their output forms: MLIR text and bytecode, portable StableHLO, HLO text.

Each is read again by ``doors``. What each keeps:

| form | dialects | locations | attributes of arguments (``mhlo.sharding``, ``shardpass.*``) |
|---|---|---|---|
| text | all | if asked for | all |
| bytecode | all | all | all |
| portable | StableHLO, of an older version too; sdy | all | all |
| HLO text | StableHLO, CHLO, MHLO, sdy | as ``metadata`` | ``mhlo.sharding`` |

The last two are converted in a separate process: jaxlib ends its process on some modules that it does not support.
"""

from __future__ import annotations

import enum
import io
from collections.abc import Iterator
from typing import Any, BinaryIO

from jaxlib.mlir import ir

from shardpass.diagnostics.table_driver import CANNOT_EMIT, PORTABLE_VERSION
from shardpass.ir.annotations import NUM_PARTITIONS
from shardpass.ir.child import answer, failure_of, making_files, served_by, served_by_files, temporary_file
from shardpass.ir.dialects import make_context
from shardpass.ir.doors import LARGE, PIECE
from shardpass.ir.walk import every_op


class Form(enum.Enum):
    """The forms of ``--emit`` apart from ``stablehlo``, which is MLIR text; values are names in messages."""

    bytecode = "MLIR bytecode"
    vhlo = "a portable StableHLO artefact"
    hlo = "HLO text"


_SAYS = {Form.vhlo: {"sdy"}, Form.hlo: {"sdy", "chlo", "mhlo"}}  # of dialects beside StableHLO


def written(module: Any, form: Form, version: str = "") -> BinaryIO:
    """Write ``module`` as ``vhlo`` or ``hlo`` to a temporary file, positioned at its start.

    ``version``: of StableHLO, for ``vhlo`` ("1.8.0"; none: that of this jaxlib). A large module
    goes to the child and comes back in files.

    Raises ShardpassError: SP133 where jaxlib does not convert the module, SP134 where it writes no such version, SP121
    where there is no room for files.
    """
    if version:
        _check_version(version)
    data, call = bytecode(module), ("shardpass.ir.written", "serve", form.name, version)
    made: BinaryIO
    if len(data) < LARGE:
        child = served_by(*call, data=data)
        made = io.BytesIO(child.stdout)
    else:
        with making_files():
            made = temporary_file()
            with temporary_file() as given:
                given.write(data)
                del data
                given.seek(0)
                child = served_by_files(*call, source=given, sink=made)
            made.seek(0)
    if child.returncode:
        made.close()
        foreign = sorted(_foreign(module) - _SAYS[form])
        hint = (
            f"this form has no word for ops of {', '.join(foreign)}: run a pipeline first that leaves none, as "
            "`partition` does"
            if foreign
            else "write it with --emit stablehlo or --emit bytecode"
        )
        raise CANNOT_EMIT.error(what=form.value, reason=failure_of(child), hint=hint)
    return made


def serve(name: str, version: str) -> None:
    """Run in the child process: MLIR bytecode on stdin, the same module in the form ``name`` on stdout."""
    with make_context():
        module = ir.Module.parseFile("/dev/fd/0")
    pieces = [_portable(module, version)] if Form[name] is Form.vhlo else _hlo(module)
    with answer() as out:
        out.writelines(pieces)


def _portable(module: Any, version: str) -> bytes:
    from jaxlib.mlir.dialects import stablehlo as hlo

    with module.context:
        # Shardy's annotations stay as they are, as in what jax.export writes; they are not portable between versions
        mixed = _foreign(module) == {"sdy"}
        made: bytes = hlo.serialize_portable_artifact(module, version or hlo.get_current_version(), mixed)
    return made


def _hlo(module: Any) -> Iterator[bytes]:
    """Write HLO with the number of partitions in the first line, as XLA's tools expect."""
    from shardpass.ir import jax_private

    attributes = module.operation.attributes
    count = int(attributes[NUM_PARTITIONS].value) if NUM_PARTITIONS in attributes else None
    text = jax_private.mlir_to_hlo_text(bytecode(module))
    start = text.find("\n") if text.startswith("HloModule ") and count is not None else 0
    if start > 0:
        yield f"{text[:start]}, num_partitions={count}".encode()
    for at in range(max(start, 0), len(text), PIECE):
        yield text[at : at + PIECE].encode()


def bytecode(module: Any) -> bytes:
    """Write ``module`` as MLIR bytecode, locations included."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _foreign(module: Any) -> set[str]:
    """Return the dialects of ``module``'s ops apart from StableHLO and dialects that every module has."""
    names = {op.name.partition(".")[0] for op in every_op(module.operation)}
    return names - {"builtin", "func", "stablehlo"}


def _check_version(version: str) -> None:
    from jaxlib.mlir.dialects import stablehlo as hlo

    oldest, newest = hlo.get_minimum_version(), hlo.get_current_version()
    if not _number(oldest) <= _number(version) <= _number(newest):
        raise PORTABLE_VERSION.error(version=version, oldest=oldest, newest=newest)


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
