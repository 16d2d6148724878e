// The launches of score_spill on wgmma, in rounds of heads and strips of queries.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// P waits in blocks of keys; boxes are what one stores or loads.
// CHECK-LABEL: tile.kernel @score_spill_wgmma_bf16_512_320_causal_bottom_right_scores_lse(
// CHECK-SAME: !tile.tensor_map<64x256xbf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: !tile.ptr<f32> {tile.role = "scratch_rows"}
// CHECK-SAME: i32 {tile.role = "first_head"}
// CHECK-SAME: i32 {tile.role = "round_heads"}
// CHECK-SAME: i32 {tile.role = "first_query"}
// CHECK-SAME: launch = 0 : i64

// CHECK-LABEL: tile.kernel @score_spill_wgmma_bf16_512_320_causal_bottom_right_outputs_lse(
// CHECK-SAME: !tile.tensor_map<128x256xbf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: launch = 1 : i64

// Four key heads, three at once; 1000 queries, 512 at once; 12 blocks of keys
// of each of four query heads.  Of 12 query heads 4 tiles of 2 runs of columns.
// CHECK-LABEL: func.func @rounds
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[STRIP:.*]] = arith.constant 512 : index
// CHECK-DAG: %[[QUERIES:.*]] = arith.constant 1000 : index
// CHECK: %[[P:.*]] = tile.scratch : memref<3x48x512x256xbf16>
// CHECK-NEXT: %[[ROWS:.*]] = tile.scratch : memref<3x48x512x2xf32>
// CHECK-COUNT-2: tile.counter
// CHECK: scf.for %[[HEAD:.*]] = %[[ZERO]] to %[[FOUR]] step %[[THREE]] {
// CHECK-DAG: %[[FIRST:.*]] = arith.index_cast %[[HEAD]] : index to i32
// CHECK-DAG: %[[LEFT:.*]] = arith.subi %[[FOUR]], %[[HEAD]]
// CHECK-DAG: %[[HEADS:.*]] = arith.minsi %[[LEFT]], %[[THREE]]
// CHECK-DAG: %[[COUNT:.*]] = arith.index_cast %[[HEADS]] : index to i32
// CHECK: scf.for %[[QUERY:.*]] = %[[ZERO]] to %[[QUERIES]] step %[[STRIP]] {
// CHECK-NEXT: %[[FIRSTQUERY:.*]] = arith.index_cast %[[QUERY]] : index to i32
// CHECK-NEXT: tile.launch @attn_kernels::@score_spill_wgmma_bf16_512_320_causal_bottom_right_scores_lse grid(%c132, %c1, %c1) args({{.*}}%[[P]], %[[ROWS]], %[[FIRST]], %[[COUNT]], %[[FIRSTQUERY]],
// CHECK-NEXT: tile.launch @attn_kernels::@score_spill_wgmma_bf16_512_320_causal_bottom_right_outputs_lse grid(%c96, %c1, %c1) args(%[[P]], {{.*}}%[[ROWS]], {{.*}}%[[FIRST]], %[[COUNT]], %[[FIRSTQUERY]],
// CHECK-NEXT: }
// CHECK-NEXT: }
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @rounds(%q: memref<2x8x1000x512xbf16>, %k: memref<2x2x3000x512xbf16>,
    %v: memref<2x2x3000x320xbf16>, %o: memref<2x8x1000x320xbf16>,
    %lse: memref<2x8x1000xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right)
      outs(%o, %lse : memref<2x8x1000x320xbf16>, memref<2x8x1000xf32>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 512, heads = 3, stages = 3, merged = 0, persistent = 1>}
      : memref<2x8x1000x512xbf16>, memref<2x2x3000x512xbf16>, memref<2x2x3000x320xbf16>
  return
}
}

// -----

// What is known only at run time: rows, keys and batch entries.
// CHECK-LABEL: func.func @dynamic
// CHECK: tile.scratch({{.*}}) : memref<?x?x?x256xf16>
// CHECK: tile.scratch({{.*}}) : memref<?x?x?x2xf32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_f16_320_scores
// CHECK-NEXT: tile.launch @attn_kernels::@score_spill_wgmma_f16_320_outputs
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @dynamic(%q: memref<?x2x?x320xf16>, %k: memref<?x2x?x320xf16>,
    %v: memref<?x2x?x320xf16>, %o: memref<?x2x?x320xf16>) {
  attn.forward %q, %k, %v outs(%o : memref<?x2x?x320xf16>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 512, heads = 3, stages = 3, merged = 0, persistent = 1>}
      : memref<?x2x?x320xf16>, memref<?x2x?x320xf16>, memref<?x2x?x320xf16>
  return
}
}

// -----

// Merged, outputs wait in the producer for flags that writers of scores count:
// one for each of 3 x 4 x 512 / 128 tiles of queries.
// CHECK-LABEL: tile.kernel @score_spill_wgmma_bf16_512_320_causal(
// CHECK-SAME: !tile.tensor_map<64x512xbf16> {tile.role = "q_map"}
// CHECK-SAME: !tile.tensor_map<64x256xbf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: !tile.ptr<i32> {tile.per_launch = 48 : i64, tile.role = "flags"}
// CHECK: tile.role "producer"
// CHECK: tile.await
// CHECK: tile.count
// CHECK: tile.fence_async
// CHECK-COUNT-2: tile.role "writer"
// CHECK: tile.tma_store_wait 0 complete
// CHECK: tile.count
// CHECK: tile.role "consumer"
// CHECK-LABEL: func.func @merged
// CHECK: tile.counter : memref<48xi32>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: tile.launch
// CHECK-NOT: tile.launch
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @merged(%q: memref<2x8x1000x512xbf16>, %k: memref<2x2x3000x512xbf16>,
    %v: memref<2x2x3000x320xbf16>, %o: memref<2x8x1000x320xbf16>) {
  attn.forward %q, %k, %v mask(causal) outs(%o : memref<2x8x1000x320xbf16>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 512, heads = 3, stages = 4, merged = 1, persistent = 1>}
      : memref<2x8x1000x512xbf16>, memref<2x2x3000x512xbf16>, memref<2x2x3000x320xbf16>
  return
}
}

// -----

// Heads that share keys and are not packed take more flags a round, so a kernel
// of their own.
// CHECK: !tile.ptr<i32> {tile.per_launch = 4 : i64, tile.role = "flags"}
// CHECK: !tile.ptr<i32> {tile.per_launch = 16 : i64, tile.role = "flags"}
// CHECK-LABEL: func.func @sharing
// CHECK: tile.counter : memref<4xi32>
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_bf16_512 grid
// CHECK: tile.counter : memref<16xi32>
// CHECK: tile.launch @attn_kernels::@score_spill_wgmma_bf16_512_1 grid
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @sharing(%q: memref<1x4x300x512xbf16>, %k: memref<1x4x300x512xbf16>,
    %k_shared: memref<1x1x300x512xbf16>, %o: memref<1x4x300x512xbf16>,
    %gaps: memref<1x4x300x512xbf16, strided<[655360, 163840, 512, 1]>>) {
  attn.forward %q, %k, %k outs(%o : memref<1x4x300x512xbf16>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 512, heads = 1, stages = 4, merged = 1, persistent = 1>}
      : memref<1x4x300x512xbf16>, memref<1x4x300x512xbf16>, memref<1x4x300x512xbf16>
  attn.forward %q, %k_shared, %k_shared outs(%gaps : memref<1x4x300x512xbf16, strided<[655360, 163840, 512, 1]>>)
      {schedule = #attn.schedule<score_spill, query = 128, key_block = 256, column = 256, strip = 512, heads = 1, stages = 4, merged = 1, persistent = 1>}
      : memref<1x4x300x512xbf16>, memref<1x1x300x512xbf16>, memref<1x1x300x512xbf16>
  return
}
}
