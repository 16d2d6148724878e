// Gradients of what scores read: what is launched around the kernels, and
// whether these move what plans promise.
// RUN: attn-opt %s -split-input-file -attn-to-tile=machine=h100_sxm -attn-check-traffic | grep -E "func.func|tile.launch" | FileCheck %s
// RUN: attn-opt %s -split-input-file -attn-to-tile=machine=a100_80g -attn-check-traffic | grep -E "func.func|tile.launch" | FileCheck %s

// Pairs add to a bias, which is cleared before.
// CHECK-LABEL: func.func @bias
// CHECK: tile.launch @attn_kernels::@cleared_gradient_0
// CHECK: tile.launch @attn_kernels::@{{.*}}_captured
// CHECK-NOT: gathered
!q = memref<2x4x300x64xbf16>
!k = memref<2x2x200x64xbf16>
!x = memref<4x300x200xbf16>
!y = memref<4x300x200xf32>
func.func @bias(%q: !q, %k: !k, %v: !k, %o: !q, %l: memref<2x4x300xf32>, %x: !x, %do: !q, %dq: !q, %dk: !k, %dv: !k, %dx: !y) {
  attn.backward %do, %q, %k, %v, %o, %l mask(causal) bias(%x : !x) gradients(%x)
      outs(%dq, %dk, %dv, %dx : !q, !k, !k, !y)
      : !q, !q, !k, !k, !q, memref<2x4x300xf32>
  return
}

// -----

// Slopes and sinks are sums of heads, whatever asks for them first.
// CHECK-LABEL: func.func @heads
// CHECK-NOT: cleared
// CHECK: tile.launch @attn_kernels::@split_backward{{.*}}_captured
// CHECK: tile.launch @attn_kernels::@gathered_gradient_0
// CHECK: tile.launch @attn_kernels::@gathered_gradient_1
!q = memref<2x4x?x64xbf16>
!l = memref<2x4x?xf32>
!x = memref<4xf32>
func.func @heads(%q: !q, %k: !q, %v: !q, %o: !q, %l: !l, %x: !x, %s: !x, %do: !q, %dq: !q, %dk: !q, %dv: !q, %dx: !x, %ds: !x) {
  attn.backward %do, %q, %k, %v, %o, %l alibi(%x : !x) sinks(%s : !x) gradients(%s, %x)
      outs(%dq, %dk, %dv, %ds, %dx : !q, !q, !q, !x, !x) {deterministic}
      : !q, !q, !q, !q, !q, !l
  return
}

// -----

// What only a mask reads gets zeros.
// CHECK-LABEL: func.func @seen
// CHECK: tile.launch @attn_kernels::@cleared_gradient_0
!q = memref<1x4x256x64xbf16>
!l = memref<1x4x256xf32>
!x = memref<4xf32>
func.func @seen(%q: !q, %k: !q, %v: !q, %o: !q, %l: !l, %x: !x, %do: !q, %dq: !q, %dk: !q, %dv: !q, %dx: !x) {
  attn.backward %do, %q, %k, %v, %o, %l captures(%x : !x)
      sees (%b, %h, %i, %j, %nq, %nk, %y) {
        %zero = arith.constant 0.0 : f32
        %r = attn.read %y[%h] : !x
        %s = arith.cmpf ogt, %r, %zero : f32
        attn.yield %s : i1
      } gradients(%x)
      outs(%dq, %dk, %dv, %dx : !q, !q, !q, !x)
      : !q, !q, !q, !q, !q, !l
  return
}
