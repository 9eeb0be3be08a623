"""Injects faults into the commands, and holds what is left to laws.

    python -m tools.fuzz.faults                 # all cases, a few minutes
    python -m tools.fuzz.faults --only 17 123   # some, by number
    python -m tools.fuzz.faults --every 40      # a sample
    python -m tools.fuzz.faults --list

Laws, of every case:

1. the output file is what it was before, or what the command writes when nothing happens; no part of it, and no
   temporary file, lies beside it;
2. the exit status is 0; or 1 with an error that has a code, and none that says "internal"; 130 or the signal, if it was
   interrupted; 141, if its reader left;
3. there is no Python traceback on stderr;
4. no process stays behind, and the command ends in time;
5. an HTML page holds no element that an input named.

Exit status 1 if any case breaks a law. The cases are in ``fault_cases``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.fuzz.fault_cases import COMMANDS, FORMATS, UNWRITABLE, Case, Fault, cases, odd_module
from tools.fuzz.fault_laws import OLD, Ended, Usual, of_ends, of_output
from tools.processes import environment

SECONDS = 120
MODULE = """
module attributes {mhlo.num_partitions = 4 : i32} {
  func.func @main(%x: tensor<64x64xf32> {mhlo.sharding = "{devices=[4,1]<=[4]}"})
      -> (tensor<64x64xf32> {mhlo.sharding = "{devices=[1,4]<=[4]}"}) {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %1 = stablehlo.sine %0 : tensor<64x64xf32>
    return %1 : tensor<64x64xf32>
  }
}
"""
# Until shardpass has been imported, an interrupt is Python's own matter; then the child says so.
START = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import shardpass.cli
if "{most}":
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int("{most}"),) * 2)
if "{ready}":
    os.write(int("{ready}"), b".")
"""
BETWEEN = """
from shardpass.pipeline import run as module
made, left = module._Run._callable, [{count}]
def counted(self, index, own):
    run = made(self, index, own)
    def interrupted(operation, handle):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGINT)
        left[0] -= 1
        return run(operation, handle)
    return interrupted
module._Run._callable = counted
"""


class Faults:
    """Runs cases in folders below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inputs: dict[str, Path] = {}
        self.usual: dict[tuple[str, str], Usual] = {}

    def broken(self, case: Case) -> list[str]:
        """The laws that ``case`` breaks, in words."""
        folder = Path(tempfile.mkdtemp(prefix=f"{case.number}-", dir=self.root))
        usual = self._usual(case)
        given = self._torn(case, folder) if case.fault in (Fault.TORN, Fault.CHANGED) else self._input(case.input)
        target = self._target(case, folder)
        exists = case.fault is not Fault.UNWRITABLE
        if exists:
            target.write_bytes(OLD)
        before = set(os.listdir(folder))
        ended = self._run(case, given, target, usual)
        found = list(of_ends(case, ended))
        left = set(os.listdir(folder)) - before
        if left:
            found.append(f"left behind: {', '.join(sorted(left))}")
        if exists:
            found += of_output(case, target.read_bytes(), ended, usual)
        return found

    # ---------------------------------------------------------------- inputs

    def _input(self, name: str) -> Path:
        if name not in self.inputs:
            path = self.root / f"input-{name}"
            if name == "text":
                path.write_text(MODULE)
            elif name in FORMATS:
                self._converted(name, path)
            else:
                path.write_bytes(odd_module(name))
            self.inputs[name] = path
        return self.inputs[name]

    def _converted(self, name: str, path: Path) -> None:
        if name == "proto":
            from shardpass.ir.jax_private import hlo_text_to_proto

            path.write_bytes(hlo_text_to_proto(self._input("hlo").read_text()))
            return
        form = {"portable": "vhlo"}.get(name, name)
        command = _command(["opt", str(self._input("text")), "--emit", form, "-o", str(path)])
        if (ended := run(command)).status:
            raise RuntimeError(f"no input of the form {name}: {ended.err}")

    def _torn(self, case: Case, folder: Path) -> Path:
        data = bytearray(self._input(case.input).read_bytes())
        if case.fault is Fault.TORN:
            del data[int(len(data) * case.amount) :]
        else:
            rng = random.Random(case.amount)
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        path = folder / "torn"
        path.write_bytes(data)
        return path

    def _target(self, case: Case, folder: Path) -> Path:
        if case.fault is not Fault.UNWRITABLE:
            return folder / "out"
        (folder / "a-folder").mkdir()
        (folder / "a-file").touch()
        return folder / UNWRITABLE[int(case.amount)]

    def _usual(self, case: Case) -> Usual:
        """Of the whole input: a torn one is judged by its exit alone."""
        key = (case.command, case.input)
        if key not in self.usual:
            target = self.root / f"usual-{case.command}-{case.input}"
            ended = run(_command(_words(case, self._input(case.input), target)))
            written = COMMANDS[case.command][1] and target.exists()
            self.usual[key] = Usual(target.read_bytes() if written else None, ended.seconds)
        return self.usual[key]

    # ---------------------------------------------------------------- the fault

    def _run(self, case: Case, given: Path, target: Path, usual: Usual) -> Ended:
        words = _words(case, given, target)
        match case.fault:
            case Fault.INTERRUPT:
                return run(_command(words), interrupt=usual.seconds * case.amount)
            case Fault.BETWEEN:
                return run(_command(words, BETWEEN.replace("{count}", str(int(case.amount)))))
            case Fault.FULL:
                return run(_command(words), most=int(len(usual.output or b"") * case.amount))
            case Fault.LEAVES:
                return run(_command(words), reads=int(case.amount))
            case Fault.CHILD:
                return run(_command(words), kill_child=usual.seconds * case.amount)
        return run(_command(words))


def _words(case: Case, given: Path, target: Path) -> list[str]:
    stands = {"IN": str(given), "OUT": str(target)}
    return [stands.get(word, word) for word in COMMANDS[case.command][0]]


def _command(words: Sequence[str], first: str = "") -> list[str]:
    module = words[0].replace("-", "_")
    code = f"{START}{first}\nfrom shardpass.cli.{module} import main; sys.exit(main())"
    return [sys.executable, "-c", code, *words[1:]]


def _environment() -> dict[str, str]:
    return {**environment(), "JAX_PLATFORMS": "cpu"}


def run(
    command: Sequence[str],
    *,
    interrupt: float | None = None,
    most: int | None = None,
    reads: int | None = None,
    kill_child: float | None = None,
) -> Ended:
    """Runs ``command``, which ``_command`` made, in a session of its own.

    ``interrupt``: Ctrl-C after so many seconds; ``most``: bytes that a file may have; ``reads``: bytes after which the
    reader of stdout leaves; ``kill_child``: seconds after which its own children are killed, as soon as there is one.
    """
    ready, says = os.pipe()
    start = time.monotonic()
    process = subprocess.Popen(
        [_filled(word, ready=None if interrupt is None else says, most=most) for word in command],
        pass_fds=[says],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    os.close(says)
    out = err = b""
    try:
        if interrupt is not None:
            os.read(ready, 1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(interrupt)
            _signal_group(process.pid, signal.SIGINT)
        if kill_child is not None:
            _kill_children(process, start + kill_child)
        if reads is not None:
            out = process.stdout.read(reads) if reads else b""
            process.stdout.close()
            err = process.stderr.read()
            process.stderr.close()
            process.wait(SECONDS)
        else:
            out, err = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        _signal_group(process.pid, signal.SIGKILL)
        process.communicate()
        return Ended(-signal.SIGKILL, out, f"took more than {SECONDS} s", SECONDS, False)
    finally:
        os.close(ready)
    seconds = time.monotonic() - start
    stray = _stays(process.pid)
    return Ended(process.returncode, out, err.decode("utf-8", "replace"), seconds, stray)


def _filled(word: str, **values: int | None) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", "" if value is None else str(value))
    return word


def _signal_group(group: int, number: int) -> bool:
    """Whether there was anyone in the group to get the signal."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def _stays(group: int) -> bool:
    """Whether anyone of the group lives after a second, in which what got the signal too may end."""
    end = time.monotonic() + 1
    while _alive(group):
        if time.monotonic() > end:
            return _signal_group(group, signal.SIGKILL)
        time.sleep(0.01)
    return False


def _alive(group: int) -> bool:
    """An orphan that has ended may stay as a zombie, where nobody asks for its status."""
    if not _signal_group(group, 0):
        return False
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            state, _, of = stat.read_text().rpartition(") ")[2].split()[:3]
            if int(of) == group and state != "Z":
                return True
    return False


def _kill_children(process: subprocess.Popen[bytes], after: float) -> None:
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        time.sleep(0.005)
        with contextlib.suppress(OSError, ProcessLookupError):
            children = [int(child) for child in path.read_text().split()]
            if children and time.monotonic() >= after:
                for child in children:
                    os.kill(child, signal.SIGKILL)
                return


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="the numbers of the cases to run")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th case (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="another one, other moments and other bytes (default: 0)")
    parser.add_argument("--list", action="store_true", help="list the cases, and run none")
    arguments = parser.parse_args()
    only, every = arguments.only, arguments.every
    chosen = [c for c in cases(arguments.seed) if (c.number in only if only else c.number % every == 0)]
    if arguments.list:
        print("\n".join(map(str, chosen)))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        faults = Faults(Path(folder))
        for case in chosen:
            if found := faults.broken(case):
                failed += 1
                print(f"{case}", *found, sep="\n    ", flush=True)
    print(f"{len(chosen)} cases, {failed} break a law")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
