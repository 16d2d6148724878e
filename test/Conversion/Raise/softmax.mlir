// The linalg pattern, in the shapes that torch-mlir and the lowering of
// StableHLO produce.
// RUN: attn-opt %s -attn-raise=linalg=1 -canonicalize -split-input-file 2>/dev/null | FileCheck %s
// RUN: attn-opt %s -attn-raise=linalg=1 -split-input-file -verify-diagnostics
// RUN: attn-opt %s -attn-raise=linalg=1 -canonicalize -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" -attn-fold-transposes -canonicalize -split-input-file 2>/dev/null | FileCheck %s --check-prefix=VIEWS
// Without the option, a remark tells of it and nothing changes.
// RUN: attn-opt %s -split-input-file > %t.before
// RUN: attn-opt %s -attn-raise -split-input-file > %t.after 2> %t.remarks
// RUN: diff %t.before %t.after
// RUN: FileCheck %s --check-prefix=LEFT --input-file %t.remarks

// torch-mlir: batch and heads collapsed around the products, K transposed, the
// maximum with its position, sizes of 1 that are broadcast.
// CHECK-LABEL: @torch
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x8x100x64xf32>, %[[K:[a-z0-9]+]]: tensor<2x8x120x64xf32>, %[[V:[a-z0-9]+]]: tensor<2x8x120x64xf32>
// CHECK-NEXT: %[[O:.*]] = attn.forward %[[Q]], %[[K]], %[[V]] scale(1.250000e-01)
// CHECK-NEXT: return %[[O]]
#i4 = affine_map<(a, b, c, d) -> (a, b, c, d)>
#k4 = affine_map<(a, b, c, d) -> (a, b, c, 0)>
func.func @torch(%q: tensor<2x8x100x64xf32>, %k: tensor<2x8x120x64xf32>, %v: tensor<2x8x120x64xf32>) -> tensor<2x8x100x64xf32> {
  %cst = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale = arith.constant 8.0 : f32
  %kt0 = tensor.empty() : tensor<2x8x64x120xf32>
  %kt = linalg.transpose ins(%k : tensor<2x8x120x64xf32>) outs(%kt0 : tensor<2x8x64x120xf32>) permutation = [0, 1, 3, 2]
  %qc = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x8x100x64xf32> into tensor<16x100x64xf32>
  %kc = tensor.collapse_shape %kt [[0, 1], [2], [3]] : tensor<2x8x64x120xf32> into tensor<16x64x120xf32>
  %s0 = tensor.empty() : tensor<16x100x120xf32>
  %s1 = linalg.fill ins(%cst : f32) outs(%s0 : tensor<16x100x120xf32>) -> tensor<16x100x120xf32>
  %s2 = linalg.batch_matmul ins(%qc, %kc : tensor<16x100x64xf32>, tensor<16x64x120xf32>) outs(%s1 : tensor<16x100x120xf32>) -> tensor<16x100x120xf32>
  %s = tensor.expand_shape %s2 [[0, 1], [2], [3]] output_shape [2, 8, 100, 120] : tensor<16x100x120xf32> into tensor<2x8x100x120xf32>
  %e = tensor.empty() : tensor<2x8x100x120xf32>
  %x = linalg.generic {indexing_maps = [#i4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x8x100x120xf32>) outs(%e : tensor<2x8x100x120xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.divf %in, %scale : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x100x120xf32>
  %m0 = tensor.empty() : tensor<2x8x100x1xf32>
  %mi0 = tensor.empty() : tensor<2x8x100x1xi64>
  %c0 = arith.constant 0 : i64
  %mi1 = linalg.fill ins(%c0 : i64) outs(%mi0 : tensor<2x8x100x1xi64>) -> tensor<2x8x100x1xi64>
  %m1 = linalg.fill ins(%ninf : f32) outs(%m0 : tensor<2x8x100x1xf32>) -> tensor<2x8x100x1xf32>
  %m:2 = linalg.generic {indexing_maps = [#i4, #k4, #k4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%x : tensor<2x8x100x120xf32>) outs(%m1, %mi1 : tensor<2x8x100x1xf32>, tensor<2x8x100x1xi64>) {
  ^bb0(%in: f32, %out: f32, %oi: i64):
    %i = linalg.index 3 : index
    %ii = arith.index_cast %i : index to i64
    %0 = arith.maximumf %in, %out : f32
    %1 = arith.cmpf ogt, %in, %out : f32
    %2 = arith.select %1, %ii, %oi : i64
    linalg.yield %0, %2 : f32, i64
  } -> (tensor<2x8x100x1xf32>, tensor<2x8x100x1xi64>)
  %sub = linalg.generic {indexing_maps = [#i4, #k4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%x, %m#0 : tensor<2x8x100x120xf32>, tensor<2x8x100x1xf32>) outs(%e : tensor<2x8x100x120xf32>) {
  ^bb0(%in: f32, %mm: f32, %out: f32):
    %0 = arith.subf %in, %mm : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x100x120xf32>
  %exp = linalg.generic {indexing_maps = [#i4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%sub : tensor<2x8x100x120xf32>) outs(%e : tensor<2x8x100x120xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = math.exp %in : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x100x120xf32>
  %z1 = linalg.fill ins(%cst : f32) outs(%m0 : tensor<2x8x100x1xf32>) -> tensor<2x8x100x1xf32>
  %sum = linalg.generic {indexing_maps = [#i4, #k4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%exp : tensor<2x8x100x120xf32>) outs(%z1 : tensor<2x8x100x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %0 = arith.addf %in, %out : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x100x1xf32>
  %p = linalg.generic {indexing_maps = [#i4, #k4, #i4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%exp, %sum : tensor<2x8x100x120xf32>, tensor<2x8x100x1xf32>) outs(%e : tensor<2x8x100x120xf32>) {
  ^bb0(%in: f32, %mm: f32, %out: f32):
    %0 = arith.divf %in, %mm : f32
    linalg.yield %0 : f32
  } -> tensor<2x8x100x120xf32>
  %pc = tensor.collapse_shape %p [[0, 1], [2], [3]] : tensor<2x8x100x120xf32> into tensor<16x100x120xf32>
  %vc = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x8x120x64xf32> into tensor<16x120x64xf32>
  %o0 = tensor.empty() : tensor<16x100x64xf32>
  %o1 = linalg.fill ins(%cst : f32) outs(%o0 : tensor<16x100x64xf32>) -> tensor<16x100x64xf32>
  // LEFT: remark: softmax(Q K^T) V is left as it is, and -attn-raise=linalg=1 makes it an attn.forward: mask none, scale 0.125, heads 8 over 8, products in tf32x3
  // expected-remark @+1 {{softmax(Q K^T) V becomes an attn.forward: mask none, scale 0.125, heads 8 over 8, products in tf32x3}}
  %o2 = linalg.batch_matmul ins(%pc, %vc : tensor<16x100x120xf32>, tensor<16x120x64xf32>) outs(%o1 : tensor<16x100x64xf32>) -> tensor<16x100x64xf32>
  %o = tensor.expand_shape %o2 [[0, 1], [2], [3]] output_shape [2, 8, 100, 64] : tensor<16x100x64xf32> into tensor<2x8x100x64xf32>
  return %o : tensor<2x8x100x64xf32>
}

// -----

// Row numbers that are broadcast and compared, arith on tensors, and f16 whose
// scores are f32.  A conversion of the result is part of it.
// CHECK-LABEL: @plain
// CHECK: attn.forward {{.*}} mask(causal) scale(1.250000e-01) : tensor<1x1x100x64xf16>
// CHECK-NOT: linalg
// CHECK-NOT: truncf
func.func @plain(%q: tensor<100x64xf16>, %k: tensor<100x64xf16>, %v: tensor<100x64xf16>) -> tensor<100x64xf16> {
  %cst = arith.constant 0.0 : f32
  %ninf = arith.constant 0xFF800000 : f32
  %scale = arith.constant dense<0.125> : tensor<100x100xf32>
  %s0 = tensor.empty() : tensor<100x100xf32>
  %s1 = linalg.fill ins(%cst : f32) outs(%s0 : tensor<100x100xf32>) -> tensor<100x100xf32>
  %s = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%q, %k : tensor<100x64xf16>, tensor<100x64xf16>) outs(%s1 : tensor<100x100xf32>) -> tensor<100x100xf32>
  %x = arith.mulf %s, %scale : tensor<100x100xf32>
  %i0 = tensor.empty() : tensor<100xi32>
  %iota = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%i0 : tensor<100xi32>) {
  ^bb0(%out: i32):
    %i = linalg.index 0 : index
    %ii = arith.index_cast %i : index to i32
    linalg.yield %ii : i32
  } -> tensor<100xi32>
  %ie = tensor.empty() : tensor<100x100xi32>
  %rows = linalg.broadcast ins(%iota : tensor<100xi32>) outs(%ie : tensor<100x100xi32>) dimensions = [1]
  %cols = linalg.broadcast ins(%iota : tensor<100xi32>) outs(%ie : tensor<100x100xi32>) dimensions = [0]
  %cmp = arith.cmpi sge, %rows, %cols : tensor<100x100xi32>
  %inf = linalg.fill ins(%ninf : f32) outs(%s0 : tensor<100x100xf32>) -> tensor<100x100xf32>
  %y = arith.select %cmp, %x, %inf : tensor<100x100xi1>, tensor<100x100xf32>
  %p = linalg.softmax dimension(1) ins(%y : tensor<100x100xf32>) outs(%s0 : tensor<100x100xf32>) -> tensor<100x100xf32>
  %ph = arith.truncf %p : tensor<100x100xf32> to tensor<100x100xf16>
  %o0 = tensor.empty() : tensor<100x64xf32>
  %o1 = linalg.fill ins(%cst : f32) outs(%o0 : tensor<100x64xf32>) -> tensor<100x64xf32>
  // expected-remark @+1 {{mask causal, scale 0.125, heads 1 over 1}}
  %o = linalg.matmul ins(%ph, %v : tensor<100x100xf16>, tensor<100x64xf16>) outs(%o1 : tensor<100x64xf32>) -> tensor<100x64xf32>
  %oh = arith.truncf %o : tensor<100x64xf32> to tensor<100x64xf16>
  return %oh : tensor<100x64xf16>
}

// -----

#q = affine_map<(b, h, g, m, n, d) -> (b, m, h, g, d)>
#k = affine_map<(b, h, g, m, n, d) -> (b, n, h, d)>
#s = affine_map<(b, h, g, m, n, d) -> (b, h, g, m, n)>
#full = affine_map<(b, h, g, m, n) -> (b, h, g, m, n)>
#row = affine_map<(b, h, g, m, n) -> (b, h, g, m)>
#p = affine_map<(b, h, g, m, d, n) -> (b, h, g, m, n)>
#v = affine_map<(b, h, g, m, d, n) -> (b, n, h, d)>
#o = affine_map<(b, h, g, m, d, n) -> (b, m, h, g, d)>

// StableHLO, whose dot_general becomes a linalg.generic over [batch, rows, heads,
// group, d]: groups are a loop, max(-inf, x) is left of jax.nn.softmax, sub and
// exp are fused, and 1/sum is multiplied.  The scale is on Q.
// CHECK-LABEL: @stablehlo
// CHECK: linalg.transpose {{.*}} permutation = [0, 2, 3, 1, 4]
// CHECK: attn.forward {{.*}} mask(causal) scale(2.500000e-01) : tensor<2x8x50x64xf32>, tensor<2x2x50x64xf32>, tensor<2x2x50x64xf32>
// CHECK-NOT: linalg.generic
// CHECK: return
// Nothing is moved for it.
// VIEWS-LABEL: @stablehlo
// VIEWS-COUNT-4: memref.transpose
// VIEWS: attn.forward
// VIEWS-NOT: memref.copy
// VIEWS-NOT: linalg
// VIEWS: return
func.func @stablehlo(%q: tensor<2x50x2x4x64xf32>, %k: tensor<2x50x2x64xf32>, %v: tensor<2x50x2x64xf32>) -> tensor<2x50x2x4x64xf32> {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %scale = arith.constant dense<0.25> : tensor<f32>
  %q0 = tensor.empty() : tensor<2x50x2x4x64xf32>
  %scales = linalg.broadcast ins(%scale : tensor<f32>) outs(%q0 : tensor<2x50x2x4x64xf32>) dimensions = [0, 1, 2, 3, 4]
  %qs = linalg.map { arith.mulf } ins(%q, %scales : tensor<2x50x2x4x64xf32>, tensor<2x50x2x4x64xf32>) outs(%q0 : tensor<2x50x2x4x64xf32>)
  %s0 = tensor.empty() : tensor<2x2x4x50x50xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<2x2x4x50x50xf32>) -> tensor<2x2x4x50x50xf32>
  %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%qs, %k : tensor<2x50x2x4x64xf32>, tensor<2x50x2x64xf32>) outs(%s1 : tensor<2x2x4x50x50xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<2x2x4x50x50xf32>
  %x = linalg.generic {indexing_maps = [#full, #full], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%s : tensor<2x2x4x50x50xf32>) outs(%s0 : tensor<2x2x4x50x50xf32>) {
  ^bb0(%a: f32, %b: f32):
    %i = linalg.index 3 : index
    %j = linalg.index 4 : index
    %hide = arith.cmpi ult, %i, %j : index
    %0 = arith.select %hide, %inf, %a : f32
    linalg.yield %0 : f32
  } -> tensor<2x2x4x50x50xf32>
  %m0 = tensor.empty() : tensor<2x2x4x50xf32>
  %m1 = linalg.fill ins(%inf : f32) outs(%m0 : tensor<2x2x4x50xf32>) -> tensor<2x2x4x50xf32>
  %m2 = linalg.reduce { arith.maximumf } ins(%x : tensor<2x2x4x50x50xf32>) outs(%m1 : tensor<2x2x4x50xf32>) dimensions = [4]
  %m = linalg.map { arith.maximumf } ins(%m1, %m2 : tensor<2x2x4x50xf32>, tensor<2x2x4x50xf32>) outs(%m0 : tensor<2x2x4x50xf32>)
  %e = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x, %m : tensor<2x2x4x50x50xf32>, tensor<2x2x4x50xf32>) outs(%s0 : tensor<2x2x4x50x50xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.subf %a, %b : f32
    %1 = math.exp %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x2x4x50x50xf32>
  %l0 = linalg.fill ins(%zero : f32) outs(%m0 : tensor<2x2x4x50xf32>) -> tensor<2x2x4x50xf32>
  %l = linalg.reduce { arith.addf } ins(%e : tensor<2x2x4x50x50xf32>) outs(%l0 : tensor<2x2x4x50xf32>) dimensions = [4]
  %pw = linalg.generic {indexing_maps = [#full, #row, #full], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%e, %l : tensor<2x2x4x50x50xf32>, tensor<2x2x4x50xf32>) outs(%s0 : tensor<2x2x4x50x50xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.divf %one, %b : f32
    %1 = arith.mulf %a, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2x2x4x50x50xf32>
  %o1 = linalg.fill ins(%zero : f32) outs(%q0 : tensor<2x50x2x4x64xf32>) -> tensor<2x50x2x4x64xf32>
  // expected-remark @+1 {{mask causal, scale 0.25, heads 8 over 2, products in tf32x3; the scale comes behind the first product}}
  %o = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%pw, %v : tensor<2x2x4x50x50xf32>, tensor<2x50x2x64xf32>) outs(%o1 : tensor<2x50x2x4x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %c : f32
    linalg.yield %1 : f32
  } -> tensor<2x50x2x4x64xf32>
  return %o : tensor<2x50x2x4x64xf32>
}

// -----

// A mask that is added, by a constant of the lowest finite number, and no
// maximum: the remark says what changes.
// CHECK-LABEL: @finite
// CHECK: attn.forward {{.*}} mask(causal_bottom_right) scale(1.000000e+00)
func.func @finite(%q: tensor<?x2x16xf16>, %k: tensor<?x3x16xf16>, %v: tensor<?x3x16xf16>) -> tensor<?x2x16xf16> {
  %c0 = arith.constant 0 : index
  %b = tensor.dim %q, %c0 : tensor<?x2x16xf16>
  %zero = arith.constant 0.0 : f16
  %mask = arith.constant dense<[[0.0, 0.0, -65504.0], [0.0, 0.0, 0.0]]> : tensor<2x3xf16>
  %s0 = tensor.empty(%b) : tensor<?x2x3xf16>
  %s1 = linalg.fill ins(%zero : f16) outs(%s0 : tensor<?x2x3xf16>) -> tensor<?x2x3xf16>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<?x2x16xf16>, tensor<?x3x16xf16>) outs(%s1 : tensor<?x2x3xf16>) -> tensor<?x2x3xf16>
  %masks = linalg.broadcast ins(%mask : tensor<2x3xf16>) outs(%s0 : tensor<?x2x3xf16>) dimensions = [0]
  %x = arith.addf %masks, %s : tensor<?x2x3xf16>
  %e = math.exp %x : tensor<?x2x3xf16>
  %l0 = tensor.empty(%b) : tensor<?x2xf16>
  %l1 = linalg.fill ins(%zero : f16) outs(%l0 : tensor<?x2xf16>) -> tensor<?x2xf16>
  %l = linalg.reduce { arith.addf } ins(%e : tensor<?x2x3xf16>) outs(%l1 : tensor<?x2xf16>) dimensions = [2]
  %ls = linalg.broadcast ins(%l : tensor<?x2xf16>) outs(%s0 : tensor<?x2x3xf16>) dimensions = [2]
  %p = arith.divf %e, %ls : tensor<?x2x3xf16>
  %o0 = tensor.empty(%b) : tensor<?x2x16xf16>
  %o1 = linalg.fill ins(%zero : f16) outs(%o0 : tensor<?x2x16xf16>) -> tensor<?x2x16xf16>
  // expected-remark @+1 {{mask causal_bottom_right, scale 1, heads 1 over 1; scores are f32, not f16; the softmax subtracts the maximum; the mask's finite numbers count as -inf}}
  %o = linalg.batch_matmul ins(%p, %v : tensor<?x2x3xf16>, tensor<?x3x16xf16>) outs(%o1 : tensor<?x2x16xf16>) -> tensor<?x2x16xf16>
  return %o : tensor<?x2x16xf16>
}
