"""Runs the code of a page as a reader would: block after block, in one folder.

What a fenced block is, is in its first line:

| block | |
|---|---|
| ```` ```python ```` | is run; all such blocks of a page share their names; the page says how many devices it has |
| ```` ```bash ```` | each line is run as a command: those of shardpass, ``python``, ``head`` and the like |
| ```` ```text ```` | what the block before it prints; ``...`` stands for anything, on a line of its own or within one |
| any with ``title="name"`` | is written to the file ``name`` |

Anything else fails: a page has no code that is not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ != "__main__":
    from support import fork_server

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
SECONDS = 240


@dataclass(frozen=True)
class Block:
    language: str
    title: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    out = []
    for found in FENCE.finditer(text):
        title = TITLE.search(found[2])
        out.append(Block(found[1], title[1] if title else "", found[3], text.count("\n", 0, found.start()) + 1))
    return out


def run(page: Path, folder: Path) -> list[tuple[Block, str]]:
    """Each block that runs, with what it printed. Raises AssertionError where one fails."""
    steps = []
    for block in blocks(page):
        if block.title:
            steps.append(("file", block.title, block.text))
        elif block.language in ("python", "bash"):
            steps.append((block.language, f"{page.name}, line {block.line}", block.text))
    environment = {
        **{name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"},
        "PATH": f"{fork_server.server.commands()}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "JAX_PLATFORMS": "cpu",
        "COLUMNS": "120",
        "EXAMPLES": str(ROOT / "examples"),
    }
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(steps),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(done.stdout.rpartition("\0")[2])
    ran = [b for b in blocks(page) if not b.title and b.language in ("python", "bash")]
    return list(zip(ran, printed, strict=True))


def expected(page: Path) -> list[tuple[Block, Block]]:
    """Each ``text`` block beside the block that prints it."""
    out, last = [], None
    for block in blocks(page):
        if block.language == "text":
            assert last is not None, f"{page.name}, line {block.line}: nothing before it prints"
            out.append((last, block))
            last = None
        elif not block.title and block.language in ("python", "bash"):
            last = block
    return out


def matches(pattern: str, printed: str) -> bool:
    """Whether ``printed`` reads as ``pattern``, in which ``...`` stands for anything."""
    lines = [line.rstrip() for line in pattern.strip("\n").split("\n")]
    parts = []
    for line in lines:
        if line.strip() == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in line.split("...")) + r"[ ]*\n")
    text = "".join(line.rstrip() + "\n" for line in printed.strip("\n").split("\n"))
    return re.fullmatch("".join(parts), text) is not None


def _main() -> None:
    """The child: steps on stdin; what each block printed on stdout, behind a NUL."""
    import contextlib
    import io

    sys.path[0] = ""  # of the folder, as for who types the code in
    steps, names, printed = json.load(sys.stdin), {"__name__": "__main__"}, []
    for kind, where, text in steps:
        if kind == "file":
            Path(where).parent.mkdir(parents=True, exist_ok=True)
            Path(where).write_text(text)
        elif kind == "python":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(text, where, "exec"), names)
            printed.append(said.getvalue())
        else:
            done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{where}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
            printed.append(done.stdout + done.stderr)
    sys.stdout.write("\0" + json.dumps(printed))


if __name__ == "__main__":
    _main()
