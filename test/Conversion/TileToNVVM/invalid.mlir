// RUN: attn-opt %s -convert-tile-to-nvvm -split-input-file -verify-diagnostics

// expected-error @below {{'tile.kernel' op expects to stand in a gpu.module of a module}}
tile.kernel @outside() attributes {warps = 1 : i32} {
  tile.return
}

// -----

module {
  gpu.module @outer {
    gpu.module @kernels {
      // expected-error @below {{'tile.kernel' op expects to stand in a gpu.module of a module}}
      tile.kernel @nested() attributes {warps = 1 : i32} {
        tile.return
      }
    }
  }
}
