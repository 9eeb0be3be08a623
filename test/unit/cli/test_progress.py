"""Progress on stderr: the passes of a pipeline on a terminal, nothing elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest

import shardpass
from shardpass.cli import progress as shown
from shardpass.pipeline.run import watched

PROGRAM = (Path(__file__).parents[3] / "examples" / "mlp_train_step.mlir").read_text()


def test_passes_are_named_as_they_begin() -> None:
    names: list[str] = []
    with watched(names.append):
        shardpass.run_pipeline(PROGRAM, "shardpass-import,cse,shardpass-propagate")
    shardpass.run_pipeline(PROGRAM, "shardpass-import")
    assert names == ["shardpass-import", "shardpass-propagate"]


@pytest.mark.fresh_process
@pytest.mark.parametrize("terminal", [True, False])
def test_stages_are_shown_on_a_terminal_alone(terminal: bool, tmp_path: Path) -> None:
    file = tmp_path / "step.mlir"
    file.write_text(PROGRAM)
    code = "from shardpass.cli.explain import main; import sys; sys.exit(main())"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, str(file)]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with (tmp_path / "stderr").open("wb") as log:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=theirs if terminal else log, env=environment, timeout=100
        )
    os.close(theirs)
    said = b""
    if terminal:
        while True:
            try:
                said += (piece := os.read(ours, 65536))
            except OSError:
                break
            if not piece:
                break
    os.close(ours)
    assert done.returncode == 0
    assert b"each device receives" in done.stdout
    assert b"\x1b" not in done.stdout
    assert (b"reading" in said) == terminal
    assert (tmp_path / "stderr").read_bytes() == b""


def test_a_log_shows_that_a_long_stage_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shown, "EVERY", 0.01)
    with shown.progress("compiling by xla") as pause:
        with pause():
            print("a finding")
        end = time.monotonic() + 60
        written = ""
        while "compiling" not in written and time.monotonic() < end:
            time.sleep(0.01)
            written += capsys.readouterr().err
    assert written.startswith("shardpass: compiling by xla: 0 s\n")
