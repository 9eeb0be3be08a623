"""SP9xx: machines, for which programs are decided, planned and timed, and targets, for which they are compiled."""

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

UNKNOWN_TARGET = Code(
    "SP908",
    "there is no target {name}: {reason}",
    "{near}write a chip and the sizes of a slice, as v5e:4x4 or v5p:2x2x4, or cards and hosts, as h100:8 or h100:4x8; "
    "chips are {known}",
    explanation="A target (`--target`, `target=`) names the devices that a program is compiled for. See "
    "[Accelerators](howto/accelerators.md) for its forms.",
)
NO_COMPILER = Code(
    "SP909",
    "{compiler}, the compiler for {target}, is not installed: {missing} is missing",
    "install it: pip install 'shardpass[{extra}]'; no accelerator is needed",
    explanation="The compilers of TPUs and of GPUs are packages of their own, in the version of the installed jax: "
    "`libtpu` for TPUs, `jax-cuda13-pjrt` and `jax-cuda13-plugin` for GPUs. They compile for devices that are only "
    "described.",
)
TARGET_SIZE = Code(
    "SP910",
    "the program is for {count} devices, and the target {target} has {size}",
    "name a target of {count} devices, or make the mesh of the program for {size}: jax.make_mesh over all devices",
    explanation="A program is compiled for all devices of its target. A script that runs for `--target v5e:4x4` has 16 "
    "CPU devices (`jax.devices()`), unless it sets their number itself.",
)
TARGET_FAILED = Code(
    "SP911",
    "{compiler} does not compile the program for {target}: {reason}",
    "change what the reason names; `--target cpu:{devices}` compiles the same program for CPU devices",
    explanation="The compiler runs in a process of its own with a limit of time. Its own words are quoted: a program "
    "may not fit the memory of the device, or use an op that the compiler does not know.",
)
TARGET_PARTITIONER = Code(
    "SP912",
    "the program of {partitioner} cannot be compiled for {target}",
    "ask for partitioner xla or shardpass, or leave out the target",
    explanation="Shardy's own passes make programs in a process with CPU devices. A target takes the program of XLA's "
    "partitioner, or that of shardpass.",
)
