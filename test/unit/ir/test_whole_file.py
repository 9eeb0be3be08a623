"""Files are written whole or not at all, by one writer."""

import ast
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import shardpass

# each writes a long text to the file sys.argv[1], and is killed at its second piece, or before the file has its name
DOORS = {
    "write_whole, piece by piece": (
        "from shardpass.ir.whole_file import write_whole\n"
        "def pieces(out):\n"
        "    out.write(b'a' * 1_000_000)\n"
        "    die()\n"
        "write_whole(sys.argv[1], pieces)\n"
    ),
    "write_output": (
        "os.replace = die\nfrom shardpass.cli.common import write_output\nwrite_output(sys.argv[1], 'new')\n"
    ),
    "Explanation.html": (
        "os.replace = die\n"
        "from shardpass.report import explanation\n"
        "explanation.to_html = lambda report: 'new' * 1_000_000\n"
        "explanation.Explanation.html(None, sys.argv[1])\n"
    ),
}
DIE = "import os, signal, sys\ndef die(*given): os.kill(os.getpid(), signal.SIGKILL)\n"


@pytest.mark.parametrize("old", ["the old file", None])
@pytest.mark.parametrize("door", DOORS)
def test_killed_while_it_writes(door, old, tmp_path):
    target = tmp_path / "out"
    if old is not None:
        target.write_text(old)
    done = subprocess.run([sys.executable, "-c", DIE + DOORS[door], str(target)], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (target.read_text() if target.exists() else None) == old


def test_no_other_code_writes_files():
    """Two others open a file to write it: a lock, and a log to which Python adds the lines of threads."""
    root = Path(shardpass.__file__).parent
    writers = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if _writes(ast.parse(path.read_text()))}
    assert writers == {"ir/whole_file.py", "testing/plugin.py", "jax/script.py"}


def _writes(tree):
    return any(isinstance(node, ast.Call) and _is_write(node) for node in ast.walk(tree))


def _is_write(call):
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in ("write_text", "write_bytes", "savez", "save_model"):
        return True
    given = [*call.args, *(k.value for k in call.keywords if k.arg == "mode")]
    by_number = bool(call.args) and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, int)
    modes = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return name in ("open", "FileIO") and not by_number and any(set(m) & set("wax") and len(m) < 4 for m in modes)
