// A value that is used twice has a sum of gradients, which is an arith op on
// tensors, and a destination has zeros.  They become loops of the host between
// the launches, on arrays of the host.
// RUN: attn-opt %s -attn-differentiate -attn-to-tile=machine=h100_sxm | FileCheck %s
// RUN: attn-opt %s -attn-differentiate -attn-to-binary="machine=h100_sxm format=isa memory=host" | FileCheck %s --check-prefix=BINARY

// CHECK-NOT: linalg.
// BINARY: gpu.binary @{{.*}} [#gpu.object<

!t = tensor<1x16x1024x64xbf16>
// CHECK-LABEL: func.func @twice_vjp(
// CHECK: tile.launch {{.*}}@flash_wgmma
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_bf16_64_lse_low grid({{.*}}) args(%arg0, %arg1, %arg1, %arg2, %[[DK:[a-z0-9_]*]], %[[DV:[a-z0-9_]*]],
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_bf16_64_finish_lse_low grid({{.*}}) args(%[[DQ:[a-z0-9_]*]],
// CHECK-COUNT-3: scf.for
// CHECK: %[[A:.*]] = memref.load %[[DK]][
// CHECK: %[[B:.*]] = memref.load %[[DV]][
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : bf16
// CHECK: memref.store %[[SUM]], %[[DK]][
// CHECK: return %[[DQ]], %[[DK]]
// BINARY-LABEL: func.func @twice_vjp(
// BINARY: gpu.launch_func {{.*}}@flash_backward_wgmma_bf16_64_finish_lse_low
// BINARY: arith.addf {{.*}} : bf16
func.func @twice(%q: !t, %kv: !t) -> !t {
  %o = attn.forward %q, %kv, %kv : !t, !t, !t -> !t
  return %o : !t
}

!d = tensor<?x4x?x64xf16>
// CHECK-LABEL: func.func @chain_vjp(
// CHECK-COUNT-3: arith.addf {{.*}} : f16
// CHECK: memref.store %cst{{[_0-9]*}}, %[[ZEROS:[a-z0-9_]*]][
// CHECK: return %{{.*}}, %{{.*}}, %[[ZEROS]]
// BINARY-LABEL: func.func @chain_vjp(
// BINARY-COUNT-3: arith.addf {{.*}} : f16
func.func @chain(%q: !d, %k: !d, %destination: !d) -> !d {
  %a = attn.forward %q, %k, %k outs(%destination : !d) : !d, !d, !d -> !d
  %o = attn.forward %a, %q, %k mask(causal) : !d, !d, !d -> !d
  return %o : !d
}
