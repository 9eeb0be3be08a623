"""shardpass-opt from inside and, where the process matters, from outside."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from shardpass.cli import opt
from shardpass.cli.common import guarded, write_output
from shardpass.cli.opt_driver import split_input
from shardpass.diagnostics import ShardpassError

MODULE = "func.func @main() { return }\n"


def command(*arguments, **keywords):
    """The process ``shardpass-opt arguments``; it hears interrupts, even where who runs the tests ignores them."""
    hear = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code = hear + "from shardpass.cli.opt import main; sys.exit(main())"
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **keywords)


@pytest.fixture
def module(tmp_path):
    path = tmp_path / "m.mlir"
    path.write_text(MODULE)
    return path


def test_parts_keep_the_lines_of_the_file():
    text = "a\nb\n// -----\nc\n// ----- \n\n// -----not\n// -----"
    assert [(p.text, p.first_line) for p in split_input(text)] == [
        ("a\nb\n", 1), ("\nc\n", 3), ("\n\n// -----not\n", 5), ("", 8),
    ]  # fmt: skip


def test_text_without_a_marker_is_one_part():
    assert [(p.text, p.first_line) for p in split_input("a\nb")] == [("a\nb", 1)]


def test_parts_hold_all_lines_but_the_markers():
    text = MODULE + "// -----\n" + MODULE
    assert [p.text.strip() for p in split_input(text)] == [MODULE.strip()] * 2


def test_single_dash_flags_are_taken(module, tmp_path, capsys):
    assert opt.main([str(module), "-split-input-file", "-pass-pipeline=cse", "-o", str(tmp_path / "out")]) == 0
    assert "func.func @main" in (tmp_path / "out").read_text()
    assert capsys.readouterr() == ("", "")


def test_an_internal_error_is_no_traceback(capsys):
    broken = Mock(side_effect=RuntimeError("lost my way"))
    assert guarded(broken, []) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error: internal error in the command: RuntimeError: lost my way [SP199]" in printed.err
    assert "Traceback" not in printed.err


@pytest.mark.parametrize(("leaving", "status"), [(SystemExit(0), 0), (SystemExit(2), 2), (KeyboardInterrupt(), 130)])
def test_ways_to_end(leaving, status):
    def body(argv):
        raise leaving

    assert guarded(body, []) == status


def test_an_interrupt_ends_the_process_quietly():
    process = command("-", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while b"stdin_read" not in (wait := waits_for(process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (-signal.SIGINT, b""), wait  # a shell calls it 130


def waits_for(pid):
    """b"stdin_read" once the process has left its imports and blocks on reading its input."""
    wait = Path(f"/proc/{pid}/syscall")
    try:
        number = wait.read_text().split()[:2]
    except OSError:
        return b""
    return b"stdin_read" if number == ["0", "0x0"] else b""  # read(0, ...)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(tmp_path, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    big = tmp_path / "big.mlir"
    big.write_text("".join(f"func.func @f{i}() {{ return }}\n" for i in range(20_000)))
    read, write = os.pipe()
    process = command(big, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    os.read(read, 10)
    os.close(read)
    _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_slow_reader_gets_all(tmp_path, monkeypatch, unbuffered):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    big = tmp_path / "big.mlir"
    big.write_text("".join(f"func.func @f{i}() {{ return }}\n" for i in range(20_000)))
    with command(big, stdout=subprocess.PIPE) as process:
        first = os.read(process.stdout.fileno(), 10)  # the rest waits in the pipe, which holds a part of it
        time.sleep(0.5)
        text = first + process.stdout.read()
    assert text.count(b"func.func @f") == 20_000
    assert text.endswith(b"}\n}\n")


def test_output_takes_the_place_of_the_old_file_and_its_mode(tmp_path):
    path = tmp_path / "out.mlir"
    path.write_text("old")
    path.chmod(0o640)
    write_output(str(path), "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_output_goes_through_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_output(str(link), b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_a_new_file_has_the_usual_mode(tmp_path):
    plain, ours = tmp_path / "plain", tmp_path / "ours"
    plain.write_text("")
    write_output(str(ours), "")
    assert ours.stat().st_mode == plain.stat().st_mode


def test_output_to_a_device_is_written_there():
    write_output(os.devnull, "gone")
    assert Path(os.devnull).is_char_device()


def test_nothing_is_left_behind_where_writing_fails(tmp_path, monkeypatch):
    def refuse(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(ShardpassError, match="No space left on device") as caught:
        write_output(str(tmp_path / "out"), "new")
    assert caught.value.code == "SP121"
    assert list(tmp_path.iterdir()) == []


def test_help_does_not_wait_for_mlir():
    """Nor for dataclasses, which take as long to load as all that --help needs."""
    late = ["jaxlib", "numpy", "dataclasses", "tempfile", "shardpass.diagnostics"]
    code = f"import sys, shardpass.cli.opt as o; o.main(['--help']); sys.exit(any(n in sys.modules for n in {late}))"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_running_passes_does_not_import_jax(module):
    code = f"import sys, shardpass.cli.opt as o; o.main([{str(module)!r}, 'cse']); sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0
