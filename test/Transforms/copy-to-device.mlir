// Inputs are copied to the GPU before an op, outputs back behind it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-copy-to-device | FileCheck %s

!t = memref<1x2x64x64xbf16>
!l = memref<1x2x64xf32>

// An array that is two inputs is copied once; outputs are not copied there.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[Q:[^:]*]]: memref<1x2x64x64xbf16>, %[[K:[^:]*]]: {{.*}}, %[[O:[^:]*]]: {{.*}}, %[[L:[^:]*]]: memref<1x2x64xf32>)
// CHECK-NEXT: %[[T0:.*]] = gpu.wait async
// CHECK-NEXT: %[[DQ:.*]], %[[T1:.*]] = gpu.alloc async [%[[T0]]] () : memref<1x2x64x64xbf16>
// CHECK-NEXT: %[[T2:.*]] = gpu.memcpy async [%[[T1]]] %[[DQ]], %[[Q]]
// CHECK-NEXT: %[[DK:.*]], %[[T3:.*]] = gpu.alloc async [%[[T2]]] () : memref<1x2x64x64xbf16>
// CHECK-NEXT: %[[T4:.*]] = gpu.memcpy async [%[[T3]]] %[[DK]], %[[K]]
// CHECK-NEXT: %[[DO:.*]], %[[T5:.*]] = gpu.alloc async [%[[T4]]] () : memref<1x2x64x64xbf16>
// CHECK-NEXT: %[[DL:.*]], %[[T6:.*]] = gpu.alloc async [%[[T5]]] () : memref<1x2x64xf32>
// CHECK-NEXT: gpu.wait [%[[T6]]]
// CHECK-NEXT: attn.forward %[[DQ]], %[[DK]], %[[DK]] outs(%[[DO]], %[[DL]] :
// CHECK-NEXT: %[[T7:.*]] = gpu.wait async
// CHECK-NEXT: %[[T8:.*]] = gpu.memcpy async [%[[T7]]] %[[O]], %[[DO]]
// CHECK-NEXT: %[[T9:.*]] = gpu.memcpy async [%[[T8]]] %[[L]], %[[DL]]
// CHECK-NEXT: gpu.dealloc async [%[[T9]]] %[[DQ]]
// CHECK-NEXT: gpu.dealloc {{.*}} %[[DK]]
// CHECK-NEXT: gpu.dealloc {{.*}} %[[DO]]
// CHECK-NEXT: gpu.dealloc {{.*}} %[[DL]]
// CHECK-NEXT: gpu.wait
// CHECK-NEXT: return
func.func @forward(%q: !t, %k: !t, %o: !t, %l: !l) {
  attn.forward %q, %k, %k outs(%o, %l : !t, !l) : !t, !t, !t
  return
}

// -----

!s = memref<1x2x64x64xbf16, strided<[16384, 64, 256, 1], offset: ?>>
!d = memref<1x2x?x64xbf16>

// Arrays with gaps are packed by the host, and sizes are asked for.
// CHECK-LABEL: func.func @gaps(
// CHECK-SAME: %[[Q:[^:]*]]: memref<1x2x64x64xbf16, strided<{{.*}}>>, %[[K:[^:]*]]: memref<1x2x?x64xbf16>, %[[O:[^:]*]]: memref
// CHECK: %[[PQ:.*]] = memref.alloc() : memref<1x2x64x64xbf16>
// CHECK-NEXT: memref.copy %[[Q]], %[[PQ]]
// CHECK-NEXT: %[[PO:.*]] = memref.alloc() : memref<1x2x64x64xbf16>
// CHECK: gpu.memcpy {{.*}} %[[DQ:.*]], %[[PQ]] :
// CHECK: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: %[[DK:.*]], %{{.*}} = gpu.alloc async [%{{.*}}] (%[[KEYS]]) : memref<1x2x?x64xbf16>
// CHECK: attn.forward %[[DQ]], %[[DK]], %[[DK]] outs(%[[DO:.*]] : memref<1x2x64x64xbf16>) : memref<1x2x64x64xbf16>, memref<1x2x?x64xbf16>, memref<1x2x?x64xbf16>
// CHECK: gpu.memcpy {{.*}} %[[PO]], %[[DO]]
// CHECK: gpu.wait
// CHECK-NEXT: memref.copy %[[PO]], %[[O]]
// CHECK-NEXT: memref.dealloc %[[PQ]]
// CHECK-NEXT: memref.dealloc %[[PO]]
// CHECK-NEXT: return
func.func @gaps(%q: !s, %k: !d, %o: !s) {
  attn.forward %q, %k, %k outs(%o : !s) : !s, !d, !d
  return
}

// -----

!t = tensor<1x2x64x64xbf16>
func.func @tensors(%q: !t) -> !t {
  // expected-error @below {{'attn.forward' op expects memrefs, whose copies can be made, but got tensors: bufferize first}}
  %o = attn.forward %q, %q, %q : !t, !t, !t -> !t
  return %o : !t
}
