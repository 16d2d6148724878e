// What a launch may get is the GPU's, wherever it comes from.
// RUN: attn-opt %s -split-input-file -attn-allocate-on-device | FileCheck %s

!t = memref<64xf32>
gpu.module @kernels {
  tile.kernel @kernel(%p: !tile.ptr<f32>) attributes {warps = 1 : i32} {
    tile.return
  }
}

// CHECK-LABEL: func.func @direct(
// CHECK-NEXT: %[[T0:.*]] = gpu.wait async
// CHECK-NEXT: %[[A:.*]], %[[T1:.*]] = gpu.alloc async [%[[T0]]] () : memref<64xf32>
// CHECK-NEXT: gpu.wait [%[[T1]]]
// CHECK: %[[HOST:.*]] = memref.alloc()
// CHECK: memref.store %{{.*}}, %[[HOST]][
// CHECK: %[[T2:.*]] = gpu.memcpy async [%{{.*}}] %[[A]], %[[HOST]] :
// CHECK-NEXT: gpu.wait [%[[T2]]]
// CHECK: tile.launch {{.*}} args(%[[A]])
// CHECK: %[[T3:.*]] = gpu.dealloc async [%{{.*}}] %[[A]]
// CHECK-NEXT: gpu.wait [%[[T3]]]
// CHECK-NEXT: memref.dealloc %[[HOST]]
func.func @direct(%one: index, %v: f32) {
  %a = memref.alloc() : !t
  %host = memref.alloc() : !t
  memref.store %v, %host[%one] : !t
  memref.copy %host, %a : !t to !t
  tile.launch @kernels::@kernel grid(%one, %one, %one) args(%a) : !t
  memref.dealloc %a : !t
  memref.dealloc %host : !t
  return
}

// Through views, loops and branches.
// CHECK-LABEL: func.func @flow(
// CHECK-COUNT-3: gpu.alloc async
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @flow(%n: index, %which: i1) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = memref.alloc() : memref<1x64xf32>
  %b = memref.alloc() : !t
  %flat = memref.collapse_shape %a [[0, 1]] : memref<1x64xf32> into !t
  %some = arith.select %which, %flat, %b : !t
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %some) -> !t {
    tile.launch @kernels::@kernel grid(%c1, %c1, %c1) args(%x) : !t
    %c = memref.alloc() : !t
    scf.yield %c : !t
  }
  return %last : !t
}

// Through calls, either way.
// CHECK-LABEL: func.func private @callee(
// CHECK: %[[A:.*]], %{{.*}} = gpu.alloc
// CHECK: return %[[A]]
// CHECK-LABEL: func.func @caller(
// CHECK: %[[B:.*]], %{{.*}} = gpu.alloc
// CHECK: %[[C:.*]] = call @callee(%[[B]])
// CHECK: gpu.dealloc {{.*}} %[[C]]
// CHECK: gpu.dealloc {{.*}} %[[B]]
func.func private @callee(%x: !t) -> !t {
  %c1 = arith.constant 1 : index
  tile.launch @kernels::@kernel grid(%c1, %c1, %c1) args(%x) : !t
  %a = memref.alloc() : !t
  return %a : !t
}
func.func private @user(%x: !t) {
  %c1 = arith.constant 1 : index
  tile.launch @kernels::@kernel grid(%c1, %c1, %c1) args(%x) : !t
  return
}
func.func @caller() {
  %b = memref.alloc() : !t
  %c = call @callee(%b) : (!t) -> !t
  call @user(%c) : (!t) -> ()
  memref.dealloc %c : !t
  memref.dealloc %b : !t
  return
}

// Somebody else's arrays are the host's still.
// CHECK-LABEL: func.func @other(
// CHECK: memref.alloc
// CHECK: memref.copy
func.func @other(%x: !t) {
  %a = memref.alloc() : !t
  memref.copy %x, %a : !t to !t
  return
}
