// One sharding, drawn: which device holds which tile. And without TARGET or --show: bad usage.
// RUN: shardpass-plan --show '{devices=[2,1]1,0}' 'f32[4,3]' | FileCheck %s
// RUN: not shardpass-plan 'f32[4,3]' '{replicated}' 2>&1 | FileCheck %s --check-prefix=USAGE

// CHECK: tiles of 2x3
// CHECK: 0:2{{.*}}1
// CHECK: 2:4{{.*}}0
// USAGE: error: the following arguments are required: TARGET
