// An op of several kernels: launches in order, scratch before them and freed
// behind them, tensor maps of scratch too.  Sizes are known at run time only.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm schedule='score_spill, merged = 0' format=isa" | mlir-opt --pass-pipeline="builtin.module(func.func(gpu-async-region),expand-strided-metadata,convert-scf-to-cf,lower-affine,gpu-to-llvm,reconcile-unrealized-casts)" > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log

!t = memref<?x2x?x128xf16>

// CHECK: load ptx
// CHECK-NEXT: allocate #1 524288 bytes
// CHECK-NEXT: allocate #2 524288 bytes
// CHECK-NEXT: wait
// Scores of both heads of both entries, f16; statistics of their rows; counters.
// CHECK-NEXT: allocate #3 2097152 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: allocate #4 32768 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: allocate #5 4 bytes
// CHECK-NEXT: fill #5 with 0, 1 words
// CHECK-NEXT: wait
// CHECK-NEXT: allocate #6 4 bytes
// CHECK-NEXT: fill #6 with 0, 1 words
// CHECK-NEXT: wait
// CHECK-NEXT: function score_spill_wgmma_f16_128_causal_scores
// CHECK-NEXT: launch {{.*}} arrays 0: map of #1 1: map of #1 2: map of #3 3: #4 7: #5
// CHECK-NEXT: wait
// CHECK-NEXT: function score_spill_wgmma_f16_128_causal_outputs
// CHECK-NEXT: launch {{.*}} arrays 0: map of #3 1: map of #1 2: map of #2 3: #4 7: #6
// CHECK-NEXT: wait
// CHECK-NEXT: free #3
// CHECK-NEXT: wait
// CHECK-NEXT: free #4
// CHECK-NEXT: wait
// CHECK-NEXT: free #5
// CHECK-NEXT: wait
// CHECK-NEXT: free #6
// CHECK-NEXT: wait
// CHECK-NEXT: free #1
// CHECK-NEXT: free #2
// CHECK-NEXT: wait
// CHECK-NEXT: unload
// CHECK-NOT: {{.}}
func.func @attend(%q: !t, %k: !t, %o: !t) {
  attn.forward %q, %k, %k mask(causal) outs(%o : !t) : !t, !t, !t
  return
}
func.func @main() {
  %c2 = arith.constant 2 : index
  %c512 = arith.constant 512 : index
  %q = gpu.alloc (%c2, %c512) : !t
  %o = gpu.alloc (%c2, %c512) : !t
  call @attend(%q, %q, %o) : (!t, !t, !t) -> ()
  gpu.dealloc %q : !t
  gpu.dealloc %o : !t
  return
}
