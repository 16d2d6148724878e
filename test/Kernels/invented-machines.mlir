// Kernels for machines with little shared memory compute attention: tiles as
// small as they get.
// RUN: sed 's/MEMORY/16384/' %s > %t.16.mlir
// RUN: sed 's/MEMORY/32768/' %s > %t.32.mlir
// RUN: sed 's/MEMORY/49152/' %s > %t.48.mlir
// RUN: attn-run %t.16.mlir --on interpreter --function narrow | FileCheck %s --check-prefixes=CHECK,NARROW
// RUN: attn-run %t.16.mlir --on interpreter --schedule streamed_query,warps=1,column_warps=1,key=16 --function narrow | FileCheck %s --check-prefixes=CHECK,STREAMED
// RUN: attn-run %t.16.mlir --on interpreter --function wide | FileCheck %s --check-prefixes=CHECK,SPILL
// RUN: attn-run %t.32.mlir --on interpreter --function wide | FileCheck %s
// RUN: attn-run %t.48.mlir --on interpreter --function wide | FileCheck %s
// RUN: attn-run %t.48.mlir --on interpreter --schedule flash,query=48,key=16,stages=1,warps=3 --function wide | FileCheck %s

// NARROW: kernel {{.*}}flash_mma_sync_bf16_128
// STREAMED: kernel {{.*}}streamed_query_mma_sync_bf16_128
// SPILL: kernel {{.*}}{{(score|output)}}_spill_mma_sync_bf16_256
// CHECK-NOT: WRONG
// CHECK: moved

module attributes {attn.machine = #attn.machine<h100_sxm, smem_bytes_per_block = MEMORY>} {
  func.func @narrow(%q: tensor<1x2x70x128xbf16>,
      %k: tensor<1x1x90x128xbf16>, %v: tensor<1x1x90x128xbf16>)
      -> tensor<1x2x70x128xbf16> {
    %o = attn.forward %q, %k, %v mask(causal)
        : tensor<1x2x70x128xbf16>, tensor<1x1x90x128xbf16>, tensor<1x1x90x128xbf16>
       -> tensor<1x2x70x128xbf16>
    return %o : tensor<1x2x70x128xbf16>
  }

  func.func @wide(%q: tensor<1x1x70x256xbf16>,
      %k: tensor<1x1x90x256xbf16>, %v: tensor<1x1x90x256xbf16>)
      -> tensor<1x1x70x256xbf16> {
    %o = attn.forward %q, %k, %v
        : tensor<1x1x70x256xbf16>, tensor<1x1x90x256xbf16>, tensor<1x1x90x256xbf16>
       -> tensor<1x1x70x256xbf16>
    return %o : tensor<1x1x70x256xbf16>
  }
}
