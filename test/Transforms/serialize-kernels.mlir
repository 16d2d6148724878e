// Only ours become binaries, where they were.
// RUN: attn-opt %s -attn-serialize-kernels=format=isa | FileCheck %s
// RUN: not attn-opt %s -attn-serialize-kernels=format=fatbin 2>&1 | FileCheck %s --check-prefix=FORMAT

// FORMAT: error: expects a format of isa or bin, but got 'fatbin'

// CHECK: func.func @first
// CHECK: gpu.binary @ours [#gpu.object<#nvvm.target<O = 3, chip = "sm_80">{{.*}}.visible .entry k(
// CHECK: gpu.module @theirs [#nvvm.target<chip = "sm_80">] {
// CHECK: gpu.func @f(
func.func @first() {
  return
}
gpu.module @ours [#nvvm.target<O = 3, chip = "sm_80">] attributes {tile.kernels} {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.return
  }
}
gpu.module @theirs [#nvvm.target<chip = "sm_80">] {
  gpu.func @f(%a: memref<8xf32>) kernel {
    gpu.return
  }
}
