// Launches of roles that begin ahead of time: they wait before roles part.
// RUN: attn-opt %s -attn-attach-machine=machine=h100_sxm -attn-select-schedule -convert-attn-to-tile | FileCheck %s

// CHECK-LABEL: tile.kernel @score_spill_wgmma_f16_1024_scores(
// CHECK-NOT: tile.roles
// CHECK: tile.await_launch
// CHECK-NEXT: tile.release_launch
// CHECK: tile.roles
// CHECK-LABEL: tile.kernel @score_spill_wgmma_f16_1024_outputs(
// CHECK-NOT: tile.roles
// CHECK: tile.await_launch
// CHECK-NEXT: tile.release_launch
// CHECK: tile.roles

!w = memref<1x1x512x1024xf16>
func.func @rounds(%q: !w, %k: !w, %v: !w, %o: !w) {
  attn.forward %q, %k, %v outs(%o : !w) {schedule = #attn.schedule<score_spill, merged = 0>} : !w, !w, !w
  return
}
