// The host may not touch what lies on the GPU.
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-allocate-on-device

!t = memref<64xf32>
gpu.module @kernels {
  tile.kernel @kernel(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {
    tile.return
  }
}
func.func @reads(%a: !t, %one: index) -> f32 {
  // expected-note @below {{the kernel is here}}
  tile.launch @kernels::@kernel grid(%one, %one, %one) args(%a) : !t
  // expected-error @below {{'memref.load' op expects an array of the host, but reads one that lies on the GPU, since a kernel gets it}}
  // expected-note @below {{memory=host keeps arrays on the host, and copies them for kernels}}
  %v = memref.load %a[%one] : !t
  return %v : f32
}

// -----

!t = memref<64xf32>
gpu.module @kernels {
  tile.kernel @kernel(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {
    tile.return
  }
}
func.func @writes(%one: index, %v: f32) {
  %a = memref.alloc() : !t
  // expected-error @below {{'memref.store' op expects an array of the host, but writes one}}
  // expected-note @below {{memory=host}}
  memref.store %v, %a[%one] : !t
  // expected-note @below {{the kernel is here}}
  tile.launch @kernels::@kernel grid(%one, %one, %one) args(%a) : !t
  return
}

// -----

!t = memref<64xf32>
gpu.module @kernels {
  tile.kernel @kernel(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {
    tile.return
  }
}
memref.global "private" constant @numbers : !t = dense<1.0>
func.func private @use(%a: !t) {
  %one = arith.constant 1 : index
  // expected-note @below {{the kernel is here}}
  tile.launch @kernels::@kernel grid(%one, %one, %one) args(%a) : !t
  return
}
func.func @global() {
  // expected-error @below {{'memref.get_global' op expects an array of the host, but makes one that lies on the GPU}}
  // expected-note @below {{memory=host}}
  %a = memref.get_global @numbers : !t
  call @use(%a) : (!t) -> ()
  return
}

// -----

!t = memref<64xf32>
!s = memref<64xf32, strided<[2]>>
gpu.module @kernels {
  tile.kernel @kernel(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {
    tile.return
  }
}
func.func @gaps(%a: !t, %s: !s, %one: index) {
  // expected-note @below {{the kernel is here}}
  tile.launch @kernels::@kernel grid(%one, %one, %one) args(%a) : !t
  // expected-error @below {{'memref.copy' op expects an array of the host, but copies parts of one that lies on the GPU}}
  // expected-note @below {{memory=host}}
  memref.copy %a, %s : !t to !s
  return
}
