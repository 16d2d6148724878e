// What is launched for an op: the kernel, the grid, the arguments by role.
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize -cse -split-input-file | FileCheck %s

// Arguments are base, offset and three strides per operand, rows, heads per
// key head, scale.  128 + 40 rows are 2 tiles of 128, of 3 x 8 heads 48.  LSE
// has a gap behind the rows of a head, so those of a group are not packed.
// CHECK-LABEL: attn.machine = #attn.machine<h100_sxm>
// CHECK: gpu.module @attn_kernels
// CHECK: tile.kernel @flash_mma_sync_bf16_64_lse(
// CHECK-SAME: !tile.ptr<bf16> {tile.role = "q"}, %{{[^:]*}}: i64 {tile.role = "q_offset"}, %{{[^:]*}}: i64 {tile.role = "q_stride_batch"}, %{{[^:]*}}: i64 {tile.role = "q_stride_head"}, %{{[^:]*}}: i64 {tile.role = "q_stride_row"},
// CHECK-SAME: {tile.role = "k"}, {{.*}} {tile.role = "v"}, {{.*}} {tile.role = "o"}, {{.*}}: !tile.ptr<f32> {tile.role = "lse"},
// CHECK-SAME: i32 {tile.role = "queries"}, %{{[^:]*}}: i32 {tile.role = "keys"}, %{{[^:]*}}: i32 {tile.role = "heads"}, %{{[^:]*}}: i32 {tile.role = "batch"}, %{{[^:]*}}: i32 {tile.role = "group"}, %{{[^:]*}}: f32 {tile.role = "scale"})
// CHECK-SAME: machine = #attn.machine<h100_sxm>
// CHECK-SAME: problem = {batch = 3 : i64, dtype = "bf16", head_dim = 64 : i64, head_dim_v = 64 : i64, heads = 8 : i64, keys = 200 : i64, kv_heads = 2 : i64, lse = true, mask = "none", queries = 168 : i64}
// CHECK-SAME: schedule = #attn.schedule<flash, query = 128, key = 64, stages = 1, warps = 4>, warps = 4 : i32}
// CHECK-LABEL: func.func @arguments(
// CHECK-SAME: %[[Q:[^:]*]]: memref<3x8x168x64xbf16>, %[[K:[^:]*]]: memref<3x2x200x64xbf16>, %[[V:[^:]*]]: memref<3x2x200x64xbf16>, %[[O:[^:]*]]: memref<3x8x168x64xbf16>, %[[L:[^:]*]]: memref<3x8x168xf32, strided<[1408, 176, 1]>>)
// CHECK-DAG: %[[TILES:.*]] = arith.constant 48 : index
// CHECK-DAG: %[[UNIT:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[ROW:.*]] = arith.constant 64 : i64
// CHECK-DAG: %[[QHEAD:.*]] = arith.constant 10752 : i64
// CHECK-DAG: %[[QBATCH:.*]] = arith.constant 86016 : i64
// CHECK-DAG: %[[KHEAD:.*]] = arith.constant 12800 : i64
// CHECK-DAG: %[[KBATCH:.*]] = arith.constant 25600 : i64
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-DAG: %[[LHEAD:.*]] = arith.constant 176 : i64
// CHECK-DAG: %[[LBATCH:.*]] = arith.constant 1408 : i64
// CHECK-DAG: %[[QUERIES:.*]] = arith.constant 168 : i32
// CHECK-DAG: %[[KEYS:.*]] = arith.constant 200 : i32
// CHECK-DAG: %[[HEADS:.*]] = arith.constant 8 : i32
// CHECK-DAG: %[[BATCH:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[GROUP:.*]] = arith.constant 4 : i32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_bf16_64_lse grid(%[[TILES]], %[[UNIT]], %[[UNIT]])
// CHECK-SAME: args(%[[Q]], %[[ZERO]], %[[QBATCH]], %[[QHEAD]], %[[ROW]], %[[K]], %[[ZERO]], %[[KBATCH]], %[[KHEAD]], %[[ROW]], %[[V]], %[[ZERO]], %[[KBATCH]], %[[KHEAD]], %[[ROW]], %[[O]], %[[ZERO]], %[[QBATCH]], %[[QHEAD]], %[[ROW]], %[[L]], %[[ZERO]], %[[LBATCH]], %[[LHEAD]], %[[ONE]], %[[QUERIES]], %[[KEYS]], %[[HEADS]], %[[BATCH]], %[[GROUP]], %[[SCALE]])
// CHECK-NOT: attn.forward
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @arguments(%q: memref<3x8x168x64xbf16>, %k: memref<3x2x200x64xbf16>, %v: memref<3x2x200x64xbf16>, %o: memref<3x8x168x64xbf16>, %l: memref<3x8x168xf32, strided<[1408, 176, 1]>>) {
    attn.forward %q, %k, %v outs(%o, %l : memref<3x8x168x64xbf16>, memref<3x8x168xf32, strided<[1408, 176, 1]>>) {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 1, warps = 4>}
        : memref<3x8x168x64xbf16>, memref<3x2x200x64xbf16>, memref<3x2x200x64xbf16>
    return
  }
}

// -----

// Ops that differ in batch, rows, heads, strides or the size of the scale
// share a kernel; those that differ in type, head dimension, mask, lse, sign of
// the scale, alignment or tiles have their own.
// CHECK-LABEL: attn.machine = #attn.machine<a100_80g>
// CHECK-COUNT-9: tile.kernel
// CHECK-NOT: tile.kernel
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-4: tile.launch @attn_kernels::@flash_mma_sync_f16_64 grid
// CHECK-NOT: tile.launch
// CHECK: return
// CHECK-LABEL: func.func @own
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_bf16_64 grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_32 grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_32 grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_causal grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_lse grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_1 grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_2 grid
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_3 grid
// CHECK-NOT: tile.launch
#s = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>
#fewer = #attn.schedule<flash, query = 64, key = 16, stages = 1, warps = 4>
module attributes {attn.machine = #attn.machine<a100_80g>} {
  func.func @shared(%a: memref<1x2x64x64xf16>, %b: memref<4x4x300x64xf16>, %c: memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>, %ao: memref<1x2x64x64xf16>, %bo: memref<4x4x300x64xf16>, %co: memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>) {
    attn.forward %a, %a, %a outs(%ao : memref<1x2x64x64xf16>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    attn.forward %b, %b, %b outs(%bo : memref<4x4x300x64xf16>) {schedule = #s}
        : memref<4x4x300x64xf16>, memref<4x4x300x64xf16>, memref<4x4x300x64xf16>
    attn.forward %c, %c, %c outs(%co : memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>) {schedule = #s}
        : memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>, memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>, memref<2x8x?x64xf16, strided<[81920, 64, 512, 1]>>
    attn.forward %a, %a, %a scale(3.0) outs(%ao : memref<1x2x64x64xf16>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    return
  }
  func.func @own(%a: memref<1x2x64x64xf16>, %ao: memref<1x2x64x64xf16>, %al: memref<1x2x64xf32>, %b: memref<1x2x64x64xbf16>, %bo: memref<1x2x64x64xbf16>,
      %c: memref<1x2x64x32xf16>, %co: memref<1x2x64x32xf16>, %d: memref<1x2x64x64xf16, strided<[8448, 4224, 66, 1]>>) {
    attn.forward %b, %b, %b outs(%bo : memref<1x2x64x64xbf16>) {schedule = #s}
        : memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>, memref<1x2x64x64xbf16>
    attn.forward %c, %c, %c outs(%co : memref<1x2x64x32xf16>) {schedule = #s}
        : memref<1x2x64x32xf16>, memref<1x2x64x32xf16>, memref<1x2x64x32xf16>
    attn.forward %a, %a, %c outs(%co : memref<1x2x64x32xf16>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x32xf16>
    attn.forward %a, %a, %a mask(causal) outs(%ao : memref<1x2x64x64xf16>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    attn.forward %a, %a, %a outs(%ao, %al : memref<1x2x64x64xf16>, memref<1x2x64xf32>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    attn.forward %a, %a, %a scale(-0.125) outs(%ao : memref<1x2x64x64xf16>) {schedule = #s}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    attn.forward %d, %a, %a outs(%ao : memref<1x2x64x64xf16>) {schedule = #s}
        : memref<1x2x64x64xf16, strided<[8448, 4224, 66, 1]>>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    attn.forward %a, %a, %a outs(%ao : memref<1x2x64x64xf16>) {schedule = #fewer}
        : memref<1x2x64x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>
    return
  }
}

// -----

// Rows and batch of run time come from the memrefs.  The window ends keys -
// queries + 0 and begins 128 before, both within the sentinels.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: %[[Q:[^:]*]]: memref<?x4x?x64xf16>, %[[K:[^:]*]]: memref<?x2x?x64xf16>
// CHECK-DAG: %[[TILE:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[HEADS:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[BEFORE:.*]] = arith.constant -128 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[GROUP:.*]] = arith.constant 2 : i32
// CHECK: %{{.*}}, %{{.*}}, %{{.*}}:4, %[[QSTRIDES:.*]]:4 = memref.extract_strided_metadata %[[Q]]
// CHECK: %[[QBATCH:.*]] = arith.index_cast %[[QSTRIDES]]#0 : index to i64
// CHECK: %[[QHEAD:.*]] = arith.index_cast %[[QSTRIDES]]#1 : index to i64
// CHECK: %[[BATCH:.*]] = memref.dim %[[Q]], %c0
// CHECK: %[[ROWS:.*]] = memref.dim %[[Q]], %c2
// CHECK: %[[KEYROWS:.*]] = memref.dim %[[K]], %c2
// CHECK: %[[QUERIES:.*]] = arith.index_cast %[[ROWS]] : index to i32
// CHECK: %[[KEYS:.*]] = arith.index_cast %[[KEYROWS]] : index to i32
// CHECK: %[[DIAGONAL:.*]] = arith.subi %[[KEYROWS]], %[[ROWS]] : index
// Sides that reach beyond the rows bound nothing.
// CHECK-DAG: %[[SHIFTED:.*]] = arith.addi %[[DIAGONAL]], %[[BEFORE]] : index
// CHECK-DAG: %[[LEAST:.*]] = arith.subi %[[ZERO]], %[[ROWS]] : index
// CHECK-DAG: %[[ABOVE:.*]] = arith.maxsi %[[SHIFTED]], %[[LEAST]] : index
// CHECK-DAG: %[[BELOW:.*]] = arith.minsi %[[DIAGONAL]], %[[KEYROWS]] : index
// CHECK-DAG: %[[FIRST:.*]] = arith.index_cast %[[ABOVE]] : index to i32
// CHECK-DAG: %[[LAST:.*]] = arith.index_cast %[[BELOW]] : index to i32
// Tiles of all heads are one dimension.
// CHECK: %[[TILES:.*]] = arith.ceildivsi %[[ROWS]], %[[TILE]]
// CHECK: %[[ALLHEADS:.*]] = arith.muli %[[BATCH]], %[[HEADS]]
// CHECK: %[[ALL:.*]] = arith.muli %[[TILES]], %[[ALLHEADS]]
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_window grid(%[[ALL]], %{{[^,]*}}, %{{[^,]*}})
// CHECK-SAME: args(%[[Q]], %{{[^,]*}}, %[[QBATCH]], %[[QHEAD]], %{{.*}}, %[[QUERIES]], %[[KEYS]], %{{[^,]*}}, %{{[^,]*}}, %[[GROUP]], %[[FIRST]], %[[LAST]], %{{[^,]*}})
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @dynamic(%q: memref<?x4x?x64xf16>, %k: memref<?x2x?x64xf16>, %o: memref<?x4x?x64xf16>) {
    attn.forward %q, %k, %k mask(window<128, 0>) outs(%o : memref<?x4x?x64xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<?x4x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>
    return
  }
}

// -----

// causal ends at the row itself; from the bottom right it ends at the
// difference, here 36.
// CHECK-LABEL: func.func @bands
// CHECK-DAG: %[[SELF:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[MORE:.*]] = arith.constant 36 : i32
// CHECK-DAG: %[[SCALE:.*]] = arith.constant 1.250000e-01 : f32
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_causal grid{{.*}}, %[[SELF]], %[[SCALE]])
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_64_causal_bottom_right grid{{.*}}, %[[MORE]], %[[SCALE]])
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @bands(%q: memref<1x1x64x64xf16>, %k: memref<1x1x100x64xf16>, %o: memref<1x1x64x64xf16>) {
    attn.forward %q, %k, %k mask(causal) outs(%o : memref<1x1x64x64xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x1x64x64xf16>, memref<1x1x100x64xf16>, memref<1x1x100x64xf16>
    attn.forward %q, %k, %k mask(causal_bottom_right) outs(%o : memref<1x1x64x64xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x1x64x64xf16>, memref<1x1x100x64xf16>, memref<1x1x100x64xf16>
    return
  }
}

// -----

// Rows before heads in memory (a packed projection of Q, K and V): the strides
// and the offset of the third part are passed as they are.  Rows of 80 columns
// that begin at multiples of 8 bytes are copied by 8 bytes.
// CHECK: tile.view %{{.*}} -> <?x80xf16, align = 8>
// CHECK-LABEL: func.func @packed(
// CHECK-SAME: %[[Q:[^:]*]]: memref<2x3x100x80xf16, strided<[72000, 80, 720, 1], offset: 484>>
// CHECK-DAG: %[[OFFSET:.*]] = arith.constant 484 : i64
// CHECK-DAG: %[[BATCH:.*]] = arith.constant 72000 : i64
// CHECK-DAG: %[[HEAD:.*]] = arith.constant 80 : i64
// CHECK-DAG: %[[ROW:.*]] = arith.constant 720 : i64
// CHECK: args(%[[Q]], %[[OFFSET]], %[[BATCH]], %[[HEAD]], %[[ROW]], %[[Q]], %[[OFFSET]], %[[BATCH]], %[[HEAD]], %[[ROW]],
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @packed(%q: memref<2x3x100x80xf16, strided<[72000, 80, 720, 1], offset: 484>>, %o: memref<2x3x100x80xf16>) {
    attn.forward %q, %q, %q outs(%o : memref<2x3x100x80xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<2x3x100x80xf16, strided<[72000, 80, 720, 1], offset: 484>>, memref<2x3x100x80xf16, strided<[72000, 80, 720, 1], offset: 484>>, memref<2x3x100x80xf16, strided<[72000, 80, 720, 1], offset: 484>>
    return
  }
}

// -----

// Of strides known only at run time nothing but the element is promised; a
// contiguous row of 36 elements promises 8 bytes even when rows are dynamic.
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 2>
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 8>
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 8>
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 8>
// CHECK-LABEL: func.func @alignment
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @alignment(%q: memref<1x2x64x36xf16, strided<[?, ?, ?, 1]>>, %k: memref<1x2x?x36xf16>, %o: memref<1x2x64x36xf16>) {
    attn.forward %q, %k, %k outs(%o : memref<1x2x64x36xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x2x64x36xf16, strided<[?, ?, ?, 1]>>, memref<1x2x?x36xf16>, memref<1x2x?x36xf16>
    return
  }
}

// -----

// A promise speaks for dynamic strides and for the base; what the type tells
// stays true: rows of 36 elements are 8 bytes apart at best.
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 16>
// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 8>
// CHECK-LABEL: func.func @promise(
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @promise(%q: memref<1x2x64x36xf16, strided<[?, ?, ?, 1]>>, %k: memref<1x2x?x36xf16>, %o: memref<1x2x64x36xf16>) {
    attn.forward %q, %k, %k outs(%o : memref<1x2x64x36xf16>) {alignment = 16 : i64, schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x2x64x36xf16, strided<[?, ?, ?, 1]>>, memref<1x2x?x36xf16>, memref<1x2x?x36xf16>
    return
  }
}

// -----

// CHECK: tile.view %{{.*}} -> <?x36xf16, align = 4>
// CHECK-LABEL: func.func @promise_less(
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @promise_less(%q: memref<1x2x64x36xf16>, %k: memref<1x2x?x36xf16>, %o: memref<1x2x64x36xf16>) {
    attn.forward %q, %k, %k outs(%o : memref<1x2x64x36xf16>) {alignment = 4 : i64, schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x2x64x36xf16>, memref<1x2x?x36xf16>, memref<1x2x?x36xf16>
    return
  }
}

// -----

// A module without ops needs no machine and stays as it is.
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: return
// CHECK-NEXT: }
// CHECK-NEXT: }
func.func @nothing() {
  return
}

// -----

// A kernel module that is there is added to, and its names are left alone.
// CHECK: tile.kernel @flash_mma_sync_f16_16()
// CHECK: tile.kernel @flash_mma_sync_f16_16_1(
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_f16_16_1 grid
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  gpu.module @attn_kernels {
    tile.kernel @flash_mma_sync_f16_16() attributes {warps = 1 : i32} {
      tile.return
    }
  }
  func.func @second(%q: memref<1x1x16x16xf16>, %o: memref<1x1x16x16xf16>) {
    attn.forward %q, %q, %q outs(%o : memref<1x1x16x16xf16>) {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
        : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>
    return
  }
}
