// Tensors are memory of the GPU: arguments are the caller's, results are
// allocated there and become the caller's, and what is in between is freed.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g schedule=flash format=isa" > %t.binary
// RUN: mlir-opt %t.binary --pass-pipeline="builtin.module(func.func(gpu-async-region),expand-strided-metadata,convert-scf-to-cf,lower-affine,gpu-to-llvm,reconcile-unrealized-casts)" > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log
// RUN: FileCheck %s --input-file=%t.binary --check-prefix=HOST

// Nothing for a kernel comes from malloc.
// HOST-LABEL: func.func @attend(
// HOST-NOT: memref.alloc
// HOST-LABEL: func.func @main(

!t = tensor<1x2x128x64xf16>
!m = memref<1x2x128x64xf16>

// CHECK: load ptx
// CHECK-NEXT: allocate #1 32768 bytes
// CHECK-NEXT: allocate #2 32768 bytes
// CHECK-NEXT: copy #1 <- host 32768 bytes
// CHECK-NEXT: copy #2 <- host 32768 bytes
// CHECK-NEXT: wait
// Two rounds of two ops: what a round starts from is freed behind it, but not
// the argument.
// CHECK-NEXT: allocate #3 32768 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f16_64
// CHECK-NEXT: launch {{.*}} arrays 0: #1 5: #2 10: #2 15: #3
// CHECK-NEXT: allocate #4 32768 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f16_64
// CHECK-NEXT: launch {{.*}} arrays 0: #3 5: #2 10: #2 15: #4
// CHECK-NEXT: wait
// CHECK-NEXT: free #3
// CHECK-NEXT: wait
// CHECK-NEXT: allocate #5 32768 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f16_64
// CHECK-NEXT: launch {{.*}} arrays 0: #4 5: #2 10: #2 15: #5
// CHECK-NEXT: allocate #6 32768 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: function flash_mma_sync_f16_64
// CHECK-NEXT: launch {{.*}} arrays 0: #5 5: #2 10: #2 15: #6
// CHECK-NEXT: wait
// CHECK-NEXT: free #4
// CHECK-NEXT: wait
// CHECK-NEXT: free #5
// CHECK-NEXT: wait
// CHECK-NEXT: copy host <- #6 32768 bytes
// CHECK-NEXT: free #1
// CHECK-NEXT: free #2
// CHECK-NEXT: free #6
// CHECK-NEXT: wait
// CHECK-NEXT: unload
// CHECK-NOT: {{.}}
func.func @attend(%q: !t, %k: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !t {
    %a = attn.forward %x, %k, %k : !t, !t, !t -> !t
    %b = attn.forward %a, %k, %k : !t, !t, !t -> !t
    scf.yield %b : !t
  }
  return %last : !t
}

func.func @main() {
  %two = arith.constant 2 : index
  %host = memref.alloc() : !m
  %x = gpu.alloc () : !m
  %y = gpu.alloc () : !m
  gpu.memcpy %x, %host : !m, !m
  gpu.memcpy %y, %host : !m, !m
  %q = bufferization.to_tensor %x restrict writable : !m to !t
  %k = bufferization.to_tensor %y restrict writable : !m to !t
  %o = call @attend(%q, %k, %two) : (!t, !t, index) -> !t
  %z = bufferization.to_buffer %o : !t to !m
  gpu.memcpy %host, %z : !m, !m
  gpu.dealloc %x : !m
  gpu.dealloc %y : !m
  gpu.dealloc %z : !m
  memref.dealloc %host : !m
  return
}
