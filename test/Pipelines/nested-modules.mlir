// Modules in a module are compiled each for its own machine, or for that of the
// module around it; their symbols are their own.
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g format=isa" | FileCheck %s
// RUN: attn-opt %s -pass-pipeline="builtin.module(builtin.module(attn-to-binary{format=isa}))" | FileCheck %s --check-prefix=INNER
// Two machines, two targets, and upstream takes each module.
// RUN: attn-opt %s -attn-to-binary="machine=a100_80g format=isa" > %t
// RUN: mlir-opt %t -pass-pipeline="builtin.module(gpu-to-llvm)" | FileCheck %s --check-prefix=UPSTREAM

!t = tensor<1x2x256x64xbf16>

// CHECK-NOT: attn.machine
// CHECK: gpu.binary @attn_kernels {{.*}} chip = "sm_80"
// CHECK-LABEL: module @hopper attributes {gpu.container_module}
// CHECK: gpu.binary @attn_kernels {{.*}} chip = "sm_90a"
// CHECK: gpu.launch_func @attn_kernels::
// CHECK-LABEL: module @ada attributes {gpu.container_module}
// CHECK: gpu.binary @attn_kernels {{.*}} chip = "sm_89"
// CHECK: gpu.launch_func @attn_kernels::
// CHECK-LABEL: module @unnamed
// CHECK: gpu.binary @attn_kernels {{.*}} chip = "sm_80"
// CHECK-LABEL: func.func @outer(
// CHECK: gpu.launch_func @attn_kernels::

// INNER-LABEL: module @hopper
// INNER: gpu.binary @attn_kernels {{.*}} chip = "sm_90a"
// INNER-LABEL: module @ada
// INNER: gpu.binary @attn_kernels {{.*}} chip = "sm_89"
// INNER-LABEL: func.func @outer(
// INNER: attn.forward

// UPSTREAM-NOT: gpu.alloc
// UPSTREAM-LABEL: module @hopper
// UPSTREAM: llvm.func @f(
// UPSTREAM-LABEL: module @ada
// UPSTREAM: llvm.func @f(
// UPSTREAM-LABEL: llvm.func @outer(

module @hopper attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @f(%q: !t, %k: !t) -> !t {
    %o = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
    return %o : !t
  }
}
module @ada attributes {attn.machine = #attn.machine<l4>} {
  func.func @f(%q: !t, %k: !t) -> !t {
    %o = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
    return %o : !t
  }
}
module @unnamed {
  module {
    func.func @f(%q: !t) -> !t {
      %o = attn.forward %q, %q, %q : !t, !t, !t -> !t
      return %o : !t
    }
  }
}
func.func @outer(%q: !t, %k: !t) -> !t {
  %o = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
  return %o : !t
}
