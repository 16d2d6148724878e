// memory=host: tensors lie on the host, and each op has copies on the GPU.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g schedule=flash format=isa memory=host" | mlir-opt --expand-strided-metadata --convert-scf-to-cf --lower-affine --gpu-to-llvm --reconcile-unrealized-casts > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log

// Without it they would have to lie on the GPU, and a constant does not.
// RUN: not attn-opt %s -attn-to-binary="machine=a100_80g format=isa" 2>&1 | FileCheck %s --check-prefix=DEVICE
// DEVICE: error: 'memref.get_global' op expects an array of the host, but makes one that lies on the GPU, since a kernel gets it
// DEVICE: note: memory=host keeps arrays on the host, and copies them for kernels

!q = tensor<1x4x128x64xf32>
!k = tensor<1x2x128x64xf32>
!lse = tensor<1x4x128xf32>

// Q and K of the first op; V is K.
// CHECK: load ptx
// CHECK-NEXT: allocate #1 131072 bytes
// CHECK-NEXT: copy #1 <- host 131072 bytes
// CHECK-NEXT: allocate #2 65536 bytes
// CHECK-NEXT: copy #2 <- host 65536 bytes
// CHECK-NEXT: allocate #3 131072 bytes
// CHECK-NEXT: allocate #4 2048 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f32_64_tf32x3_causal_lse
// CHECK-NEXT: launch {{.*}} arrays 0: #1 5: #2 10: #2 15: #3 20: #4
// CHECK-NEXT: wait
// CHECK-NEXT: copy host <- #3 131072 bytes
// CHECK-NEXT: copy host <- #4 2048 bytes
// CHECK-NEXT: free #1
// CHECK-NEXT: free #2
// CHECK-NEXT: free #3
// CHECK-NEXT: free #4
// CHECK-NEXT: wait
// The second op has no LSE.
// CHECK-NEXT: allocate #5 131072 bytes
// CHECK-NEXT: copy #5 <- host 131072 bytes
// CHECK-NEXT: allocate #6 65536 bytes
// CHECK-NEXT: copy #6 <- host 65536 bytes
// CHECK-NEXT: allocate #7 131072 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f32_64_tf32x3
// CHECK-NEXT: launch {{.*}} arrays 0: #5 5: #6 10: #6 15: #7
// CHECK-NEXT: wait
// CHECK-NEXT: copy host <- #7 131072 bytes
// CHECK-NEXT: free #5
// CHECK-NEXT: free #6
// CHECK-NEXT: free #7
// CHECK-NEXT: wait
// CHECK-NEXT: unload
// CHECK-NOT: {{.}}
func.func @attend(%q: !q, %k: !k) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k mask(causal) : !q, !k, !k -> !q, !lse
  %p = attn.forward %o, %k, %k : !q, !k, !k -> !q
  return %p, %lse : !q, !lse
}

func.func @main() {
  %q = arith.constant dense<0.5> : !q
  %k = arith.constant dense<0.25> : !k
  %o, %lse = call @attend(%q, %k) : (!q, !k) -> (!q, !lse)
  return
}
