// Names of the user's stay the user's, and gpu.modules too.
// RUN: attn-opt %s -split-input-file -attn-to-binary="machine=h100_sxm format=isa" | FileCheck %s
// What is compiled already is left alone by a second run.
// RUN: attn-opt %s -split-input-file -attn-to-binary="machine=h100_sxm format=isa" | attn-opt -split-input-file -attn-to-binary="machine=h100_sxm format=isa" | FileCheck %s

!t = memref<1x2x256x64xbf16>

// CHECK: gpu.binary @[[KERNELS:attn_kernels_[0-9]+]] [
// CHECK: func.func @attn_kernels() {
// CHECK: func.func @f(
// CHECK: gpu.launch_func @[[KERNELS]]::@flash_wgmma_bf16_64
func.func @attn_kernels() {
  return
}
func.func @f(%q: !t, %o: !t) {
  attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
  return
}

// -----

// A module that holds a binary of ours, and a kernel of somebody else's.
!t = memref<1x2x256x64xbf16>

// CHECK: gpu.binary @[[KERNELS:attn_kernels_[0-9]+]] [
// CHECK: gpu.binary @attn_kernels [#gpu.object<#nvvm.target, "from before">]
// CHECK: gpu.module @mine {
// CHECK: gpu.func @twice(
// CHECK: gpu.launch_func @[[KERNELS]]::@flash_wgmma_bf16_64
// CHECK: gpu.launch_func @mine::@twice
module attributes {gpu.container_module} {
  gpu.binary @attn_kernels [#gpu.object<#nvvm.target, "from before">]
  gpu.module @mine {
    gpu.func @twice(%a: !t) kernel {
      gpu.return
    }
  }
  func.func @f(%q: !t, %o: !t) {
    %c1 = arith.constant 1 : index
    attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
    gpu.launch_func @mine::@twice blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%o : !t)
    return
  }
}

// -----

// A gpu.module of that name that is not ours.
!t = memref<1x2x256x64xbf16>

// CHECK: gpu.binary @attn_kernels_0 [
// CHECK: gpu.module @attn_kernels {
// CHECK: gpu.func @twice(
module {
  gpu.module @attn_kernels {
    gpu.func @twice(%a: !t) kernel {
      gpu.return
    }
  }
  func.func @f(%q: !t, %o: !t) {
    attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
    return
  }
}
