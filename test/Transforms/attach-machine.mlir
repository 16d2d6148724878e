// Which machine does a module get?
// RUN: attn-opt %s -attn-attach-machine -split-input-file | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: attn-opt %s -attn-attach-machine=machine=t4 -split-input-file | FileCheck %s --check-prefixes=CHECK,T4
// RUN: attn-opt %s -attn-attach-machine="machine='a100_80g, l2_bytes = 1000000'" -split-input-file | FileCheck %s --check-prefixes=CHECK,OVERRIDDEN
// RUN: not attn-opt %s -attn-attach-machine=machine=h1000 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not attn-opt %s -attn-attach-machine="machine='t4> nonsense'" 2>&1 | FileCheck %s --check-prefix=GARBAGE

// DEFAULT: module attributes {attn.machine = #attn.machine<h100_sxm>}
// T4: module attributes {attn.machine = #attn.machine<t4>}
// OVERRIDDEN: module attributes {attn.machine = #attn.machine<a100_80g, l2_bytes = 1000000>}
// UNKNOWN: error: expects the name of a machine, but got 'h1000'
// UNKNOWN: note: known machines: {{.*}}h100_sxm
// UNKNOWN: error: expects the option machine to name a machine, but got 'h1000'
// UNKNOWN-NOT: see current operation
// GARBAGE: error: found trailing characters
// GARBAGE: error: expects the option machine to name a machine, but got 't4> nonsense'
// CHECK: @unnamed
module { func.func private @unnamed() }

// -----

// A module that names a machine keeps it, unless another one is asked for.
// DEFAULT: module attributes {attn.machine = #attn.machine<b200>}
// T4: module attributes {attn.machine = #attn.machine<t4>}
// OVERRIDDEN: module attributes {attn.machine = #attn.machine<a100_80g, l2_bytes = 1000000>}
// CHECK: @named
module attributes {attn.machine = #attn.machine<b200>} { func.func private @named() }
