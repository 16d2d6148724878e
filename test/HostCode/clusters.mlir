// Clusters have a call of their own in MLIR's run time.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm format=isa" | mlir-opt --gpu-to-llvm > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log

!t = memref<1x2x300x512xbf16>

// CHECK: function column_split_wgmma_bf16_512
// CHECK-NEXT: launch clusters 2 1 1 grid {{[0-9]+}} 1 1 threads {{[0-9]+}} 1 1 shared
func.func @main() {
  %t = gpu.wait async
  %q, %u = gpu.alloc async [%t] () : !t
  %o, %v = gpu.alloc async [%u] () : !t
  gpu.wait [%v]
  attn.forward %q, %q, %q outs(%o : !t) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 2, slots = 10, resident = 1>} : !t, !t, !t
  return
}
