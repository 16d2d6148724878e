// column_split on wgmma, run block by block: every kernel against fp64, its
// barriers and its flags checked, its bytes counted.  The pipeline compares the
// bytes with the plan's.
// RUN: attn-run %s --on interpreter --function parts | FileCheck %s
// RUN: attn-run %s --on interpreter --function ragged | FileCheck %s
// RUN: attn-run %s --on interpreter --function masked_rows | FileCheck %s
// RUN: attn-run %s --on interpreter --function streamed | FileCheck %s
// RUN: attn-run %s --on interpreter --function long_ring | FileCheck %s
// RUN: attn-run %s --on interpreter --function many_strips | FileCheck %s
// RUN: attn-run %s --on interpreter --function wide_strips | FileCheck %s

// CHECK-NOT: WRONG
// CHECK: moved

// Two tiles of a team, one block in a cluster.
func.func @parts(%q: tensor<1x1x256x264xbf16>, %k: tensor<1x1x256x264xbf16>, %v: tensor<1x1x256x264xbf16>) -> tensor<1x1x256x264xbf16> {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 1, slots = 6, resident = 5>} : tensor<1x1x256x264xbf16>, tensor<1x1x256x264xbf16>, tensor<1x1x256x264xbf16> -> tensor<1x1x256x264xbf16>
  return %o : tensor<1x1x256x264xbf16>
}

// Rows and keys that no tile divides, heads that share keys, clusters.
func.func @ragged(%q: tensor<1x2x300x320xf16>, %k: tensor<1x1x270x320xf16>, %v: tensor<1x1x270x320xf16>) -> (tensor<1x2x300x320xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 2, slots = 6, resident = 5>} : tensor<1x2x300x320xf16>, tensor<1x1x270x320xf16>, tensor<1x1x270x320xf16> -> tensor<1x2x300x320xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x320xf16>, tensor<1x2x300xf32>
}

// The first rows see no key.
func.func @masked_rows(%q: tensor<1x1x300x64xbf16>, %k: tensor<1x1x100x64xbf16>, %v: tensor<1x1x100x272xbf16>) -> (tensor<1x1x300x272xbf16>, tensor<1x1x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 2, slots = 3, resident = 1>} : tensor<1x1x300x64xbf16>, tensor<1x1x100x64xbf16>, tensor<1x1x100x272xbf16> -> tensor<1x1x300x272xbf16>, tensor<1x1x300xf32>
  return %o, %l : tensor<1x1x300x272xbf16>, tensor<1x1x300xf32>
}

// Panels of Q that come anew with every strip, three parts.
func.func @streamed(%q: tensor<1x1x130x640xbf16>, %k: tensor<1x1x500x640xbf16>, %v: tensor<1x1x500x520xbf16>) -> tensor<1x1x130x520xbf16> {
  %o = attn.forward %q, %k, %v mask(window<100, 50>) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 3, cluster = 2, slots = 6, resident = 7>} : tensor<1x1x130x640xbf16>, tensor<1x1x500x640xbf16>, tensor<1x1x500x520xbf16> -> tensor<1x1x130x520xbf16>
  return %o : tensor<1x1x130x520xbf16>
}

// Most panels of Q stream, through a ring that is longer than what stays.
func.func @long_ring(%q: tensor<1x1x300x2048xbf16>, %k: tensor<1x1x300x2048xbf16>, %v: tensor<1x1x300x2048xbf16>) -> tensor<1x1x300x2048xbf16> {
  %o = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 8, cluster = 2, slots = 10, resident = 4>} : tensor<1x1x300x2048xbf16>, tensor<1x1x300x2048xbf16>, tensor<1x1x300x2048xbf16> -> tensor<1x1x300x2048xbf16>
  return %o : tensor<1x1x300x2048xbf16>
}

// Parts beyond the next one, strips before and behind, tiles of one strip and
// of several.
func.func @many_strips(%q: tensor<1x1x500x520xbf16>, %k: tensor<1x1x1000x520xbf16>, %v: tensor<1x1x1000x520xbf16>) -> tensor<1x1x500x520xbf16> {
  %o = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 3, cluster = 1, slots = 6, resident = 8>} : tensor<1x1x500x520xbf16>, tensor<1x1x1000x520xbf16>, tensor<1x1x1000x520xbf16> -> tensor<1x1x500x520xbf16>
  return %o : tensor<1x1x500x520xbf16>
}

// The same in a cluster, with panels of Q that stream.
func.func @wide_strips(%q: tensor<1x1x260x1032xbf16>, %k: tensor<1x1x1400x1032xbf16>, %v: tensor<1x1x1400x1032xbf16>) -> tensor<1x1x260x1032xbf16> {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 5, cluster = 2, slots = 6, resident = 5>} : tensor<1x1x260x1032xbf16>, tensor<1x1x1400x1032xbf16>, tensor<1x1x1400x1032xbf16> -> tensor<1x1x260x1032xbf16>
  return %o : tensor<1x1x260x1032xbf16>
}
