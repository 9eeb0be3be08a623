"""SP9xx: machines, for which programs are decided, planned and timed."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, Severity

UNKNOWN_MACHINE = Code(
    "SP901",
    "there is no machine {name}{where}",
    "{near}use one of {known}, or the path of a file NAME.toml, such as shardpass calibrate writes",
    explanation="A machine is a file of rates: how fast a device computes, reads its memory, and receives from others. "
    "See [Machines](reference/machines.md) for those that come with shardpass.",
)
UNREADABLE_MACHINE = Code(
    "SP902",
    "the file of a machine cannot be read: {reason}",
    "name a file that shardpass calibrate wrote, or one of the machines {known}",
    explanation="The file of a machine is TOML; those under `shardpass/cost/machines/` are examples.",
)
BAD_MACHINE = Code(
    "SP903",
    "{field} of the machine is {value}: {reason}",
    "{remedy}",
    explanation="A machine needs `name`, `memory`, `memory_bandwidth`, `[flops]` and `[[links]]`; see "
    "[Cost](cost.md#a-machine-of-your-own).",
)
OTHER_MACHINE = Code(
    "SP904",
    "the module was decided for the machine {before}, and {step} takes {machine}",
    "leave the option out to go on with {before}, or decide again for {machine}",
    severity=Severity.REMARK,
    explanation="The module names the machine for which it was decided (`shardpass.machine`). A pass with a machine of "
    "its own takes that one; then the plan is cheap on neither of the two.",
)
OLD_NAME = Code(
    "SP905",
    "{old} is the old name of {new}, and will be gone in the next version",
    "write {new}",
    severity=Severity.REMARK,
    explanation="`profile=`, `--profile` and `cost=` named the machine of one part of the work; `machine=` is one "
    "option for all.",
)
UNKNOWN_DEVICE = Code(
    "SP906",
    "no machine is known for devices of the kind {kind} ({platform}): programs are decided for {machine}",
    "name a machine with machine= or SHARDPASS_MACHINE, or measure this one with shardpass calibrate",
    severity=Severity.REMARK,
    explanation="In JAX the machine is that of the devices, by what they call themselves. The remark is given once.",
)
MEASURED_ELSEWHERE = Code(
    "SP907",
    "the machine {name} was an object of the process that decided the module, and is not known here",
    "name the machine: machine=FILE.toml, or one of {known}",
    explanation="A module names a machine of shardpass by its name, and one of a file by its path. Of a `Machine` "
    "object it has only the name and a digest.",
)
