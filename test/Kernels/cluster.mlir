// Flash in clusters on wgmma: every kernel against fp64, its barriers checked, its
// bytes counted.  The pipeline compares the bytes with the plan's.
// RUN: attn-run %s --on interpreter --function open | FileCheck %s
// RUN: attn-run %s --on interpreter --function causal | FileCheck %s
// RUN: attn-run %s --on interpreter --function masked_rows | FileCheck %s
// RUN: attn-run %s --on interpreter --function window | FileCheck %s
// RUN: attn-run %s --on interpreter --function wide | FileCheck %s
// RUN: attn-run %s --on interpreter --function eight_bits | FileCheck %s
// RUN: attn-run %s --on interpreter --function dynamic --guard --batch 3 --queries 65 --keys 40 | FileCheck %s
// RUN: attn-run %s --on interpreter --function dynamic --guard --batch 1 --queries 1 --keys 1 | FileCheck %s
// RUN: attn-run %s --on interpreter --function dynamic --guard --batch 2 --queries 300 --keys 170 | FileCheck %s

// CHECK-NOT: WRONG
// CHECK: kernel {{.*}}cluster_wgmma
// CHECK-NOT: WRONG
// CHECK: moved

// Tiles of two blocks, ragged rows and keys, panels for each.
func.func @open(%q: tensor<1x2x300x128xbf16>, %k: tensor<1x2x270x128xbf16>, %v: tensor<1x2x270x128xbf16>) -> (tensor<1x2x300x128xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k, %v {schedule = #attn.schedule<cluster, query = 64, key = 64, stages = 2, query_stages = 2, cluster = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<1x2x300x128xbf16>, tensor<1x2x270x128xbf16>, tensor<1x2x270x128xbf16> -> tensor<1x2x300x128xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x128xbf16>, tensor<1x2x300xf32>
}

// Heads that share keys; the last cluster has a block without rows.
func.func @causal(%q: tensor<1x4x270x64xbf16>, %k: tensor<1x2x290x64xbf16>, %v: tensor<1x2x290x64xbf16>) -> (tensor<1x4x270x64xbf16>, tensor<1x4x270xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<cluster, query = 128, key = 64, stages = 3, query_stages = 2, cluster = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<1x4x270x64xbf16>, tensor<1x2x290x64xbf16>, tensor<1x2x290x64xbf16> -> tensor<1x4x270x64xbf16>, tensor<1x4x270xf32>
  return %o, %l : tensor<1x4x270x64xbf16>, tensor<1x4x270xf32>
}

// The first rows see no key.
func.func @masked_rows(%q: tensor<1x2x300x64xf16>, %k: tensor<1x1x100x64xf16>, %v: tensor<1x1x100x80xf16>) -> (tensor<1x2x300x80xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<cluster, query = 64, key = 96, stages = 2, query_stages = 1, cluster = 4, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<1x2x300x64xf16>, tensor<1x1x100x64xf16>, tensor<1x1x100x80xf16> -> tensor<1x2x300x80xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x80xf16>, tensor<1x2x300xf32>
}

// A window, one tile for each cluster, V wider than K.
func.func @window(%q: tensor<2x2x330x72xbf16>, %k: tensor<2x1x400x72xbf16>, %v: tensor<2x1x400x200xbf16>) -> tensor<2x2x330x200xbf16> {
  %o = attn.forward %q, %k, %v mask(window<100, 30>) {schedule = #attn.schedule<cluster, query = 128, key = 64, stages = 2, query_stages = 1, cluster = 2, staging = 64, ping_pong = 1, overlap = 1, persistent = 0>} : tensor<2x2x330x72xbf16>, tensor<2x1x400x72xbf16>, tensor<2x1x400x200xbf16> -> tensor<2x2x330x200xbf16>
  return %o : tensor<2x2x330x200xbf16>
}

// Wide heads in clusters of four, without overlap.
func.func @wide(%q: tensor<1x1x520x256xf16>, %k: tensor<1x1x200x256xf16>, %v: tensor<1x1x200x256xf16>) -> (tensor<1x1x520x256xf16>, tensor<1x1x520xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<cluster, query = 128, key = 64, stages = 2, query_stages = 1, cluster = 4, staging = 64, ping_pong = 0, overlap = 0, persistent = 1>} : tensor<1x1x520x256xf16>, tensor<1x1x200x256xf16>, tensor<1x1x200x256xf16> -> tensor<1x1x520x256xf16>, tensor<1x1x520xf32>
  return %o, %l : tensor<1x1x520x256xf16>, tensor<1x1x520xf32>
}

// Values of 8 bits, which each block transposes for itself.
func.func @eight_bits(%q: tensor<1x2x200x128xf8E4M3FN>, %k: tensor<1x1x300x128xf8E4M3FN>, %v: tensor<1x1x300x64xf8E4M3FN>) -> (tensor<1x2x200x64xbf16>, tensor<1x2x200xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<cluster, query = 64, key = 64, stages = 2, query_stages = 1, cluster = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<1x2x200x128xf8E4M3FN>, tensor<1x1x300x128xf8E4M3FN>, tensor<1x1x300x64xf8E4M3FN> -> tensor<1x2x200x64xbf16>, tensor<1x2x200xf32>
  return %o, %l : tensor<1x2x200x64xbf16>, tensor<1x2x200xf32>
}

// Batch and rows that only a launch knows.
func.func @dynamic(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x?x64xbf16>, %v: tensor<?x2x?x64xbf16>) -> tensor<?x4x?x64xbf16> {
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<cluster, query = 64, key = 64, stages = 2, query_stages = 2, cluster = 4, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<?x4x?x64xbf16>, tensor<?x2x?x64xbf16>, tensor<?x2x?x64xbf16> -> tensor<?x4x?x64xbf16>
  return %o : tensor<?x4x?x64xbf16>
}
