// Ops whose functions are equal share a kernel, also where the first op is gone
// by then; what memory was freed is overwritten here.
// RUN: env MALLOC_PERTURB_=90 attn-opt %s -attn-to-tile=machine=a100_80g | grep -E "tile.kernel @|func.func|tile.launch" | FileCheck %s

// CHECK-COUNT-2: tile.kernel @flash_mma_sync_bf16_64_{{.*}}score
// CHECK-NOT: tile.kernel
// CHECK: func.func @four
// CHECK: tile.launch @attn_kernels::@[[FIRST:[a-z0-9_]*]] grid
// CHECK: tile.launch @attn_kernels::@[[SECOND:[a-z0-9_]*]] grid
// CHECK: tile.launch @attn_kernels::@[[FIRST]] grid
// CHECK: tile.launch @attn_kernels::@[[SECOND]] grid
!q = memref<1x2x128x64xbf16>
func.func @four(%q: !q, %k: !q, %v: !q, %a: !q, %b: !q, %c: !q, %d: !q) {
  attn.forward %q, %k, %v softcap(5.0) outs(%a : !q) : !q, !q, !q
  attn.forward %q, %k, %v softcap(7.0) outs(%b : !q) : !q, !q, !q
  attn.forward %q, %k, %v softcap(5.0) outs(%c : !q) : !q, !q, !q
  attn.forward %q, %k, %v softcap(7.0) outs(%d : !q) : !q, !q, !q
  return
}
