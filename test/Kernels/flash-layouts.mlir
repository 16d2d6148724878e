// RUN: attn-run %s --on interpreter --function rows_before_heads --guard --queries 77 --keys 77 | FileCheck %s
// RUN: attn-run %s --on interpreter --function dynamic --guard --batch 3 --queries 65 --keys 40 | FileCheck %s
// RUN: attn-run %s --on interpreter --function dynamic --guard --batch 1 --queries 1 --keys 1 | FileCheck %s

// Strides and dynamic extents, against fp64; memory around the arrays is watched.
// CHECK-NOT: WRONG
// CHECK: moved

func.func @rows_before_heads(
    %q: memref<2x4x?x64xbf16, strided<[?, 64, 256, 1], offset: ?>>,
    %k: memref<2x2x?x64xbf16, strided<[?, 64, 128, 1], offset: ?>>,
    %v: memref<2x2x?x64xbf16, strided<[?, 64, 128, 1], offset: ?>>,
    %o: memref<2x4x?x64xbf16, strided<[?, 64, 256, 1], offset: ?>>,
    %lse: memref<2x4x?xf32>) {
  attn.forward %q, %k, %v mask(causal) outs(%o, %lse
      : memref<2x4x?x64xbf16, strided<[?, 64, 256, 1], offset: ?>>,
        memref<2x4x?xf32>)
      : memref<2x4x?x64xbf16, strided<[?, 64, 256, 1], offset: ?>>,
        memref<2x2x?x64xbf16, strided<[?, 64, 128, 1], offset: ?>>,
        memref<2x2x?x64xbf16, strided<[?, 64, 128, 1], offset: ?>>
  return
}

func.func @dynamic(%q: tensor<?x2x?x32xf16>, %k: tensor<?x1x?x32xf16>,
    %v: tensor<?x1x?x32xf16>) -> tensor<?x2x?x32xf16> {
  %o = attn.forward %q, %k, %v mask(causal)
      : tensor<?x2x?x32xf16>, tensor<?x1x?x32xf16>, tensor<?x1x?x32xf16>
     -> tensor<?x2x?x32xf16>
  return %o : tensor<?x2x?x32xf16>
}
