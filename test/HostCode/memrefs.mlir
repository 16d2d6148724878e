// Attention on memory of the GPU, from -attn-to-binary through upstream's
// gpu-to-llvm to mlir-runner: what the driver is asked to do, call by call.
// UNSUPPORTED: asan
// DEFINE: %{opt} = mlir-opt --pass-pipeline="builtin.module(func.func(gpu-async-region),expand-strided-metadata,convert-scf-to-cf,lower-affine,gpu-to-llvm,reconcile-unrealized-casts)"
// DEFINE: %{run} = env LD_LIBRARY_PATH=%build/test/fake-cuda mlir-runner --entry-point-result=void --shared-libs=%mgpu

// On Hopper four arrays are tensor maps, and a counter hands out tiles.
// RUN: rm -f %t.log %t.cuda
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm schedule=flash format=isa" | %{opt} > %t.wgmma
// RUN: env ATTN_MGPU_LOG=%t.log ATTN_FAKE_CUDA_LOG=%t.cuda %{run} %t.wgmma
// RUN: FileCheck %s --input-file=%t.log --check-prefixes=CHECK,WGMMA
// RUN: FileCheck %s --input-file=%t.cuda --check-prefix=CUDA

// RUN: rm -f %t.log
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g schedule=flash format=isa" | %{opt} > %t.mma
// RUN: env ATTN_MGPU_LOG=%t.log %{run} %t.mma
// RUN: FileCheck %s --input-file=%t.log --check-prefixes=CHECK,MMA

// No attribute of ours is left, so upstream's tools read it as it is.
// RUN: grep -v gpu.binary %t.wgmma | not grep "attn\.\|tile\."

// CHECK: load ptx
// CHECK-NEXT: allocate #1 131072 bytes
// CHECK-NEXT: allocate #2 65536 bytes
// CHECK-NEXT: allocate #3 131072 bytes
// CHECK-NEXT: allocate #4 4096 bytes
// CHECK-NEXT: wait
// CHECK-NEXT: copy #1 <- host 131072 bytes
// CHECK-NEXT: copy #2 <- host 65536 bytes
// CHECK-NEXT: wait
// WGMMA-NEXT: allocate #5 4 bytes
// WGMMA-NEXT: fill #5 with 0, 1 words
// WGMMA-NEXT: wait
// WGMMA-NEXT: function flash_wgmma_bf16_64_causal_lse
// WGMMA-NEXT: launch grid {{[0-9]+}} 1 1 threads {{[0-9]+}} 1 1 shared {{[0-9]+}} arrays 0: map of #1 1: map of #2 2: map of #2 3: map of #3 4: #4 {{[0-9]+}}: #5
// WGMMA-NEXT: free #5
// WGMMA-NEXT: wait
// MMA-NEXT: function flash_mma_sync_bf16_64_causal_lse
// MMA-NEXT: launch grid {{[0-9]+}} 1 1 threads {{[0-9]+}} 1 1 shared {{[0-9]+}} arrays 0: #1 5: #2 10: #2 15: #3 20: #4
// MMA-NEXT: wait
// CHECK-NEXT: copy host <- #3 131072 bytes
// CHECK-NEXT: free #1
// CHECK-NEXT: free #2
// CHECK-NEXT: free #3
// CHECK-NEXT: free #4
// CHECK-NEXT: wait
// CHECK-NEXT: unload
// CHECK-NOT: {{.}}

// CUDA: load ptx
// CUDA-NEXT: encode type 9 promotion 2 extents 64 256 4 1 strides 128 32768 0 box 64 {{[0-9]+}} 1 1
// CUDA-NEXT: encode type 9 promotion 2 extents 64 256 2 1 strides 128 32768 0 box 64 {{[0-9]+}} 1 1
// CUDA-NEXT: encode type 9 promotion 2 extents 64 256 2 1 strides 128 32768 0 box 64 {{[0-9]+}} 1 1
// CUDA-NEXT: encode type 9 promotion 2 extents 64 256 4 1 strides 128 32768 0 box 64 {{[0-9]+}} 1 1
// CUDA-NEXT: launch flash_wgmma_bf16_64_causal_lse {{.*}}
// CUDA-NOT: {{.}}

!q = memref<1x4x256x64xbf16>
!k = memref<1x2x256x64xbf16>
!lse = memref<1x4x256xf32>

func.func @attend(%q: !q, %k: !k, %o: !q, %lse: !lse) {
  attn.forward %q, %k, %k mask(causal) outs(%o, %lse : !q, !lse) : !q, !k, !k
  return
}

func.func @main() {
  %q = gpu.alloc () : !q
  %k = gpu.alloc () : !k
  %o = gpu.alloc () : !q
  %lse = gpu.alloc () : !lse
  %hq = memref.alloc() : !q
  %hk = memref.alloc() : !k
  gpu.memcpy %q, %hq : !q, !q
  gpu.memcpy %k, %hk : !k, !k
  call @attend(%q, %k, %o, %lse) : (!q, !k, !q, !lse) -> ()
  gpu.memcpy %hq, %o : !q, !q
  gpu.dealloc %q : !q
  gpu.dealloc %k : !k
  gpu.dealloc %o : !q
  gpu.dealloc %lse : !lse
  memref.dealloc %hq : !q
  memref.dealloc %hk : !k
  return
}
