// The output file is written only where all parts succeed; a failure leaves the old one as it was.
// RUN: rm -rf %t.dir && mkdir %t.dir
// RUN: shardpass-opt %s -o %t.dir/new.mlir
// RUN: FileCheck %s < %t.dir/new.mlir
// RUN: echo "the old content" > %t.dir/old.mlir
// RUN: exits 1 shardpass-opt %s no-such-pass -o %t.dir/old.mlir
// RUN: FileCheck %s --check-prefix=OLD < %t.dir/old.mlir
// RUN: exits 1 shardpass-opt %s no-such-pass -o %t.dir/never.mlir
// RUN: exits 1 shardpass-opt %s -o %t.dir/no/such/folder.mlir 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: exits 1 shardpass-opt %s -o %t.dir 2>&1 | FileCheck %s --check-prefix=IS-FOLDER
// RUN: ls -A %t.dir | FileCheck %s --check-prefix=LEFT

// OLD: the old content
// FOLDER: folder.mlir: error: cannot write this file: No such file or directory [SP121]
// FOLDER: help:
// IS-FOLDER: error: cannot write this file: it is a directory [SP121]
// LEFT-NOT: {{^[.]|never}}
// LEFT: {{^}}new.mlir{{$}}
// LEFT-NEXT: {{^}}old.mlir{{$}}
// LEFT-NOT: {{.}}

// CHECK: func.func @main
func.func @main() { return }
