// Layers in a loop on tensors: each round takes what the one before gave.
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm | FileCheck %s
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm format=isa" | FileCheck %s --check-prefix=BINARY

!t = tensor<1x2x256x64xbf16>

// CHECK-LABEL: func.func @layers(
// CHECK-SAME: %[[Q:.*]]: memref<1x2x256x64xbf16>, %[[K:.*]]: memref<1x2x256x64xbf16>
// CHECK: %[[LAST:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %[[Q]]) -> (memref<1x2x256x64xbf16>)
// CHECK: %[[O:.*]] = memref.alloc
// CHECK: tile.launch {{.*}} args(%[[X]], %[[K]], %[[K]], %[[O]],
// CHECK: scf.yield %[[O]]
// CHECK: return %[[LAST]]
// BINARY: gpu.binary
// BINARY-LABEL: func.func @layers(
// BINARY: scf.for
// BINARY: gpu.launch_func
func.func @layers(%q: !t, %k: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %q) -> !t {
    %o = attn.forward %x, %k, %k : !t, !t, !t -> !t
    scf.yield %o : !t
  }
  return %last : !t
}

// CHECK-LABEL: func.func @either(
// CHECK: scf.if
// CHECK: tile.launch
func.func @either(%q: !t, %k: !t, %is: i1) -> !t {
  %r = scf.if %is -> !t {
    %o = attn.forward %q, %k, %k : !t, !t, !t -> !t
    scf.yield %o : !t
  } else {
    scf.yield %q : !t
  }
  return %r : !t
}
