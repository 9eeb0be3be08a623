"""Shared parts of all commands: exit status, and reading and writing files.

Exit status: 0 success, 1 bad input (one diagnostic on stderr, with place and remedy), 2 bad usage, 130 interrupted,
141 the reader of the output closed the pipe. Never a Python traceback.

Imports that ``--help`` does not need are inside functions: importing dataclasses alone (for diagnostics) takes as
long as the rest of a command that prints its help.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps

from shardpass.cli.color import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from rich.console import Console

    from shardpass.ir.doors import LargeFile
    from shardpass.ir.whole_file import Writer
    from shardpass.sharding import Mesh
    from shardpass.targets.target import Target

STDIN, STDOUT = "<stdin>", "<stdout>"

# What a write to a stream fails with: closed, full, over a limit, torn off.
_OF_STREAMS = frozenset((errno.EBADF, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))

PIPELINES = (
    "PIPELINE is a named pipeline (import, propagate, check, partition), a list of passes "
    "(shardpass-import,cse), or MLIR's textual form (builtin.module(shardpass-import,func.func(cse)))."
)


MACHINE_HELP = (
    "the machine for which the program is decided and planned, and its time modeled: h100, mi300x, v5p, "
    "or another in docs/reference/machines.md; or a file NAME.toml, such as one that shardpass calibrate "
    "writes (default: the machine of the module, else SHARDPASS_MACHINE, else h100)"
)
MODULE_HELP = (
    "a StableHLO module: MLIR text or bytecode, a portable or jax.export artifact, HLO text or proto; or "
    "train.py:step, the function step of a script, which runs until JAX compiles step; or -m "
    "pkg.train:step, for python -m pkg.train; or - for stdin, which is also the default if input is piped "
    "in"
)


def guarded(body: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Run a command's ``body`` on its arguments and always return an exit status.

    Prints errors on stderr. ``argv``: the arguments; by default those of the process. In that case the process is
    this command, and Ctrl-C ends it like a signal, because an exception could arise during an import, a pass called
    by MLIR, or XLA, none of which expects it. With ``argv``, Ctrl-C returns 130.
    """
    _fill_closed_streams()
    ends = interrupts_end_the_process() if argv is None else contextlib.nullcontext()
    try:
        try:
            with ends:
                status = body(sys.argv[1:] if argv is None else argv)
        except SystemExit as leaving:  # argparse: --help, bad usage
            status = leaving.code if isinstance(leaving.code, int) else 2
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        return _complain(_explained(error))


def command(body: Callable[[Sequence[str]], int]) -> Callable[..., int]:
    """Make the ``main`` of a command from its body, run by ``guarded``."""

    @wraps(body)
    def main(argv: Sequence[str] | None = None) -> int:
        return guarded(body, argv)

    return main


def _explained(error: Exception) -> Exception:
    """Format ``error`` for the user."""
    from shardpass.diagnostics import Place, ShardpassError
    from shardpass.diagnostics.internal import internal_error
    from shardpass.diagnostics.table_driver import CANNOT_WRITE

    if isinstance(error, ShardpassError):
        return error
    if isinstance(error, OSError) and error.errno in _OF_STREAMS and error.filename is None:
        hint = "give the standard output a reader, or a file on a device that has room; what was written is incomplete"
        return CANNOT_WRITE.error(Place(STDOUT), reason=_reason(error), hint=hint)
    return internal_error("the command", error)


def _complain(error: Exception) -> int:
    try:
        with contextlib.suppress(OSError, UnicodeError):  # the output failed already, and this is about it
            sys.stdout.flush()
        show(error, sys.stderr)
    except BrokenPipeError:
        return _reader_left()
    except OSError:  # nobody can read the message
        pass
    _drop_unwritten()
    return 1


def _reader_left() -> int:
    """Return the exit status if the reader of the output closed the pipe: 141."""
    _drop_unwritten()
    return 141


def _drop_unwritten() -> None:
    """Keep the interpreter from flushing to a closed pipe or a full device at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):  # the stream has no file
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except ValueError:  # closed
            continue


def _fill_closed_streams() -> None:
    """Open the standard streams that the caller closed, so that no later file gets their numbers.

    Reading and writing them then fails like a file: stdin is open for writing only, stdout for reading only.
    Messages to a closed stderr are dropped.
    """
    for number, name, flags in ((0, "stdin", os.O_WRONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, flags)  # takes the lowest free number, which may be another's
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        raw = io.FileIO(number, "r" if name == "stdin" else "w", closefd=False)
        buffer: Any = io.BufferedReader(raw) if name == "stdin" else io.BufferedWriter(raw)
        setattr(sys, name, io.TextIOWrapper(buffer, encoding="utf-8"))


@contextlib.contextmanager
def interrupts_end_the_process() -> Iterator[None]:
    """Let Ctrl-C end the process immediately inside the block, like a program in C.

    XLA runs programs in its own threads and calls back into Python. An exception in such a call is lost, or meets
    threads that still run while the interpreter shuts down. Nothing may be half-written inside the block.
    """
    import signal
    import threading

    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else decides what an interrupt does
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def make_console(width: int | None = None) -> Console:
    """Return a ``rich.console.Console`` on stdout that ends the command if the reader closes the pipe."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich calls this where it handles the exception, and would leave with status 1

    return Plain(highlight=False, width=width)


def argument_parser(name: str, description: str, epilog: str, *, pipeline: bool = False) -> argparse.ArgumentParser:
    """Return a parser for ``shardpass NAME``, or for ``shardpass-NAME`` if that was typed; "" is ``shardpass``.

    ``epilog``: the end of the help; indented lines, such as examples, are printed unchanged. With ``pipeline``, the
    help also explains PIPELINE.
    """
    typed = os.path.basename(sys.argv[0])
    parser = _Parser(
        prog=typed if typed == f"shardpass-{name}" else f"shardpass {name}".rstrip(),
        description=description,
        epilog=f"{PIPELINES}\n\n{epilog}" if pipeline else epilog,
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, help="print the versions and exit")
    return parser


def add_machine(parser: argparse.ArgumentParser, help: str = MACHINE_HELP) -> None:
    """Add ``--machine``."""
    parser.add_argument("--machine", metavar="M", help=help)


def add_target(parser: argparse.ArgumentParser, name: str = "target") -> None:
    """Add ``--target`` under the attribute ``name``; ``use_target`` reads it."""
    parser.add_argument(
        "--target",
        dest=name,
        metavar="T",
        help="compile for these devices by their own compiler, without the devices: v5e:16x16, v5p:2x2x4, h100:8, "
        "h100:4x8 (hosts x cards), cpu:8; sets --machine",
    )


def add_program(
    parser: argparse.ArgumentParser, usual: str | None = None, mesh: str | None = None, partitioner: str = ""
) -> None:
    """Add the options that determine the program of a module or script: ``--partitioner``, ``--machine``,
    ``--target``, ``--timeout`` and, with the help ``mesh``, ``--mesh``. ``use_program`` reads them.

    ``usual``: the default partitioner; None for shardpass, or XLA with a target. ``partitioner``: the help of
    ``--partitioner``.
    """
    xla, ours = ("XLA, as in jax.jit", "shardpass")
    order = (f"{ours} (default)", f"{xla} (default with --target)") if usual is None else (f"{xla} (default)", ours)
    help = f"the partitioner of the reported program: {order[0]}; {order[1]}; or Shardy's passes"
    parser.add_argument("--partitioner", choices=("shardpass", "xla", "shardy"), help=partitioner or help)
    if mesh is not None:
        parser.add_argument("--mesh", metavar="AXES", help=mesh)
    add_machine(parser)
    add_target(parser)
    add_timeout(parser)
    parser.set_defaults(usual_partitioner=usual)


def use_program(arguments: argparse.Namespace) -> None:
    """Read the options of ``add_program``. Raises ShardpassError as ``use_target``."""
    use_target(arguments)
    usual = arguments.usual_partitioner or ("shardpass" if arguments.target is None else "xla")
    arguments.partitioner = arguments.partitioner or usual


def use_target(arguments: argparse.Namespace, name: str = "target", *, compiles: bool = True) -> None:
    """Parse ``--target``, and set ``machine`` of ``arguments`` to the machine of the target unless one is given.

    Raises ShardpassError: SP908 for text that names no target, SP909 if the command ``compiles`` and the compiler is
    not installed.
    """
    if getattr(arguments, name) is None:
        return
    from shardpass.cost.chosen import machine_text
    from shardpass.targets import compiler
    from shardpass.targets.machine import machine_of
    from shardpass.targets.target import parse_target
    from shardpass.targets.versions import compiler_version

    target = parse_target(getattr(arguments, name))
    if compiles:
        compiler_version(target)
        compiler.tell = partial(print, file=sys.stderr, flush=True)
    setattr(arguments, name, target)
    arguments.machine = getattr(arguments, "machine", None) or machine_text(machine_of(target))


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Add ``--timeout``, for commands that take scripts."""
    from shardpass.cli.script import TIMEOUT

    parser.add_argument(
        "--timeout",
        type=seconds,
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"end a script that has not compiled its function after SECONDS (default: {TIMEOUT:.0f})",
    )


def seconds(text: str) -> float:
    """Read a positive number of seconds, as the type of an argument."""
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or not float(text):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a time: give seconds, such as 120")
    return float(text)


class _Help(argparse.HelpFormatter):
    """Wrap the paragraphs of descriptions and epilogs, except paragraphs with indented lines."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        return "\n\n".join(p if "\n  " in p else fill(p, width, indent) for p in text.split("\n\n"))


class _Parser(argparse.ArgumentParser):
    """An argument parser that suggests similar option names, and reports help that cannot be printed as an error.

    ``-m MODULE:FUNCTION`` is read as one word of the command line: the script ``python -m MODULE:FUNCTION``.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        while "-m" in words[:-1]:
            at = words.index("-m")
            words[at : at + 2] = [f"python -m {words[at + 1]}"]
        return super().parse_known_args(words, namespace)

    def error(self, message: str) -> NoReturn:
        super().error(message + self._near(message))

    def _near(self, message: str) -> str:
        """Suggest the word that the user probably meant in place of the word refused by ``message``."""
        from difflib import get_close_matches

        if unknown := re.match(r"unrecognized arguments: (--[\w-]+)", message):
            known = [
                name for action in self._actions for name in action.option_strings if action.help != argparse.SUPPRESS
            ]
            word = unknown[1]
        elif unknown := re.match(r"argument \S+: invalid choice: '([^']*)' \(choose from (.*)\)", message):
            word, known = unknown[1], re.findall(r"[\w-]+", unknown[2])
        else:
            return ""
        near = [name for name in known if name.endswith(word.lstrip("-"))] or get_close_matches(word, known, 1)
        return f"; did you mean {near[0]}?" if near else ""

    def print_help(self, file: Any = None) -> None:
        print(self.format_help(), end="", file=file)


class _Version(argparse.Action):
    """Print the versions that matter for a bug report. They are looked up only on request."""

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

        from shardpass import __version__

        print(", ".join((f"shardpass {__version__}", *(f"{name} {version(name)}" for name in ("jax", "jaxlib")))))
        parser.exit(0)


def read_module(
    parser: argparse.ArgumentParser,
    given: str | None,
    timeout: float | None = None,
    target: Target | None = None,
) -> tuple[bytes | LargeFile, str]:
    """Read the module at the path ``given``, or from stdin without a path; without any input, a usage error."""
    if given is not None:
        return module_at(given, timeout, target)
    piped = not (sys.stdin is None or sys.stdin.isatty())
    data = module_at("-")[0] if piped else b""
    if isinstance(data, bytes) and not data.strip():
        parser.error("the following arguments are required: MODULE")
    return data, STDIN


def module_at(path: str, timeout: float | None = None, target: Target | None = None) -> tuple[bytes | LargeFile, str]:
    """Read a module like ``read_input``, but leave a large file to its parser; a large stdin becomes a file.

    ``FILE.py:FUNCTION`` is the program of a function of a script (``shardpass.cli.script``), which may run for
    ``timeout`` seconds, lowered for ``target``.

    Raises ShardpassError: SP120 as ``read_input``, SP121 where there is no room for a file of what comes from stdin,
    SP141, SP142 and SP144 to SP146 where the script has no such program.
    """
    from shardpass.cli.script import TIMEOUT, file_of, is_script, program_of
    from shardpass.ir.doors import LargeFile

    if path == "-":
        from shardpass.ir.spooled import spooled

        try:
            return spooled(sys.stdin.buffer), STDIN
        except (OSError, ValueError) as error:
            raise _cannot_read(path, error) from None
    if is_script(path):
        read_input(file_of(path))
        return program_of(path, TIMEOUT if timeout is None else timeout, target)
    if path.endswith(".py"):
        raise _no_function(path)
    large = LargeFile.at(path)
    return read_input(path) if large is None else (large, path)


def _no_function(path: str) -> Exception:
    from shardpass.cli.script_names import functions_of
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import NO_FUNCTION

    read_input(path)
    jitted, defined = functions_of(path)
    known = jitted or defined
    shown = f"{'jitted' if jitted else 'defined'} here: {', '.join(known[:10]) or 'none'}"
    example = next((name for name in known if "step" in name), (known or ["step"])[-1])
    return NO_FUNCTION.error(Place(path), file=path, example=example, known=shown)


def read_axes(text: str) -> Mesh:
    """Parse the mesh ``data=4,model=2``. Raises ShardpassError (SP805, or the error of the axes)."""
    from shardpass.diagnostics.table_suggest import MESH_TEXT
    from shardpass.sharding import Mesh

    axes = []
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if not name.isidentifier() or not size.isascii() or not size.isdigit():
            raise MESH_TEXT.error(text=repr(text))
        axes.append((name, int(size)))
    return Mesh(axes)


def number_of(what: str, least: int, most: int) -> Callable[[str], int]:
    """Return the type of an argument that is a number of ``what``, from ``least`` to ``most``."""

    def read(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,18}", text) and least <= int(text) <= most:
            return int(text)
        shown = text if len(text) <= 20 else f"{text[:20]}..."
        raise argparse.ArgumentTypeError(
            f"{shown!r} is not a number of {what}: give an integer from {least:,} to {most:,}"
        )

    return read


def read_input(path: str) -> tuple[bytes, str]:
    """Return the bytes of the file ``path`` ("-": stdin), and its name in diagnostics.

    Raises ShardpassError (SP120) where it cannot be read.
    """
    from shardpass.ir.spooled import with_an_end

    try:
        if path == "-":
            return with_an_end(sys.stdin.buffer).read(), STDIN
        with open(path, "rb") as file:
            return with_an_end(file).read(), path
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise _cannot_read(path, error) from None


def _cannot_read(path: str, error: OSError | ValueError) -> Exception:
    from shardpass.diagnostics import Place
    from shardpass.diagnostics.table_driver import CANNOT_READ

    if path == "-":
        return CANNOT_READ.error(Place(STDIN), reason=_reason(error), hint="name a file, or open stdin")
    return CANNOT_READ.error(Place(path), reason=_reason(error), hint=_instead_of(path))


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _instead_of(path: str) -> str:
    """Suggest the file that was probably meant by a name without a file."""
    from shardpass.pipeline.named import NAMED

    if os.path.isdir(path):
        return _in_folder(path)
    if path in NAMED or path.startswith(("shardpass-", "builtin.module(")):
        return f"the module comes first, then the pipeline: MODULE '{path}', or - '{path}' for stdin"
    return "check the path; - reads stdin"


def _in_folder(path: str) -> str:
    """Ask which module of an --xla_dump_to folder is meant."""
    names = sorted(name for name in os.listdir(path) if name.endswith((".mlir", ".before_optimizations.txt", ".pb")))
    if not names:
        return "it is a folder: name a file"
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"it is a folder: name a file in it ({shown})"


def write_output(path: str, data: str | bytes | Writer) -> None:
    """Write ``data`` to the file ``path`` ("-": stdout); on failure, the file does not change.

    Raises ShardpassError (SP121) where that is impossible.
    """
    from shardpass.ir.whole_file import Pieces, write_whole

    if path == "-":
        sys.stdout.flush()
        Pieces(sys.stdout.buffer).written(data)
        sys.stdout.buffer.flush()
        return
    try:
        write_whole(path, data)
    except (OSError, ValueError) as error:
        from shardpass.diagnostics import Place
        from shardpass.diagnostics.table_driver import CANNOT_WRITE

        hint = "check that the folder exists and that you may write to it; no file was changed"
        raise CANNOT_WRITE.error(Place(path), reason=_reason(error), hint=hint) from None
