"""SP1xx: files, pipelines, commands."""

from __future__ import annotations

from shardpass.diagnostics.core import Code

NOT_MLIR = Code(
    "SP101",
    "{reason}",
    remedy="the file must be MLIR text or bytecode with the dialects that JAX uses "
    "(builtin, func, stablehlo, chlo, mhlo, sdy); MLIR's parser stopped at this place",
    explanation="The message is that of MLIR's own parser or verifier. A common cause is a module written by "
    "a newer StableHLO than the one in the installed jaxlib.",
)

NOT_TEXT = Code(
    "SP102",
    "byte {byte} is neither UTF-8 text nor the start of MLIR bytecode",
    remedy="give a .mlir file in UTF-8, or MLIR bytecode (which opens with the bytes 'ML\\xefR')",
    explanation="The input is binary data of another kind, for example a compressed file or a protobuf.",
)

PIPELINE_SYNTAX = Code(
    "SP103",
    "expected {expected}, found {found}",
    remedy="write a named pipeline (import, propagate, check, partition), a list such as "
    "'shardpass-import,cse', or MLIR's form 'builtin.module(a,func.func(b),c{{option=1}})'",
    explanation="The text of the pipeline cannot be read; the caret shows where.",
)

PASS_CANNOT_BE_LOADED = Code(
    "SP104",
    "pass {name} cannot be loaded from {target}: {reason}",
    remedy="repair or remove the package that provides it; shardpass finds passes through the entry-point "
    "group shardpass.passes",
    explanation="The pass is registered, but importing its module fails.",
)

UNKNOWN_PASS = Code(
    "SP105",
    "there is no pass called '{name}'",
    remedy="{hint}`shardpass-opt --list-passes` lists the passes; the named pipelines are {pipelines}",
    explanation="Neither shardpass, nor a plugin, nor the MLIR in jaxlib has a pass of this name. "
    "jaxlib registers a part of MLIR's passes only.",
)

UNKNOWN_OPTION = Code(
    "SP106",
    "pass {name} has no option '{option}'",
    remedy="it takes {takes}",
    explanation="Options are written name{{key=value key=value}}, separated by spaces.",
)

OPTION_TYPE = Code(
    "SP107",
    "option '{option}' of pass {name} takes {type}, not {value}",
    remedy="write {option}=VALUE with a value of type {type}; left away, it is {default}",
    explanation="A bool is written true or false; a bare name means true.",
)

MLIR_OPTION = Code(
    "SP108",
    "MLIR does not accept these options of pass {name}: {reason}",
    remedy="see the pass's documentation for its options; they are separated by spaces",
    explanation="The pass is MLIR's own, so it is MLIR that reads its options.",
)

NESTED_PASS = Code(
    "SP109",
    "{name} runs on the whole module, so it cannot stand inside {anchor}(...)",
    remedy="move it out: 'builtin.module({name},{anchor}(...))'",
    explanation="Every pass of shardpass looks at all functions together, as shardings flow through calls.",
)

NO_PIPELINE = Code(
    "SP110",
    "the pipeline names no pass",
    remedy="give a named pipeline ({names}) or a list of passes; with no pipeline at all shardpass-opt "
    "parses and prints",
    explanation="An empty pipeline was given.",
)

PASS_FAILED = Code(
    "SP111",
    "pass {name} failed without saying why",
    remedy="run again with --mlir-print-ir-after-failure to see the module it stopped at",
    explanation="A pass of MLIR's signalled failure and gave no diagnostic.",
)

INVALID_IR = Code(
    "SP112",
    "{name} left an invalid module: {reason}",
    remedy="this is a fault of {name}, not of your module; please report it with the module and this message",
    explanation="MLIR verifies the module after each pass.",
)

CANNOT_READ = Code(
    "SP120",
    "cannot read this file: {reason}",
    remedy="{hint}",
    explanation="The file named on the command line does not exist or may not be read.",
)

CANNOT_WRITE = Code(
    "SP121",
    "cannot write this file: {reason}",
    remedy="check that the folder exists and may be written to; nothing was changed",
    explanation="Output is written beside its place and renamed, so the folder must be writable.",
)

ONNX_MODEL = Code(
    "SP122",
    "this is an ONNX model, and this version checks MLIR modules only",
    remedy="give a .mlir file with StableHLO",
    explanation="ONNX models carry their shardings in another notation.",
)

NOT_EXPECTED = Code(
    "SP130",
    "unexpected {severity}: {message}",
    remedy="expect it with `// expected-{severity} {{{{...}}}}` on its line (@+1, @above, @below, @unknown), or "
    "repair what gives it",
    explanation="--verify-diagnostics: a diagnostic arose that no comment expects.",
)

NOT_PRODUCED = Code(
    "SP131",
    'expected {severity} "{message}" was not produced',
    remedy="compare the text and the line; expected-{severity}-re takes regular expressions in nested {{{{...}}}}",
    explanation="--verify-diagnostics: a comment expects a diagnostic that did not arise on its line.",
)

BAD_EXPECTATION = Code(
    "SP132",
    "this comment is no expectation: {reason}",
    remedy="write `// expected-error@+1 {{{{text}}}}`; also -warning, -remark, -note, and -re for regular "
    "expressions; @+N, @-N, @above, @below, @unknown",
    explanation="--verify-diagnostics: the comment starts like an expectation but cannot be read as one.",
)

INTERNAL = Code(
    "SP199",
    "internal error in {name}: {reason}",
    remedy="this is a fault of shardpass, not of your module; please report it with the module and this "
    "message. SHARDPASS_TRACEBACK=1 shows where it arose",
    explanation="A part of shardpass raised an exception that it should have turned into a diagnostic.",
)
