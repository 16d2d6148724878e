// The pipelines say so when attention is left to others, and name the pass that
// raises it; after that pass they have nothing to say.
// RUN: attn-opt %s -attn-to-tile 2>&1 | FileCheck %s
// RUN: attn-opt %s -attn-raise=linalg=1 -attn-to-tile 2>&1 | FileCheck %s --check-prefix=RAISED
// RUN: not attn-opt %S/Inputs/composite.mlir -attn-to-tile --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: attn-opt %S/Inputs/composite.mlir -attn-raise -attn-to-tile --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=RAISED

// CHECK: unraised.mlir:[[#@LINE+22]]:8: remark: softmax(Q K^T) V is left as it is, and -attn-raise=linalg=1 makes it an attn.forward
// CHECK-NOT: tile.kernel
// CHECK: func.func @f

// RUN: not attn-opt %S/Inputs/double.mlir -attn-to-tile --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=MISS
// MISS: double.mlir:4:8: remark: 'onnx.Attention' is left as it is, and -attn-raise does not take it: softmax_precision: attn.forward has f32, not f64

// RAISED: remark: {{.*}} becomes an attn.forward
// RAISED-NOT: remark
// RAISED: tile.kernel

// NAMED: composite.mlir:4:8: remark: 'stablehlo.composite' is left as it is, and -attn-raise makes it an attn.forward: mask causal
// NAMED: error: op was not bufferized

func.func @f(%q: tensor<1x100x64xf16>) -> tensor<1x100x64xf16> {
  %zero = arith.constant 0.0 : f16
  %s0 = tensor.empty() : tensor<1x100x100xf16>
  %s1 = linalg.fill ins(%zero : f16) outs(%s0 : tensor<1x100x100xf16>) -> tensor<1x100x100xf16>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %q : tensor<1x100x64xf16>, tensor<1x100x64xf16>) outs(%s1 : tensor<1x100x100xf16>) -> tensor<1x100x100xf16>
  %p = linalg.softmax dimension(2) ins(%s : tensor<1x100x100xf16>) outs(%s0 : tensor<1x100x100xf16>) -> tensor<1x100x100xf16>
  %o0 = tensor.empty() : tensor<1x100x64xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<1x100x64xf16>) -> tensor<1x100x64xf16>
  %o = linalg.batch_matmul ins(%p, %q : tensor<1x100x100xf16>, tensor<1x100x64xf16>) outs(%o1 : tensor<1x100x64xf16>) -> tensor<1x100x64xf16>
  return %o : tensor<1x100x64xf16>
}
