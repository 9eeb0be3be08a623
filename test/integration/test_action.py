"""The action for GitHub and the hook for pre-commit: each shell step runs, as GitHub runs it, in a small repository.

pip is a stub that notes its arguments; the actions of others are not run. The rest is the action as it is: the
environment of each step by its expressions, outputs of steps, the summary of the job, and the status.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import fork_server

from tools.processes import ROOT, environment

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
TRAIN = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
x = jax.ShapeDtypeStruct((8, 32), jnp.float32, sharding=NamedSharding(mesh, P("data")))

@jax.jit
def step(x):
    return jnp.sum(x, 0)

step.lower(x).compile()
"""
# all_reduce of 32 floats among 4 devices: 2 * 3/4 of 128 B; then a gather of 8 x 32 floats: 3/4 of 1 KiB
GATHERS = TRAIN.replace(
    "jnp.sum(x, 0)", "jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P())), jnp.sum(x, 0)"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("base")
    folder, tools = home / "repository", home / "tools"
    folder.mkdir()
    tools.mkdir()
    _script(tools / "pip", 'echo "$@" >> "$PIP_LOG"')
    (folder / "train.py").write_text(TRAIN)
    _run(home, "shardpass budget train.py:step -o budget.toml", {"JAX_NUM_CPU_DEVICES": "4"})
    who = "-c user.name=me -c user.email=me@example.org"
    _run(home, f"git init -q . && git add -A && git {who} commit -qm base", {})
    return home


@pytest.fixture
def repository(base: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(base, tmp_path / "home"))


def _script(path: Path, line: str) -> None:
    path.write_text(f"#!/bin/bash\n{line}\n")
    path.chmod(0o755)


def _run(home: Path, script: str, env: dict[str, str]) -> int:
    """Run a step as GitHub does where ``shell: bash`` is given, and return its status."""
    path = [str(home / "tools"), fork_server.server.commands(), os.environ["PATH"]]
    given = environment(PIP_LOG=str(home / "pip.log"), PATH=os.pathsep.join(path), **env)
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=home / "repository", env=given, check=False).returncode


class Job:
    """One run of the action."""

    def __init__(self, home: Path, base: str = "", **inputs: str) -> None:
        self.home = home
        self.inputs = {name: one.get("default", "") for name, one in ACTION["inputs"].items()} | inputs
        self.values = {f"inputs.{name}": value for name, value in self.inputs.items()}
        self.values["github.event.pull_request.base.sha"] = base
        self.ran: list[str] = []
        self.status = 0
        for step in ACTION["runs"]["steps"]:
            if "run" in step and not self.status and self._wanted(step.get("if", "")):
                self._step(step)

    def _wanted(self, condition: str) -> bool:
        match = re.fullmatch(r"inputs\.(\S+) != ''", condition)
        return not condition or bool(match and self.inputs[match[1]])

    def _step(self, step: dict[str, Any]) -> None:
        assert step["shell"] == "bash"
        output = self.home / "output"
        output.write_text("")
        env = {
            name: re.sub(r"\$\{\{ (\S+) \}\}", lambda match: self.values.get(match[1], ""), value)
            for name, value in step["env"].items()
        }
        files = {"GITHUB_STEP_SUMMARY": str(self.home / "summary.md"), "GITHUB_OUTPUT": str(output)}
        self.status = _run(self.home, step["run"], {**env, **files})
        self.ran.append(step["name"])
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            self.values[f"steps.{step['id']}.outputs.{name}"] = value

    @property
    def summary(self) -> str:
        return (self.home / "summary.md").read_text()

    def sarif(self, name: str) -> list[Any]:
        (run,) = json.loads((self.home / "repository/shardpass-sarif" / f"{name}.sarif").read_text())["runs"]
        return run["results"]


def test_a_step_within_its_budget_passes(repository: Path) -> None:
    job = Job(repository, install="-r requirements.txt", version="==0.2.0")
    assert (job.status, job.ran) == (0, ["Install", "Budget", "Verdict"])
    assert (repository / "pip.log").read_text() == "install shardpass==0.2.0 -r requirements.txt\n"
    assert "| train.py:step | within the budget | 192 B |" in job.summary
    assert job.sarif("budget") == []


@pytest.mark.long
def test_a_step_that_gathers_fails_and_the_summary_names_the_line(repository: Path) -> None:
    (repository / "repository/train.py").write_text(GATHERS)
    job = Job(repository, "HEAD", program="train.py:step")
    assert (job.status, job.ran) == (1, ["Install", "Budget", "Explain", "Verdict"])
    line = next(number for number, text in enumerate(GATHERS.splitlines(), 1) if "x * 2" in text)
    row = f"| train.py:step | all_gather over data | 0 arrays, 0 B | 1 array, 768 B | train.py:{line} |"
    assert row in job.summary
    assert "### Collectives of train.py:step" in job.summary
    changes = job.summary.partition("### Changes since the base")[2]
    assert f"| appeared | +768 B | 0 B | 768 B | all_gather | data | train.py:{line} |" in changes
    assert {one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in job.sarif("budget")} >= {
        "train.py"
    }
    assert isinstance(job.sarif("explain"), list)


def test_the_hook_of_pre_commit_is_the_check_of_the_budget(repository: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert not hook["pass_filenames"]
    assert _run(repository, hook["entry"], {"JAX_NUM_CPU_DEVICES": "4"}) == 0
    (repository / "repository/train.py").write_text(GATHERS)
    assert _run(repository, hook["entry"], {"JAX_NUM_CPU_DEVICES": "4"}) == 1
