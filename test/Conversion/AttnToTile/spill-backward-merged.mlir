// The launches of spill_backward, merged: LSE and flags once, and one in rounds,
// which makes D too.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// Who leaves them sets two flags of every 64 queries to 0.
// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal_prepare(
// CHECK-NOT: tile.role = "o"
// CHECK-NOT: tile.role = "do"
// CHECK-SAME: tile.role = "lse"
// CHECK-SAME: {tile.per_strip = 128 : i64, tile.role = "scratch_statistics"}
// CHECK-SAME: %[[FLAGS:[^:]*]]: !tile.ptr<i32> {tile.per_strip = 2 : i64, tile.role = "scratch_flags"}
// CHECK-SAME: launch = 0 : i64
// CHECK-COUNT-2: tile.publish %[[FLAGS]][

// Boxes are those of sums, and of what leaves; V and O are no factors of a sum.
// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal(
// CHECK-SAME: !tile.tensor_map<64x512xbf16> {tile.role = "q_map"}
// CHECK-SAME: !tile.tensor_map<64x512xbf16> {tile.role = "k_map"}
// CHECK-SAME: !tile.tensor_map<64x320xbf16> {tile.role = "do_map"}
// CHECK-SAME: !tile.tensor_map<256x320xbf16> {tile.role = "v_map"}
// CHECK-SAME: !tile.tensor_map<64x4096xbf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: !tile.tensor_map<64x4096xbf16> {tile.role = "scratch_ds_map"}
// CHECK-SAME: !tile.tensor_map<128x320xbf16> {tile.role = "o_map"}
// CHECK-SAME: %[[FLAGS:[^:]*]]: !tile.ptr<i32> {tile.per_strip = 2 : i64, tile.role = "scratch_flags"}
// CHECK-SAME: {tile.per_strip = 32768 : i64, tile.role = "scratch_dq"}
// CHECK-SAME: launch = 1 : i64
// CHECK: tile.role "producer" warps 1 registers 56 single_lane
// CHECK: tile.await %[[FLAGS]][
// CHECK: tile.fence_async
// CHECK: tile.role "writer" warps 1 registers 56 single_lane
// CHECK: tile.tma_store_wait 0 complete
// CHECK: tile.count %[[FLAGS]][
// Who makes D tells, and scores wait for it.
// CHECK: tile.role "consumer" warps 8 registers 224
// CHECK: tile.count %[[FLAGS]][
// CHECK: tile.await %[[FLAGS]][

// CHECK-LABEL: func.func @rounds
// CHECK: %[[STATISTICS:.*]] = tile.scratch : memref<2x8x16x128xf32>
// CHECK: %[[FLAGS:.*]] = tile.scratch : memref<2x8x16x2xi32>
// CHECK: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal_prepare grid(%c256, %c1, %c1) args({{.*}}%[[STATISTICS]], %[[FLAGS]]
// CHECK-NEXT: %[[P:.*]] = tile.scratch : memref<3x4x1024x4096xbf16>
// CHECK-NEXT: %[[DS:.*]] = tile.scratch : memref<3x4x1024x4096xbf16>
// CHECK-NEXT: %[[SUMS:.*]] = tile.scratch : memref<2x8x16x32768xf32>
// CHECK-NEXT: tile.counter
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal grid(%c132, %c1, %c1) args({{.*}}%[[P]], %[[DS]], {{.*}}%[[STATISTICS]], %[[FLAGS]], %[[SUMS]],
// CHECK-NOT: tile.launch
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @rounds(%do: memref<2x8x1000x320xbf16>, %q: memref<2x8x1000x512xbf16>,
    %k: memref<2x2x5000x512xbf16>, %v: memref<2x2x5000x320xbf16>,
    %o: memref<2x8x1000x320xbf16>, %lse: memref<2x8x1000xf32>,
    %dq: memref<2x8x1000x512xbf16>, %dk: memref<2x2x5000x512xbf16>,
    %dv: memref<2x2x5000x320xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x8x1000x512xbf16>, memref<2x2x5000x512xbf16>, memref<2x2x5000x320xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 256, query_block = 64, strip = 4096, heads = 3, stages = 3, merged = 1, persistent = 1>}
      : memref<2x8x1000x320xbf16>, memref<2x8x1000x512xbf16>, memref<2x2x5000x512xbf16>,
        memref<2x2x5000x320xbf16>, memref<2x8x1000x320xbf16>, memref<2x8x1000xf32>
  return
}
}

// -----

// Blocks for as many tiles as there are of scores and of keys: without keys or
// without queries the others still have gradients of 0.
// CHECK-LABEL: func.func @any_sizes
// CHECK-DAG: %[[BATCH:.*]] = memref.dim %arg1, %c0
// CHECK-DAG: %[[QUERIES:.*]] = memref.dim %arg1, %c2
// CHECK-DAG: %[[KEYS:.*]] = memref.dim %arg2, %c2
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivsi %[[QUERIES]], %c128
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[BATCH]], %c2
// CHECK-DAG: %[[ATONCE:.*]] = arith.minsi %[[ALL]], %c4
// CHECK: %[[HEADS:.*]] = arith.muli %[[ATONCE]], %c3
// CHECK: %[[ROWS:.*]] = arith.muli %[[TILES]], %[[HEADS]]
// CHECK: %[[SCORES:.*]] = arith.muli %[[ROWS]], %c8
// CHECK: %[[STRIP:.*]] = arith.minsi %[[KEYS]], %c2048
// CHECK: %[[OFSTRIP:.*]] = arith.ceildivsi %[[STRIP]], %c128
// CHECK: %[[OFKEYS:.*]] = arith.muli %[[OFSTRIP]], %[[ATONCE]]
// CHECK: %[[SUMS:.*]] = arith.muli %[[OFKEYS]], %c4
// CHECK: %[[BOTH:.*]] = arith.addi %[[SCORES]], %[[SUMS]]
// CHECK: %[[GRID:.*]] = arith.minsi %[[BOTH]], %c132
// CHECK: tile.launch @attn_kernels::@spill_backward_wgmma_f16_384 grid(%[[GRID]], %c1, %c1)
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @any_sizes(%do: memref<?x6x?x384xf16>, %q: memref<?x6x?x384xf16>,
    %k: memref<?x2x?x384xf16>, %v: memref<?x2x?x384xf16>,
    %o: memref<?x6x?x384xf16>, %lse: memref<?x6x?xf32, strided<[?, ?, 1]>>,
    %dq: memref<?x6x?x384xf16>, %dk: memref<?x2x?x384xf16>, %dv: memref<?x2x?x384xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x6x?x384xf16>, memref<?x2x?x384xf16>, memref<?x2x?x384xf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 192, query_block = 64, strip = 2048, heads = 4, stages = 3, merged = 1, persistent = 1>}
      : memref<?x6x?x384xf16>, memref<?x6x?x384xf16>, memref<?x2x?x384xf16>,
        memref<?x2x?x384xf16>, memref<?x6x?x384xf16>, memref<?x6x?xf32, strided<[?, ?, 1]>>
  return
}
}
