// From text to a cubin for each generation of the machines, and for both families
// of kernels on Hopper.
// REQUIRES: ptxas
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g schedule=flash" | FileCheck %s -D#SM=80 -DFAMILY=mma_sync --check-prefixes=CHECK,PLAIN
// RUN: attn-opt %s -attn-to-binary="machine=rtx_a6000 schedule=flash" | FileCheck %s -D#SM=86 -DFAMILY=mma_sync --check-prefixes=CHECK,PLAIN
// RUN: attn-opt %s -attn-to-binary="machine=l4 schedule=flash" | FileCheck %s -D#SM=89 -DFAMILY=mma_sync --check-prefixes=CHECK,PLAIN
// RUN: attn-opt %s -attn-to-binary=machine=h100_sxm | FileCheck %s -D#SM=90 -DFAMILY=wgmma --check-prefixes=CHECK,SPECIFIC
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm schedule=flash,query=64,key=64,stages=2,warps=4" | FileCheck %s -D#SM=90 -DFAMILY=mma_sync --check-prefixes=CHECK,SPECIFIC
// RUN: attn-opt %s -attn-to-binary="machine=b200 schedule=flash" | FileCheck %s -D#SM=100 -DFAMILY=mma_sync --check-prefixes=CHECK,SPECIFIC
// RUN: attn-opt %s -attn-to-binary="machine=rtx_5090 schedule=flash" | FileCheck %s -D#SM=120 -DFAMILY=mma_sync --check-prefixes=CHECK,PLAIN

// CHECK: gpu.binary @attn_kernels
// PLAIN-SAME: chip = "sm_[[#SM]]"
// SPECIFIC-SAME: chip = "sm_[[#SM]]a"
// An ELF file for a GPU (machine 190) that holds both kernels.
// CHECK-SAME: bin = "\7FELF
// CHECK-SAME: .text.flash_[[FAMILY]]_bf16_64
// CHECK-SAME: .text.flash_[[FAMILY]]_f16_128_causal
// CHECK: gpu.launch_func @attn_kernels::@flash_[[FAMILY]]_bf16_64
// CHECK: gpu.launch_func @attn_kernels::@flash_[[FAMILY]]_f16_128_causal
func.func @f(%q: tensor<1x2x256x64xbf16>, %r: tensor<1x2x256x128xf16>) -> (tensor<1x2x256x64xbf16>, tensor<1x2x256x128xf16>) {
  %o = attn.forward %q, %q, %q : tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16>, tensor<1x2x256x64xbf16> -> tensor<1x2x256x64xbf16>
  %p = attn.forward %r, %r, %r mask(causal) : tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16>, tensor<1x2x256x128xf16> -> tensor<1x2x256x128xf16>
  return %o, %p : tensor<1x2x256x64xbf16>, tensor<1x2x256x128xf16>
}
