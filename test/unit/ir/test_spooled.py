"""What comes through a pipe: bytes where it is small, a file without a name where it is large."""

from __future__ import annotations

import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from shardpass.cli.common import module_at, read_input
from shardpass.diagnostics import ShardpassError
from shardpass.ir import spooled as spooling
from shardpass.ir.context import parse_module
from shardpass.ir.doors import FIRST, Format, LargeFile
from shardpass.ir.spooled import spooled

TEXT = b"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }\n"
SMALL = 4096


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 4 KiB on it is large, and goes in pieces of 100 bytes."""
    monkeypatch.setattr(spooling, "LARGE", SMALL)
    monkeypatch.setattr(spooling, "PIECE", 100)


def padded(size: int) -> bytes:
    return TEXT + b"//" + b"x" * (size - len(TEXT) - 3) + b"\n"


@pytest.mark.parametrize("size", [200, SMALL - 1])
def test_a_small_one_is_its_bytes(size: int, few: None) -> None:
    assert spooled(io.BytesIO(padded(size))) == padded(size)


@pytest.mark.parametrize("size", [SMALL, SMALL + 1, SMALL + 250, FIRST + SMALL])
def test_a_large_one_is_a_file(size: int, few: None) -> None:
    found = spooled(io.BytesIO(padded(size)))
    assert isinstance(found, LargeFile)
    assert found.format is Format.TEXT
    assert found.read() == padded(size) == found.read()
    assert "@main" in str(parse_module(found, "<stdin>"))


def test_the_file_is_gone_with_who_holds_it(few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = spooled(io.BytesIO(padded(2 * SMALL)))
    assert isinstance(found, LargeFile)
    assert os.path.exists(found.path)
    assert list(tmp_path.iterdir()) == []  # it has no name, so that nobody has to delete it
    path = found.path
    del found
    gc.collect()
    assert not os.path.exists(path)


def test_what_is_no_mlir_is_its_bytes(few: None) -> None:
    data = b"HloModule m\n" + b" " * SMALL
    assert spooled(io.BytesIO(data)) == data


def test_a_file_as_stdin_is_not_copied(few: None, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(padded(20 << 20))
    with (tmp_path / "m").open("rb") as file:
        found = spooled(file)
        assert isinstance(found, LargeFile)
        assert found.kept is None
        assert os.path.samestat(os.stat(found.path), os.fstat(file.fileno()))
    with (tmp_path / "m").open("rb") as file:
        file.readline()  # of which a part is read already
        rest = spooled(file)
        assert isinstance(rest, LargeFile)
        assert rest.read() == padded(20 << 20)[len(TEXT) :]


def test_no_room_for_the_file(tmp_path: Path) -> None:
    """No file of the process may be larger than 17 MiB, and 18 come."""
    most = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (17 << 20, 17 << 20)); "
    code = f"{most}import sys; from shardpass.cli.explain import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], input=padded(18 << 20), capture_output=True, check=False)
    assert done.returncode == 1
    assert b"File too large [SP121]" in done.stderr
    assert b"TMPDIR" in done.stderr


class Torn(io.BytesIO):
    """A pipe that breaks behind its first bytes."""

    def read(self, size: int | None = -1) -> bytes:
        if self.tell():
            raise OSError(5, "Input/output error")
        return super().read(size)


def test_a_pipe_that_breaks(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Torn(padded(2 * SMALL))))
    with pytest.raises(ShardpassError) as caught:
        module_at("-")
    assert [d.code for d in caught.value.diagnostics] == ["SP120"]


@pytest.mark.fresh_process  # its open files are looked at by its number
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_the_command_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    code = "from shardpass.cli.explain import main; main()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        process.stdin.write(padded(18 << 20))
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not (spool := spools(process.pid, tmp_path)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert spool
        process.send_signal(how)
        process.wait(60)
    assert process.returncode == -how
    assert list(tmp_path.iterdir()) == []


def spools(process: int, folder: Path) -> list[str]:
    """The files in ``folder``, with a name or without, that a process has open."""
    links = Path(f"/proc/{process}/fd")
    return [target for link in links.iterdir() if (target := os.readlink(link)).startswith(str(folder))]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_a_device_without_end_is_refused(device: str) -> None:
    with open(device, "rb") as file, pytest.raises(OSError, match="read without end"):
        spooled(file)


def test_the_null_device_ends() -> None:
    with open(os.devnull, "rb") as file:
        assert spooled(file) == b""


def test_a_command_names_a_device_without_end() -> None:
    with pytest.raises(ShardpassError, match="read without end") as error:
        read_input("/dev/zero")
    assert error.value.diagnostics[0].code == "SP120"
