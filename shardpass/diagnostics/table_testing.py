"""SP64x: collectives that tests and budgets assert."""

from __future__ import annotations

from shardpass.diagnostics.core import Code

BAD_BUDGET = Code(
    "SP640",
    "this is not a budget of shardpass: {reason}",
    remedy="write the file with `shardpass budget FILE:FUNCTION -o budget.toml`",
    explanation="A budget is a TOML file with a table for each program: the collectives when the budget was written, "
    "with their bytes, and the memory of a device. `shardpass budget --check` and the pytest plugin read the file.",
)

OVER_BUDGET = Code(
    "SP641",
    "{program}: {what}: {got}; the budget is {allowed}",
    remedy="mend the line, or write the budget again with `shardpass budget {program} -o {file}` to accept the growth",
    explanation="`shardpass budget --check` compares the collectives of each program with the budget, by kind and "
    "axes. A new kind, more arrays, or bytes and memory beyond the tolerance of the file are over the budget. Moved "
    "lines and renamed functions are not.",
)

NO_BUDGET = Code(
    "SP642",
    "{file} has no budget for {program}; it has {programs}",
    remedy="write it with --shardpass-update in pytest, else with `shardpass budget FILE:FUNCTION -o {file}`",
    explanation="A budget file names its programs as FILE:FUNCTION, and those of pytest by the test.",
)

OLD_REVISION = Code(
    "SP643",
    "revision {revision} cannot be checked out: {reason}",
    remedy="name a commit, a branch or a tag of the repository that has the script, as in HEAD~1:train.py:step",
    explanation="`shardpass diff OLD NEW` takes REVISION:FILE.py:FUNCTION. The revision is checked out in a folder of "
    "its own by `git worktree`, which leaves the working tree as it is.",
)
