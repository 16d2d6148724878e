// What the host asserts of sizes that are not known yet: the limits of
// Schedule/Limits.h, and none of sizes that the verifier has seen.
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize -cse -split-input-file | FileCheck %s

// CHECK-LABEL: func.func @open
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x?x64xf16>, %[[K:[^:]*]]: memref<?x2x?x64xf16>
// CHECK-DAG: %[[BATCH:.*]] = memref.dim %[[Q]], %c0
// CHECK-DAG: %[[QUERIES:.*]] = memref.dim %[[Q]], %c2
// CHECK-DAG: %[[KEYS:.*]] = memref.dim %[[K]], %c2
// CHECK: arith.cmpi sle, %[[BATCH]], %c1048576
// CHECK: cf.assert %{{.*}}, "expects batch between 0 and 1048576"
// CHECK: arith.cmpi sle, %[[QUERIES]], %c1073741823
// CHECK: cf.assert %{{.*}}, "expects queries between 0 and 1073741823"
// CHECK: cf.assert %{{.*}}, "expects keys between 0 and 1073741823"
// CHECK: cf.assert %{{.*}}, "expects at most 2^58 products (batch x heads x queries x keys x head dim, in whole tiles)"
// CHECK: %[[TILES:.*]] = arith.ceildivsi %{{.*}}, %c16
// CHECK: arith.cmpi sle, %[[TILES]], %{{.*}}
// CHECK: cf.assert %{{.*}}, "expects at most 2^30 tiles of 16 queries (batch x heads x queries / 16)"
// CHECK: cf.assert %{{.*}}, "expects at most 2^30 tiles of 16 keys (batch x kv heads x keys / 16)"
// CHECK: cf.assert %{{.*}}, "expects at most 2147483647 queries of all heads that share a kv head (heads / kv heads x queries)"
// CHECK: tile.launch
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @open(%q: memref<?x4x?x64xf16>, %k: memref<?x2x?x64xf16>, %o: memref<?x4x?x64xf16>) {
    attn.forward %q, %k, %k mask(causal) outs(%o : memref<?x4x?x64xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<?x4x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>
    return
  }
}

// -----

// CHECK-LABEL: func.func @known
// CHECK-NOT: cf.assert
// CHECK: tile.launch
// CHECK-NOT: cf.assert
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @known(%q: memref<1x4x100x64xf16>, %k: memref<1x2x100x64xf16>, %o: memref<1x4x100x64xf16>) {
    attn.forward %q, %k, %k outs(%o : memref<1x4x100x64xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x4x100x64xf16>, memref<1x2x100x64xf16>, memref<1x2x100x64xf16>
    return
  }
}
