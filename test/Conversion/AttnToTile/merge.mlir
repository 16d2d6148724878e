// A merge is a launch of a kernel of its own, which those share that differ in
// sizes and strides only.
// RUN: attn-opt %s -attn-attach-machine -convert-attn-to-tile -canonicalize -cse -o %t
// RUN: FileCheck %s --input-file=%t
// RUN: attn-opt %t -attn-check-traffic=report -o %t.same 2>&1 | FileCheck %s --check-prefix=MOVES
// RUN: sed 's/%%[0-9]* = tile.load_row .*/&\n&/; s/\(%%[0-9]* = tile.load_row .*\)\n%%[0-9]* =/\1\n%%again =/' %t > %t.more
// RUN: not attn-opt %t.more -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: sed 's/dtype = "f16"/dtype = "f17"/' %t > %t.wrong
// RUN: not attn-opt %t.wrong -attn-check-traffic 2>&1 | FileCheck %s --check-prefix=WRONG

// CHECK: tile.kernel @merge_1_f16_24(%{{.*}}: !tile.ptr<f16> {tile.role = "o_0"}
// CHECK-SAME: merge = {batch = 1 : i64, direction = "forward", dtype = "f16", head_dim = 24 : i64, heads = 2 : i64, lse = false, parts = ["f16"], queries = 100 : i64}
// CHECK: tile.load_row
// CHECK: tile.load_fragment {{.*}} -> <16x24xf32, acc>
// CHECK: tile.store_fragment
// CHECK-NOT: tile.kernel

// 200 rows of two arrays of 48 bytes, and of an LSE.
// MOVES: remark: moves 20000 bytes at level l2 and 0 at level smem
// MORE: error: 'tile.kernel' op expects the 20000 bytes at level l2 of its merge, but moves 20800 (100 queries)
// WRONG: error: 'tile.kernel' op expects a legal merge, but got

!o = memref<1x2x100x24xf16>
!l = memref<1x2x100xf32>
!any = memref<?x2x?x24xf16>
!ls = memref<?x2x?xf32>

// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[O0:.*]]: memref<1x2x100x24xf16>, %[[L0:.*]]: memref<1x2x100xf32>, %[[O:.*]]: memref<1x2x100x24xf16>)
// CHECK: %[[BLOCKS:.*]] = arith.constant 4 : index
// CHECK: tile.launch @attn_kernels::@merge_1_f16_24 grid(%[[BLOCKS]],
func.func @f(%o0: !o, %l0: !l, %o: !o) {
  attn.merge (%o0, %l0) outs(%o : !o) : (!o, !l)
  return
}

// CHECK-LABEL: func.func @g(
// CHECK: cf.assert %{{.*}}, "expects batch between 0 and 1048576"
// CHECK: cf.assert %{{.*}}, "expects queries between 0 and 1073741823"
// CHECK: tile.launch @attn_kernels::@merge_1_f16_24 grid(
func.func @g(%o0: !any, %l0: !ls, %o: !any) {
  attn.merge (%o0, %l0) outs(%o : !any) : (!any, !ls)
  return
}
