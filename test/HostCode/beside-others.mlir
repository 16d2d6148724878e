// A module with kernels, a gpu.module and a symbol attn_kernels of its own: ours
// has another name and is the only one that is compiled here.  Upstream compiles
// theirs behind it, and both run.
// UNSUPPORTED: asan
// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm schedule=flash format=isa" > %t.ours
// RUN: FileCheck %s --input-file=%t.ours --check-prefix=OURS
// RUN: mlir-opt %t.ours --pass-pipeline="builtin.module(gpu.module(convert-gpu-to-nvvm,reconcile-unrealized-casts),nvvm-attach-target{chip=sm_90},gpu-module-to-binary{format=isa},func.func(gpu-async-region),expand-strided-metadata,convert-scf-to-cf,lower-affine,gpu-to-llvm,reconcile-unrealized-casts)" > %t
// RUN: env LD_LIBRARY_PATH=%build/test/fake-cuda ATTN_MGPU_LOG=%t.log mlir-runner %t --entry-point-result=void --shared-libs=%mgpu
// RUN: FileCheck %s --input-file=%t.log

// OURS: gpu.binary @attn_kernels_0 [
// OURS: gpu.module @attn_kernels {
// OURS: gpu.func @twice(
// OURS: gpu.launch_func @attn_kernels_0::@flash_
// OURS: gpu.launch_func @attn_kernels::@twice

// CHECK: load ptx
// CHECK: load ptx
// CHECK: allocate #1 32768 bytes
// CHECK: allocate #2 32768 bytes
// CHECK: function flash_
// CHECK-NEXT: launch {{.*}} #1 {{.*}} #2
// CHECK: function twice
// CHECK-NEXT: launch grid 4 1 1 threads 32 1 1 shared 0 arrays 0: #2
// CHECK: free #1
// CHECK: free #2
// CHECK: unload
// CHECK: unload

!t = memref<1x2x128x64xbf16>

module attributes {gpu.container_module} {
  gpu.module @attn_kernels {
    gpu.func @twice(%a: !t) kernel {
      %c0 = arith.constant 0 : index
      %i = gpu.thread_id x
      %v = memref.load %a[%c0, %c0, %c0, %i] : !t
      %w = arith.addf %v, %v : bf16
      memref.store %w, %a[%c0, %c0, %c0, %i] : !t
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %q = gpu.alloc () : !t
    %o = gpu.alloc () : !t
    attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
    gpu.launch_func @attn_kernels::@twice blocks in (%c4, %c1, %c1) threads in (%c32, %c1, %c1) args(%o : !t)
    gpu.dealloc %q : !t
    gpu.dealloc %o : !t
    return
  }
}
