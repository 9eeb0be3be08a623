"""What every command shares: how it ends, and how it reads and writes files.

Exit status: 0 success, 1 bad input (one diagnostic on stderr, with place and remedy), 2 bad usage,
130 interrupted, 141 the reader of our output went away. Never a Python traceback.

Imports that ``--help`` does not need stand in functions: dataclasses alone (of the diagnostics) take as long to load as
the rest of a command that prints its help.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Sequence

STDIN = "<stdin>"

PIPELINES = (
    "PIPELINE is a named pipeline (import, propagate, check, partition), a list of passes "
    "(shardpass-import,cse), or MLIR's textual form (builtin.module(shardpass-import,func.func(cse)))."
)


def guarded(body: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Runs a command's ``body`` on its arguments and returns its exit status, whatever happens.

    Errors are printed on stderr here; ``argv`` is the process's own arguments unless given.
    """
    try:
        status = body(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return status
    except SystemExit as leaving:  # argparse: --help, bad usage
        return leaving.code if isinstance(leaving.code, int) else 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        from shardpass.diagnostics import ShardpassError
        from shardpass.diagnostics.internal import internal_error

        return _complain(error if isinstance(error, ShardpassError) else internal_error("the command", error))


def _complain(error: Exception) -> int:
    try:
        sys.stdout.flush()
        print(error, file=sys.stderr, flush=True)
    except BrokenPipeError:
        return _reader_left()
    return 1


def _reader_left() -> int:
    """Nobody reads on: keep the interpreter from flushing to the closed pipe as it ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):  # the stream has no file
            continue
    return 141


def argument_parser(prog: str, description: str, *, pipeline: bool = False) -> argparse.ArgumentParser:
    """A parser for the command ``prog``; with ``pipeline``, its help ends with what a PIPELINE is."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=PIPELINES if pipeline else None,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the versions and exit")
    return parser


class _Version(argparse.Action):
    """Prints the versions that matter for a bug report; they are looked up when asked for alone."""

    def __init__(self, option_strings: Sequence[str], dest: str, help: str | None = None) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        from importlib.metadata import version

        print(", ".join(f"{name} {version(name)}" for name in ("shardpass", "jax", "jaxlib")))
        parser.exit(0)


def read_input(path: str) -> tuple[bytes, str]:
    """The bytes of the file ``path`` ("-": stdin), and the name that diagnostics give it.

    Raises ShardpassError (SP120) where it cannot be read.
    """
    if path == "-":
        return sys.stdin.buffer.read(), STDIN
    try:
        with open(path, "rb") as file:
            return file.read(), path
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        from shardpass.diagnostics import Place
        from shardpass.diagnostics.table_driver import CANNOT_READ

        raise CANNOT_READ.error(Place(path), reason=_reason(error), hint=_instead_of(path)) from None


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _instead_of(path: str) -> str:
    """What was probably meant by a file name that is none."""
    from shardpass.pipeline.named import NAMED

    if path in NAMED or path.startswith(("shardpass-", "builtin.module(")):
        return f"the module comes first, then the pipeline: MODULE '{path}', or - '{path}' for stdin"
    return "check the path; - reads stdin"


def write_output(path: str, data: str | bytes) -> None:
    """Writes ``data`` to the file ``path`` ("-": stdout), all of it or, where that fails, nothing.

    The file is written beside its place and renamed. Raises ShardpassError (SP121) where that is impossible.
    """
    raw = data.encode() if isinstance(data, str) else data
    if path == "-":
        sys.stdout.flush()
        rest = memoryview(raw)
        while rest:  # with PYTHONUNBUFFERED a write to a pipe may take a part only
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
        return
    try:
        _replace(os.path.realpath(path), raw)
    except (OSError, ValueError) as error:
        from shardpass.diagnostics import Place
        from shardpass.diagnostics.table_driver import CANNOT_WRITE

        raise CANNOT_WRITE.error(Place(path), reason=_reason(error)) from None


def _replace(target: str, data: bytes) -> None:
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None and not stat.S_ISREG(mode):
        if stat.S_ISDIR(mode):
            raise IsADirectoryError("it is a directory")
        with open(target, "wb") as device:  # a device or a pipe cannot be replaced
            device.write(data)
        return
    from tempfile import mkstemp

    folder, last = os.path.split(target)
    descriptor, name = mkstemp(prefix=f".{last}.", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(name, stat.S_IMODE(mode) if mode is not None else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        if os.path.exists(name):
            os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
