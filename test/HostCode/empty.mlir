// Without queries there is nothing to launch, and scratch without a size is one
// word: a driver has no memory of none.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g schedule=score_spill format=isa" | mlir-opt --expand-strided-metadata --convert-scf-to-cf --lower-affine --gpu-to-llvm --reconcile-unrealized-casts > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log

!t = memref<1x2x?x64xf16>

// CHECK: allocate #1 16384 bytes
// CHECK: allocate #2 0 bytes
// CHECK-NOT: {{ 0 bytes|launch}}
// CHECK: allocate #6 4 bytes
// CHECK-NOT: {{ 0 bytes|launch}}
// CHECK: unload
func.func @main() {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %one = memref.alloc(%c64) : !t
  %none = memref.alloc(%c0) : !t
  call @attend(%none, %one, %none) : (!t, !t, !t) -> ()
  return
}

func.func @attend(%q: !t, %k: !t, %o: !t) {
  attn.forward %q, %k, %k outs(%o : !t) : !t, !t, !t
  return
}
