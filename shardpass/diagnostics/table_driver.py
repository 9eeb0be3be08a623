"""SP1xx: files, pipelines, commands."""

from __future__ import annotations

from shardpass.diagnostics.core import Code, ShardpassError

NOT_MLIR = Code(
    "SP101",
    "{reason}",
    remedy="correct the file at this place, where MLIR's parser stopped: it must be MLIR text or bytecode in the "
    "dialects that JAX uses (builtin, func, stablehlo, chlo, mhlo, sdy)",
    explanation="The message comes from MLIR's own parser or verifier. A common cause is a module written by a newer "
    "StableHLO than the one in the installed jaxlib.",
)

NOT_TEXT = Code(
    "SP102",
    "byte {byte} is not UTF-8 text, and the file is no binary format that is known: its first bytes are {first}",
    remedy="give MLIR text in UTF-8, MLIR bytecode, a portable StableHLO or jax.export artefact, HLO text or an HLO "
    "proto; unpack a compressed file first",
    explanation="The input is binary data of another kind, for example a compressed file.",
)

PIPELINE_SYNTAX = Code(
    "SP103",
    "expected {expected}, found {found}",
    remedy="write a named pipeline (import, propagate, check, partition), a list such as 'shardpass-import,cse', or "
    "MLIR's form 'builtin.module(a,func.func(b),c{{option=1}})'",
    explanation="The text of the pipeline does not follow its grammar; the caret shows where it goes wrong.",
)

PASS_CANNOT_BE_LOADED = Code(
    "SP104",
    "pass {name} cannot be loaded from {target}: {reason}",
    remedy="repair or remove the package that provides the pass; shardpass finds passes of other packages through the "
    "entry-point group shardpass.passes",
    explanation="A package registers the pass, but importing the module that defines it fails.",
)

UNKNOWN_PASS = Code(
    "SP105",
    "there is no pass called '{name}'",
    remedy="{hint}`shardpass-opt --list-passes` lists the passes; the named pipelines are {pipelines}",
    explanation="Neither shardpass, nor a plugin, nor the MLIR in jaxlib has a pass of this name. jaxlib registers a "
    "part of MLIR's passes only.",
)

UNKNOWN_OPTION = Code(
    "SP106",
    "{kind} {name} has no option '{option}'",
    remedy="it takes {takes}",
    explanation="Options follow the name of a pass in braces, separated by spaces: `name{key=value key=value}`.",
)

WHOSE_OPTION = Code(
    "SP129",
    "option '{option}' of pipeline {name} could be for {passes}",
    remedy="write the passes of the pipeline out (shardpass-opt --list-passes shows them), with the option where it "
    "belongs",
    explanation="An option of a named pipeline goes to the one pass of it that has an option of this name.",
)

OPTION_TYPE = Code(
    "SP107",
    "option '{option}' of pass {name} takes {type}, not {value}",
    remedy="write {option}=VALUE with a value of type {type}, or leave the option out to get {default}",
    explanation="A bool is written `true` or `false`; the name of a bool option alone means `true`.",
)

MLIR_OPTION = Code(
    "SP108",
    "MLIR does not accept these options of pass {name}: {reason}",
    remedy="look up the options in MLIR's documentation of the pass, and separate them by spaces",
    explanation="The pass is one of MLIR's own, so MLIR reads its options, and the reason is in MLIR's words.",
)

NESTED_PASS = Code(
    "SP109",
    "{name} runs on the whole module, so it cannot stand inside {anchor}(...)",
    remedy="move the pass out: 'builtin.module({name},{anchor}(...))'",
    explanation="Every pass of shardpass works on all functions together, because shardings flow through calls.",
)

NO_PIPELINE = Code(
    "SP110",
    "the pipeline names no pass",
    remedy="give a named pipeline ({names}) or a list of passes; leave the pipeline out to parse and print the module",
    explanation="The text of the pipeline is empty, as in `builtin.module()`.",
)

PASS_FAILED = Code(
    "SP111",
    "pass {name} failed without saying why",
    remedy="run again with --mlir-print-ir-after-failure to see the module on which the pass failed",
    explanation="A pass signalled failure to MLIR without a diagnostic.",
)

MLIR_FAILED = Code(
    "SP136",
    "MLIR's pass {name} failed: {reason}",
    remedy="run the pass where it fits, as builtin.module(inline), or leave it out of the pipeline",
    explanation="A pass of MLIR's own in the pipeline, not of shardpass, stopped with this message.",
)

INVALID_IR = Code(
    "SP112",
    "{name} left an invalid module: {reason}",
    remedy="report this fault of {name}, with the module and this message; your module is not the cause",
    explanation="MLIR verifies the module after each pass, and found that the module is not well formed any more.",
)

CANNOT_READ = Code(
    "SP120",
    "cannot read this file: {reason}",
    remedy="{hint}",
    explanation="The file that the command line names does not exist, is a folder, or may not be read.",
)

CANNOT_WRITE = Code(
    "SP121",
    "cannot write this file: {reason}",
    remedy="{hint}",
    explanation="Output goes to a new file in the same folder, which then takes the name of the target. So the "
    "folder must be writable, and a failed command leaves the old file as it was. `<stdout>` is the standard output, "
    "which may be closed, or go to a device that is full. Programs of many MiB also pass through temporary files.",
)

TOO_DEEP = Code(
    "SP124",
    "{name} gave up: something nests deeper than can be followed ({reason})",
    remedy="write the deepest part of the program flat: a chain of calls as a loop, and a nest of regions as functions",
    explanation="Regions, types, attributes, calls and pipelines may nest, but not tens of thousands of levels deep.",
)

NO_MEMORY = Code(
    "SP125",
    "{name} ran out of memory",
    remedy="give the process more memory, or make the constants of the module arguments",
    explanation="Python or MLIR could not allocate what it needed. Large constants in a module are the usual cause. "
    "Some of MLIR's verifiers list the elements of a constant, also where one value stands for all: the shape that "
    "stablehlo.rng takes, for example.",
)

NOT_A_NAME = Code(
    "SP135",
    "{name} met a name or a text of the module that is not UTF-8, or a name with a NUL",
    remedy="name the symbol, the call's target, the location or the annotation in letters; in the text that MLIR "
    "prints such bytes are \\FF and \\00",
    explanation="MLIR lets symbols and strings be any bytes. The names of functions, calls and axes, and the texts of "
    "annotations, are read as text; MLIR's Python bindings cut a name off at a NUL.",
)

EMPTY = Code(
    "SP126",
    "there is nothing in this file",
    remedy="check the command that wrote it; a module is at least `module {{}}`, and one to partition has "
    "a function @main",
    explanation="The file, or stdin, holds no bytes or blank space alone. A failed command before a pipe is the usual "
    "cause.",
)

CANNOT_CONVERT = Code(
    "SP127",
    "this is {what}, and jaxlib cannot make StableHLO of it: {reason}",
    remedy="{how}",
    explanation="What a file is shows in its first bytes. Portable StableHLO, jax.export artefacts, HLO text and HLO "
    "protos are converted by jaxlib; the reason is in its words.",
)

CANNOT_EMIT = Code(
    "SP133",
    "this module cannot be written as {what}: {reason}",
    remedy="{hint}",
    explanation="`--emit vhlo` and `--emit hlo` are made by jaxlib's converters; the reason is in their words.",
)

PORTABLE_VERSION = Code(
    "SP134",
    "this jaxlib writes no portable StableHLO of version {version}",
    remedy="give a version from {oldest} to {newest}",
    explanation="A portable artefact is written for one version of StableHLO, and newer ones read it. The StableHLO "
    "in jaxlib knows the versions from its oldest to its own.",
)

NO_REPRODUCER = Code(
    "SP128",
    "this file names no pipeline in a line `// configuration: --pass-pipeline='...'`",
    remedy="give a file that --mlir-pass-pipeline-crash-reproducer wrote, or leave out --run-reproducer and name the "
    "pipeline",
    explanation="A reproducer is a module as it was before the pipeline that failed, which its first line names.",
)

NOT_EXPECTED = Code(
    "SP130",
    "unexpected {severity}: {message}",
    remedy="add `// expected-{severity} {{{{...}}}}` for its line (@+1, @above, @below, @unknown), or repair the "
    "input that causes it",
    explanation="Under `--verify-diagnostics`, a diagnostic arose that no comment expects.",
)

NOT_PRODUCED = Code(
    "SP131",
    'expected {severity} "{message}" was not produced',
    remedy="compare the text and the line of the comment with the diagnostic; expected-{severity}-re takes regular "
    "expressions in nested {{{{...}}}}",
    explanation="Under `--verify-diagnostics`, a comment expects a diagnostic that did not arise on its line.",
)

BAD_EXPECTATION = Code(
    "SP132",
    "this comment cannot be read as an expectation: {reason}",
    remedy="write `// expected-error@+1 {{{{text}}}}`; other severities are -warning, -remark and -note, a suffix -re "
    "allows regular expressions, and places are @+N, @-N, @above, @below and @unknown",
    explanation="Under `--verify-diagnostics`, a comment starts with `expected-` but does not follow the grammar.",
)


class ArgumentError(ShardpassError, TypeError):
    """An argument of a public function has a type that the function does not accept."""


ARGUMENT = Code(
    "SP140",
    "{function}: the argument {argument} is {value} of type {type}",
    remedy="give {wanted}",
    explanation="A public function got an object that its argument cannot be. The exception is a TypeError as well.",
    exception=ArgumentError,
)

FOREIGN = Code(
    "SP139",
    "{name} failed in {function} of {package}: {reason}",
    remedy="correct {function}, or report this to the authors of {package}: it is no fault of shardpass; set "
    "SHARDPASS_TRACEBACK=1 to see the calls",
    explanation="A pass, or the rule of an op, that another package or your own program registered raised an "
    "exception, or gave back what it may not. The place is the line of that code. See [Write a pass](howto/pass.md).",
)

SCRIPT_FAILED = Code(
    "SP141",
    "the script ended before JAX compiled {function}: {reason}",
    remedy="{remedy}",
    explanation="`shardpass explain train.py:step` runs the script until JAX is about to compile `step`. The place is "
    "the innermost line of the user's files that the exception passed. Where the script asks for more devices than "
    "there are, and no variable says how many, it is run again with as many virtual ones. SHARDPASS_TRACEBACK=1 prints "
    "the calls.",
)

NOT_COMPILED = Code(
    "SP142",
    "the script ended, and JAX compiled no function {function}; it compiled {compiled}",
    remedy="name one of these functions: the function that jax.jit wraps, by its name alone",
    explanation="`shardpass explain train.py:step` looks for a program by the name of its function. Lambdas and "
    "partial functions have names that JAX gives them, which the message lists.",
)

SCRIPT_TIMEOUT = Code(
    "SP144",
    "the script ran for {seconds} s, and JAX compiled no function {function} in that time; it compiled {compiled}",
    remedy="give it more time with --timeout SECONDS, or give it less to do before it first calls {function}",
    explanation="The place is the line of the user's files where the script was when its time was over. All processes "
    "that it started are ended.",
)

NOT_DEFINED = Code(
    "SP145",
    "nothing in this script makes a function {function}, so it was not run",
    remedy="{hint}the functions here: {defined}",
    explanation="The source was read before the script runs. Neither the script, nor a module of the user that it "
    "imports, defines, assigns, imports or quotes the name, and no library that it imports and that uses JAX defines "
    "it. A script that calls `exec` or `eval`, or sets `__name__`, can make any name, and is run.",
)

NO_FUNCTION = Code(
    "SP146",
    "a Python script needs the name of one of its functions",
    remedy="name the function that jax.jit wraps, as in {file}:{example}; {known}",
    explanation="`shardpass explain train.py:step` is the program of the function `step`. A script may compile many.",
)

NO_CODE = Code(
    "SP143",
    "no diagnostic has the code {id}",
    remedy="see docs/diagnostics.md for all codes",
    explanation="`shardpass explain SP240` prints what the code SP240 means.",
)

INTERNAL = Code(
    "SP199",
    "internal error in {name}: {reason}",
    remedy="report this fault of shardpass, with the module and this message; set SHARDPASS_TRACEBACK=1 to see where "
    "it arose",
    explanation="A part of shardpass raised an exception that should have been a diagnostic. Your module may be fine.",
)
