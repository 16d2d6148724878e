// Every op and type of the dialect, as text and back.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: @types
// CHECK-SAME: !tile.ptr<bf16>, !tile.ptr<f16>, !tile.ptr<f32>,
// CHECK-SAME: !tile.view<?x128xbf16, align = 16>, !tile.view<?x7xf16, align = 2>, !tile.view<?x1xf32, align = 8>, !tile.view<?xf32, align = 4>,
// CHECK-SAME: !tile.smem<64x128xbf16>, !tile.smem<2x64x128xf16>, !tile.smem<16x16xbf16>, !tile.smem<2x64x80xf16, staggered>,
// CHECK-SAME: !tile.frag<16x8xf32, acc>, !tile.frag<32x16xbf16, lhs>, !tile.frag<16x64xf16, rhs>,
// CHECK-SAME: !tile.row<16xf32>, !tile.row<32xf32, partial>, !tile.row<4096xi32>
func.func private @types(
    !tile.ptr<bf16>, !tile.ptr<f16>, !tile.ptr<f32>,
    !tile.view<?x128xbf16, align = 16>, !tile.view<?x7xf16, align = 2>, !tile.view<?x1xf32, align = 8>, !tile.view<?xf32, align = 4>,
    !tile.smem<64x128xbf16>, !tile.smem<2x64x128xf16>, !tile.smem<16x16xbf16>, !tile.smem<2x64x80xf16, staggered>,
    !tile.frag<16x8xf32, acc>, !tile.frag<32x16xbf16, lhs>, !tile.frag<16x64xf16, rhs>,
    !tile.row<16xf32>, !tile.row<32xf32, partial>, !tile.row<4096xi32>)

// CHECK-LABEL: gpu.module @kernels
gpu.module @kernels {
  // The number of blocks is optional; other attributes stay.
  // CHECK: tile.kernel @empty() attributes {cluster = 1 : i32, min_blocks_per_sm = 1 : i32, warps = 1 : i32} {
  // CHECK-NEXT: tile.return
  tile.kernel @empty() attributes {warps = 1 : i32} {
    tile.return
  }

  // CHECK: tile.kernel @arguments(%{{.*}}: !tile.ptr<f16> {tile.role = "q"}, %{{.*}}: i32, %{{.*}}: i64, %{{.*}}: f32)
  // CHECK-SAME: attributes {cluster = 1 : i32, min_blocks_per_sm = 2 : i32, schedule = #attn.schedule<flash, query = 64>, warps = 32 : i32}
  tile.kernel @arguments(%p: !tile.ptr<f16> {tile.role = "q"}, %n: i32, %s: i64, %x: f32)
      attributes {warps = 32 : i32, min_blocks_per_sm = 2 : i32, schedule = #attn.schedule<flash, query = 64>} {
    tile.return
  }

  // CHECK-LABEL: tile.kernel @memory
  // CHECK-SAME: (%[[P:.*]]: !tile.ptr<bf16>, %[[L:.*]]: !tile.ptr<f32>, %[[ROWS:.*]]: i32, %[[STRIDE:.*]]: i64)
  tile.kernel @memory(%p: !tile.ptr<bf16>, %l: !tile.ptr<f32>, %rows: i32, %stride: i64) attributes {warps = 4 : i32} {
    // CHECK: %[[X:.*]] = tile.program_id 0
    // CHECK: tile.program_id 1
    // CHECK: tile.program_id 2
    // CHECK: %[[WARP:.*]] = tile.warp_id
    %x = tile.program_id 0
    %y = tile.program_id 1
    %z = tile.program_id 2
    %warp = tile.warp_id
    // CHECK: %[[VIEW:.*]] = tile.view %[[P]][%[[STRIDE]]] rows(%[[ROWS]]) stride(%[[STRIDE]]) : <bf16> -> <?x64xbf16, align = 16>
    // CHECK: %[[VECTOR:.*]] = tile.view %[[L]][%[[STRIDE]]] rows(%[[ROWS]]) stride(%[[STRIDE]]) : <f32> -> <?xf32, align = 4>
    %view = tile.view %p[%stride] rows(%rows) stride(%stride) : <bf16> -> <?x64xbf16, align = 16>
    %vector = tile.view %l[%stride] rows(%rows) stride(%stride) : <f32> -> <?xf32, align = 4>
    // CHECK: %[[RING:.*]] = tile.alloc "ring" : <2x64x64xbf16>
    // CHECK: %[[STAGING:.*]] = tile.alias %[[RING]] : <2x64x64xbf16> -> <64x32xbf16>
    %ring = tile.alloc "ring" : <2x64x64xbf16>
    %staging = tile.alias %ring : <2x64x64xbf16> -> <64x32xbf16>
    // CHECK: tile.copy_async %[[VIEW]][%[[X]]] to %[[RING]][%[[WARP]]] : <?x64xbf16, align = 16> to <2x64x64xbf16>
    // CHECK-NEXT: tile.commit_group
    // CHECK-NEXT: tile.wait_group 3
    // CHECK-NEXT: tile.barrier
    tile.copy_async %view[%x] to %ring[%warp] : <?x64xbf16, align = 16> to <2x64x64xbf16>
    tile.commit_group
    tile.wait_group 3
    tile.barrier
    // CHECK: tile.copy_async %{{.*}}[%[[X]]] to %[[RING]][%{{.*}}] rolled : <?x64xbf16, align = 16> to <2x64x64xbf16>
    tile.copy_async %view[%x] to %ring[%warp] rolled : <?x64xbf16, align = 16> to <2x64x64xbf16>
    // CHECK: %[[LINE:.*]] = tile.alloc "line" : <2x1x64xf32>
    // CHECK: tile.copy_async %[[VECTOR]][%[[X]]] to %[[LINE]][%{{.*}}] : <?xf32, align = 4> to <2x1x64xf32>
    // CHECK: tile.get_columns %[[LINE]][%{{.*}}, %{{.*}}, %{{.*}}] : <2x1x64xf32> -> <16x64xf32, acc>
    %line = tile.alloc "line" : <2x1x64xf32>
    tile.copy_async %vector[%x] to %line[%warp] : <?xf32, align = 4> to <2x1x64xf32>
    %columns = tile.get_columns %line[%warp, %y, %z] : <2x1x64xf32> -> <16x64xf32, acc>
    // CHECK: tile.load_row %[[VECTOR]][%[[X]]] : <?xf32, align = 4> -> <16xf32>
    // CHECK: tile.row_dot %[[VIEW]], %[[VIEW]][%[[X]]] : <?x64xbf16, align = 16>, <?x64xbf16, align = 16> -> <16xf32>
    %loaded = tile.load_row %vector[%x] : <?xf32, align = 4> -> <16xf32>
    %dot = tile.row_dot %view, %view[%x] : <?x64xbf16, align = 16>, <?x64xbf16, align = 16> -> <16xf32>
    // CHECK: tile.load_matrix %[[RING]][%{{.*}}, %[[X]], %{{.*}}] : <2x64x64xbf16> -> <32x16xbf16, lhs>
    // CHECK: tile.load_matrix %[[RING]][%{{.*}}, %{{.*}}, %{{.*}}] : <2x64x64xbf16> -> <16x64xbf16, rhs>
    // CHECK: tile.load_matrix %[[RING]][%{{.*}}, %{{.*}}, %{{.*}}] transpose : <2x64x64xbf16> -> <16x64xbf16, rhs>
    %lhs = tile.load_matrix %ring[%warp, %x, %y] : <2x64x64xbf16> -> <32x16xbf16, lhs>
    %rhs = tile.load_matrix %ring[%warp, %y, %z] : <2x64x64xbf16> -> <16x64xbf16, rhs>
    %turned = tile.load_matrix %ring[%warp, %y, %z] transpose : <2x64x64xbf16> -> <16x64xbf16, rhs>
    // CHECK: %[[ZERO:.*]] = tile.fill %{{.*}} : f32 -> !tile.frag<32x32xf32, acc>
    // CHECK: tile.store_matrix %[[ZERO]] to %[[STAGING]][%[[WARP]]] : <32x32xf32, acc> to <64x32xbf16>
    %c0 = arith.constant 0.0 : f32
    %zero = tile.fill %c0 : f32 -> !tile.frag<32x32xf32, acc>
    tile.store_matrix %zero to %staging[%warp] : <32x32xf32, acc> to <64x32xbf16>
    // CHECK: tile.store_matrix %[[ZERO]] to %[[STAGING]][%[[WARP]], %[[X]]] : <32x32xf32, acc> to <64x32xbf16>
    tile.store_matrix %zero to %staging[%warp, %x] : <32x32xf32, acc> to <64x32xbf16>
    // CHECK: %[[STATISTIC:.*]] = tile.alloc "statistic" : <3x32xf32>
    // CHECK: %[[GOT:.*]] = tile.get_row %[[STATISTIC]][%[[X]], %[[WARP]]] : <3x32xf32> -> <32xf32>
    // CHECK: tile.put_row %[[GOT]] to %[[STATISTIC]][%[[WARP]], %[[X]]] : <32xf32> to <3x32xf32>
    %statistic = tile.alloc "statistic" : <3x32xf32>
    %got = tile.get_row %statistic[%x, %warp] : <3x32xf32> -> <32xf32>
    tile.put_row %got to %statistic[%warp, %x] : <32xf32> to <3x32xf32>
    // CHECK: tile.copy_out %[[RING]][%[[WARP]]] to %[[VIEW]][%[[X]]] count 16 : <2x64x64xbf16> to <?x64xbf16, align = 16>
    tile.copy_out %ring[%warp] to %view[%x] count 16 : <2x64x64xbf16> to <?x64xbf16, align = 16>
    // CHECK: %[[ROW:.*]] = tile.fill %{{.*}} : f32 -> !tile.row<32xf32>
    // CHECK: tile.store_row %[[ROW]] to %[[VECTOR]][%[[X]]] : <32xf32> to <?xf32, align = 4>
    %row = tile.fill %c0 : f32 -> !tile.row<32xf32>
    tile.store_row %row to %vector[%x] : <32xf32> to <?xf32, align = 4>
    tile.return
  }

  // CHECK-LABEL: tile.kernel @arithmetic
  tile.kernel @arithmetic(%n: i32, %x: f32) attributes {warps = 1 : i32} {
    %c0 = arith.constant 0 : i32
    %b = tile.alloc "b" : <32x32xf16>
    %lhs = tile.load_matrix %b[%c0, %c0, %c0] : <32x32xf16> -> <16x16xf16, lhs>
    %rhs = tile.load_matrix %b[%c0, %c0, %c0] : <32x32xf16> -> <16x32xf16, rhs>
    // CHECK: %[[ACC:.*]] = tile.fill %{{.*}} : f32 -> !tile.frag<16x32xf32, acc>
    // CHECK: %[[LIMIT:.*]] = tile.fill %{{.*}} : i32 -> !tile.row<16xi32>
    // CHECK: %[[PART:.*]] = tile.fill %{{.*}} : f32 -> !tile.row<16xf32, partial>
    %acc = tile.fill %x : f32 -> !tile.frag<16x32xf32, acc>
    %limit = tile.fill %n : i32 -> !tile.row<16xi32>
    %part = tile.fill %x : f32 -> !tile.row<16xf32, partial>
    // CHECK: %[[S:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[ACC]] : <16x16xf16, lhs>, <16x32xf16, rhs>, <16x32xf32, acc>
    %s = tile.mma %lhs, %rhs, %acc : <16x16xf16, lhs>, <16x32xf16, rhs>, <16x32xf32, acc>
    // CHECK: %[[CAST:.*]] = tile.cast %[[S]] : <16x32xf32, acc> -> <16x32xbf16, lhs>
    // CHECK: tile.cast %[[CAST]] : <16x32xbf16, lhs> -> <16x32xf32, acc>
    // CHECK: tile.extract %[[CAST]][16] : <16x32xbf16, lhs> -> <16x16xbf16, lhs>
    // CHECK: tile.extract %[[S]][24] : <16x32xf32, acc> -> <16x8xf32, acc>
    // CHECK: tile.concat %[[S]], %[[S]] : <16x32xf32, acc>, <16x32xf32, acc> -> <16x64xf32, acc>
    %cast = tile.cast %s : <16x32xf32, acc> -> <16x32xbf16, lhs>
    %back = tile.cast %cast : <16x32xbf16, lhs> -> <16x32xf32, acc>
    %e = tile.extract %cast[16] : <16x32xbf16, lhs> -> <16x16xbf16, lhs>
    %f = tile.extract %s[24] : <16x32xf32, acc> -> <16x8xf32, acc>
    %g = tile.concat %s, %s : <16x32xf32, acc>, <16x32xf32, acc> -> <16x64xf32, acc>
    // CHECK: %[[MAX:.*]] = tile.row_reduce max %[[S]] : <16x32xf32, acc> -> <16xf32>
    // CHECK: tile.row_reduce max %[[S]] init(%[[MAX]] : !tile.row<16xf32>) : <16x32xf32, acc> -> <16xf32>
    // CHECK: %[[SUM:.*]] = tile.row_reduce add %[[S]] init(%[[PART]] : !tile.row<16xf32, partial>) : <16x32xf32, acc> -> <16xf32, partial>
    // CHECK: tile.row_combine %[[SUM]] : <16xf32, partial> -> <16xf32>
    %max = tile.row_reduce max %s : <16x32xf32, acc> -> <16xf32>
    %max2 = tile.row_reduce max %s init(%max : !tile.row<16xf32>) : <16x32xf32, acc> -> <16xf32>
    %sum = tile.row_reduce add %s init(%part : !tile.row<16xf32, partial>) : <16x32xf32, acc> -> <16xf32, partial>
    %whole = tile.row_combine %sum : <16xf32, partial> -> <16xf32>
    // CHECK: %[[KEPT:.*]] = tile.keep_columns %[[S]] to %[[LIMIT]] : <16x32xf32, acc>, <16xi32>
    // CHECK: tile.keep_columns %[[KEPT]] from %[[LIMIT]] : !tile.row<16xi32> to %[[LIMIT]] : <16x32xf32, acc>, <16xi32>
    %kept = tile.keep_columns %s to %limit : <16x32xf32, acc>, <16xi32>
    %run = tile.keep_columns %kept from %limit : !tile.row<16xi32> to %limit : <16x32xf32, acc>, <16xi32>
    // A fragment of a fragment and rows.
    // CHECK: tile.map %[[S]], %[[LIMIT]] : !tile.frag<16x32xf32, acc>, !tile.row<16xi32> -> !tile.frag<16x32xf32, acc> {
    // CHECK-NEXT: ^bb0(%{{.*}}: i32, %[[COLUMN:.*]]: i32, %[[VALUE:.*]]: f32, %[[LAST:.*]]: i32):
    // CHECK-NEXT: %[[SEEN:.*]] = arith.cmpi sle, %[[COLUMN]], %[[LAST]] : i32
    // CHECK-NEXT: %[[CHOICE:.*]] = arith.select %[[SEEN]], %[[VALUE]],
    // CHECK-NEXT: tile.yield %[[CHOICE]] : f32
    %masked = tile.map %s, %limit : !tile.frag<16x32xf32, acc>, !tile.row<16xi32> -> !tile.frag<16x32xf32, acc> {
    ^bb0(%row: i32, %column: i32, %v: f32, %last: i32):
      %seen = arith.cmpi sle, %column, %last : i32
      %choice = arith.select %seen, %v, %x : f32
      tile.yield %choice : f32
    }
    // A row of nothing but its index; attributes stay.
    // CHECK: tile.map -> !tile.row<16xi32> attributes {why = "rows"} {
    // CHECK-NEXT: ^bb0(%[[INDEX:.*]]: i32):
    // CHECK-NEXT: tile.yield %[[INDEX]] : i32
    %index = tile.map -> !tile.row<16xi32> attributes {why = "rows"} {
    ^bb0(%row: i32):
      tile.yield %row : i32
    }
    // Partial times whole, and partial plus partial, are partial.
    // CHECK: tile.map %[[PART]], %[[MAX]], %[[SUM]] : !tile.row<16xf32, partial>, !tile.row<16xf32>, !tile.row<16xf32, partial> -> !tile.row<16xf32, partial>
    %linear = tile.map %part, %max, %sum : !tile.row<16xf32, partial>, !tile.row<16xf32>, !tile.row<16xf32, partial> -> !tile.row<16xf32, partial> {
    ^bb0(%row: i32, %p: f32, %m: f32, %q: f32):
      %product = arith.mulf %p, %m : f32
      %total = arith.addf %product, %q : f32
      tile.yield %total : f32
    }
    tile.return
  }
}

gpu.module @draws {
  // CHECK-LABEL: tile.kernel @draws
  // CHECK-SAME: (%[[COUNTER:.*]]: !tile.ptr<i32>, %[[N:.*]]: i32)
  tile.kernel @draws(%counter: !tile.ptr<i32>, %n: i32) attributes {warps = 4 : i32} {
    // CHECK: %[[BUFFER:.*]] = tile.alloc "tile"
    // CHECK: tile.put_draw %[[COUNTER]] below %[[N]] to %[[BUFFER]] : <i32> to <16x16xbf16>
    // CHECK: tile.get_draw %[[BUFFER]] : <16x16xbf16>
    %buffer = tile.alloc "tile" : <16x16xbf16>
    tile.put_draw %counter below %n to %buffer : <i32> to <16x16xbf16>
    tile.barrier
    %number = tile.get_draw %buffer : <16x16xbf16>
    tile.return
  }
}

gpu.module @ranks {
  // CHECK-LABEL: tile.kernel @ranks
  // CHECK-SAME: (%[[OFFSETS:.*]]: !tile.ptr<i64>, %[[USED:.*]]: !tile.ptr<i32>, %[[AT:.*]]: i64, %[[N:.*]]: i32)
  tile.kernel @ranks(%offsets: !tile.ptr<i64>, %used: !tile.ptr<i32>, %at: i64, %n: i32) attributes {warps = 4 : i32} {
    // CHECK: %[[TABLE:.*]] = tile.alloc "ranks"
    // CHECK: tile.rank %[[OFFSETS]][%[[AT]], %[[AT]]] by %[[USED]][%[[AT]], %[[AT]]] count %[[N]] rows 64 to %[[TABLE]] : <i64>, <i32> to <8x32xf32, sw128>
    // CHECK: tile.rank %[[OFFSETS]][%[[AT]], %[[AT]]] by %[[OFFSETS]][%[[AT]], %[[AT]]] differences descending count %[[N]] rows 64 to %[[TABLE]] : <i64>, <i64> to <8x32xf32, sw128>
    // CHECK: tile.get_number %[[TABLE]][%[[N]]] : <8x32xf32, sw128>
    %table = tile.alloc "ranks" : <8x32xf32, sw128>
    tile.rank %offsets[%at, %at] by %used[%at, %at] count %n rows 64 to %table : <i64>, <i32> to <8x32xf32, sw128>
    tile.rank %offsets[%at, %at] by %offsets[%at, %at] differences descending count %n rows 64 to %table : <i64>, <i64> to <8x32xf32, sw128>
    tile.barrier
    %first = tile.get_number %table[%n] : <8x32xf32, sw128>
    tile.return
  }
}

// CHECK-LABEL: func.func @host
// CHECK: tile.launch @kernels::@arguments grid(%[[N:.*]], %[[N]], %[[N]]) args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {why = "host"} : memref<4x?xf16, strided<[?, 1], offset: ?>>, i32, i64, f32
func.func @host(%n: index, %q: memref<4x?xf16, strided<[?, 1], offset: ?>>, %i: i32, %l: i64, %x: f32) {
  tile.launch @kernels::@arguments grid(%n, %n, %n) args(%q, %i, %l, %x) {why = "host"} : memref<4x?xf16, strided<[?, 1], offset: ?>>, i32, i64, f32
  return
}

gpu.module @bare {
  tile.kernel @nothing() attributes {warps = 1 : i32} {
    tile.return
  }
}

// CHECK-LABEL: func.func @no_arguments
// CHECK: tile.launch @bare::@nothing grid(%[[N:.*]], %[[N]], %[[N]]) args(){{$}}
func.func @no_arguments(%n: index) {
  tile.launch @bare::@nothing grid(%n, %n, %n) args()
  return
}

// CHECK-LABEL: tile.kernel @numbers
tile.kernel @numbers(%p: !tile.ptr<i32>, %i: i32, %l: i64) attributes {warps = 1 : i32} {
  // CHECK: %[[N:.*]] = tile.load_number %[[P:.*]][%{{.*}}] : <i32>, i32
  %n = tile.load_number %p[%i] : <i32>, i32
  // CHECK: tile.load_number %[[P]][%{{.*}}] : <i32>, i64
  %m = tile.load_number %p[%l] : <i32>, i64
  tile.return
}
