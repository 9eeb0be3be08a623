// There must be a function @main; the error names those that there are.
// RUN: shardpass-opt %s import --split-input-file --verify-diagnostics

// expected-error@unknown {{the module has no function @main; its functions are: @start, @stop [SP201]}}
func.func @start() { return }
func.func @stop() { return }

// -----

// expected-error@below {{the module has no function @main; its functions are: none [SP201]}}
module {}
