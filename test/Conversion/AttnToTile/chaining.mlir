// Launches of one call that begin ahead of time.
// RUN: attn-opt %s -attn-attach-machine=machine=h100_sxm -attn-select-schedule -convert-attn-to-tile | FileCheck %s
// RUN: attn-opt %s -attn-attach-machine=machine=a100_80g -attn-select-schedule -convert-attn-to-tile | FileCheck %s --check-prefix=AMPERE

// Each waits before it reads or writes anything, with barriers set up, and then
// lets the next begin.
// CHECK-LABEL: tile.kernel @split_backward_mma_sync_f16_64_dq(
// CHECK-NOT: tile.copy_async
// CHECK: tile.await_launch
// CHECK-NEXT: tile.release_launch
// CHECK-LABEL: tile.kernel @split_backward_mma_sync_f16_64_dk_dv(
// CHECK-NOT: tile.copy_async
// CHECK: tile.await_launch
// CHECK-NEXT: tile.release_launch

// A call of one launch has nothing to wait for.
// CHECK-LABEL: tile.kernel @flash_mma_sync_f16_64(
// CHECK-NOT: tile.await_launch

// Walks of parts hold the merge back, which waits as others do.
// CHECK-LABEL: tile.kernel @flash_mma_sync_f16_64_parts(
// CHECK: tile.await_launch
// CHECK-NOT: tile.release_launch
// CHECK-LABEL: tile.kernel @flash_mma_sync_f16_64_merge(
// CHECK: tile.await_launch

// AMPERE: tile.kernel @split_backward_mma_sync_f16_64_dq(
// AMPERE-NOT: tile.await_launch
!t = memref<1x2x256x64xf16>
!l = memref<1x2x256xf32>
func.func @backward(%do: !t, %q: !t, %k: !t, %v: !t, %o: !t, %lse: !l,
    %dq: !t, %dk: !t, %dv: !t) {
  attn.backward %do, %q, %k, %v, %o, %lse outs(%dq, %dk, %dv : !t, !t, !t)
      {schedule = #attn.schedule<split_backward, query = 64, key_block = 64, query_warps = 4, key = 64, query_block = 64, key_warps = 4, stages = 2, separate = 0>}
      : !t, !t, !t, !t, !t, !l
  return
}

func.func @forward(%q: !t, %k: !t, %v: !t, %o: !t) {
  attn.forward %q, %k, %v outs(%o : !t) {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 1, warps = 4>} : !t, !t, !t
  return
}

func.func @step(%q: memref<1x2x1x64xf16>, %k: memref<1x2x512x64xf16>, %v: memref<1x2x512x64xf16>, %o: memref<1x2x1x64xf16>) {
  attn.forward %q, %k, %v outs(%o : memref<1x2x1x64xf16>) {schedule = #attn.schedule<flash, query = 16, key = 64, stages = 2, warps = 1, parts = 4>} : memref<1x2x1x64xf16>, memref<1x2x512x64xf16>, memref<1x2x512x64xf16>
  return
}
