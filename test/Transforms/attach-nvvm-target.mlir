// Which chip and which PTX version each machine asks for.
// RUN: attn-opt %s -split-input-file -attn-attach-nvvm-target -verify-diagnostics | FileCheck %s

// CHECK-LABEL: attn.machine = #attn.machine<a100_80g>
// CHECK: gpu.module @first [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: gpu.module @second [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<a100_80g>} {
  gpu.module @first {}
  gpu.module @second {}
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<rtx_a6000>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_86", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<rtx_a6000>} {
  gpu.module @m {}
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<l4>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_89", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<l4>} {
  gpu.module @m {}
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<h100_sxm>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @m {}
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<b200>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_100a", features = "+ptx86">]
module attributes {attn.machine = #attn.machine<b200>} {
  gpu.module @m {}
}

// -----

// A target of an earlier run is replaced.
// CHECK-LABEL: attn.machine = #attn.machine<rtx_5090>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_120", features = "+ptx87">]
module attributes {attn.machine = #attn.machine<rtx_5090>} {
  gpu.module @m [#nvvm.target<chip = "sm_80">] {}
}

// -----

// Without kernels there is nothing to say.
// CHECK-LABEL: func.func @no_kernels
func.func @no_kernels() {
  return
}

// -----

// expected-error @below {{expects the module attribute attn.machine: run -attn-attach-machine first}}
module {
  gpu.module @m {}
}
