// Which chip and which PTX version each machine asks for.
// RUN: attn-opt %s -split-input-file -attn-attach-nvvm-target -verify-diagnostics | FileCheck %s

// CHECK-LABEL: attn.machine = #attn.machine<a100_80g>
// CHECK: gpu.module @first [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
// CHECK: gpu.module @second [#nvvm.target<O = 3, chip = "sm_80", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<a100_80g>} {
  gpu.module @first {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
  gpu.module @second {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<rtx_a6000>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_86", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<rtx_a6000>} {
  gpu.module @m {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<l4>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_89", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<l4>} {
  gpu.module @m {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<h100_sxm>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">]
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @m {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// CHECK-LABEL: attn.machine = #attn.machine<b200>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_100a", features = "+ptx86">]
module attributes {attn.machine = #attn.machine<b200>} {
  gpu.module @m {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// A target of an earlier run is replaced.
// CHECK-LABEL: attn.machine = #attn.machine<rtx_5090>
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_120", features = "+ptx87">]
module attributes {attn.machine = #attn.machine<rtx_5090>} {
  gpu.module @m [#nvvm.target<chip = "sm_80">] {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}

// -----

// What holds no kernel of ours is somebody else's.
// CHECK-LABEL: module @theirs
// CHECK: gpu.module @own [#nvvm.target<O = 3, chip = "sm_90a", features = "+ptx80">] attributes {tile.kernels}
// CHECK: gpu.module @targeted [#nvvm.target<chip = "sm_80">] {
// CHECK: gpu.module @other {
module @theirs attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @own {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
  gpu.module @targeted [#nvvm.target<chip = "sm_80">] {
    gpu.func @f() kernel {
      gpu.return
    }
  }
  gpu.module @other {}
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
  gpu.module @m {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
}
