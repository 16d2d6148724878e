// The launches of spill_backward: statistics once, the others in rounds.
// RUN: attn-opt %s -split-input-file -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal_prepare(
// CHECK-SAME: {tile.per_strip = 128 : i64, tile.role = "scratch_statistics"}
// CHECK-SAME: launch = 0 : i64

// Maps of scores have the columns of a strip; boxes are what one stores or loads.
// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal_scores(
// CHECK-SAME: !tile.tensor_map<64x4096xbf16> {tile.role = "scratch_p_map"}
// CHECK-SAME: !tile.tensor_map<64x4096xbf16> {tile.role = "scratch_ds_map"}
// CHECK-SAME: i32 {tile.role = "first_head"}
// CHECK-SAME: i32 {tile.role = "round_heads"}
// CHECK-SAME: i32 {tile.role = "first_key"}
// CHECK-SAME: launch = 1 : i64

// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal_dk_dv(
// CHECK-SAME: launch = 2 : i64

// CHECK-LABEL: tile.kernel @spill_backward_wgmma_bf16_512_320_causal_dq(
// CHECK-SAME: {tile.per_strip = 32768 : i64, tile.role = "scratch_dq"}
// CHECK-SAME: launch = 3 : i64

// Four key heads, three at once; 5000 keys, 4096 at once.  Of 12 query heads
// 8 tiles each, of 3 key heads 32 tiles of 2 + 2 runs of columns, and of dQ 2.
// CHECK-LABEL: func.func @rounds
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[STRIP:.*]] = arith.constant 4096 : index
// CHECK-DAG: %[[KEYS:.*]] = arith.constant 5000 : index
// CHECK: %[[STATISTICS:.*]] = tile.scratch : memref<2x8x16x128xf32>
// CHECK: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal_prepare grid(%c256, %c1, %c1) args({{.*}}%[[STATISTICS]]
// CHECK-NEXT: %[[P:.*]] = tile.scratch : memref<3x4x1024x4096xbf16>
// CHECK-NEXT: %[[DS:.*]] = tile.scratch : memref<3x4x1024x4096xbf16>
// CHECK-COUNT-2: tile.counter
// CHECK-NEXT: %[[SUMS:.*]] = tile.scratch : memref<2x8x16x32768xf32>
// CHECK-NEXT: tile.counter
// CHECK: scf.for %[[HEAD:.*]] = %[[ZERO]] to %[[FOUR]] step %[[THREE]] {
// CHECK-DAG: %[[FIRST:.*]] = arith.index_cast %[[HEAD]] : index to i32
// CHECK-DAG: %[[LEFT:.*]] = arith.subi %[[FOUR]], %[[HEAD]]
// CHECK-DAG: %[[HEADS:.*]] = arith.minsi %[[LEFT]], %[[THREE]]
// CHECK-DAG: %[[COUNT:.*]] = arith.index_cast %[[HEADS]] : index to i32
// CHECK: scf.for %[[KEY:.*]] = %[[ZERO]] to %[[KEYS]] step %[[STRIP]] {
// CHECK-NEXT: %[[FIRSTKEY:.*]] = arith.index_cast %[[KEY]] : index to i32
// CHECK-NEXT: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal_scores grid(%c132, %c1, %c1) args({{.*}}%[[P]], %[[DS]], {{.*}}%[[FIRST]], %[[COUNT]], %[[FIRSTKEY]],
// CHECK-NEXT: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal_dk_dv grid(%c132, %c1, %c1) args(%[[P]], %[[DS]], {{.*}}%[[FIRST]], %[[COUNT]], %[[FIRSTKEY]],
// CHECK-NEXT: tile.launch @attn_kernels::@spill_backward_wgmma_bf16_512_320_causal_dq grid(%c132, %c1, %c1) args(%[[DS]], {{.*}}%[[SUMS]], {{.*}}%[[FIRST]], %[[COUNT]], %[[FIRSTKEY]],
// CHECK-NEXT: }
// CHECK-NEXT: }
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @rounds(%do: memref<2x8x1000x320xbf16>, %q: memref<2x8x1000x512xbf16>,
    %k: memref<2x2x5000x512xbf16>, %v: memref<2x2x5000x320xbf16>,
    %o: memref<2x8x1000x320xbf16>, %lse: memref<2x8x1000xf32>,
    %dq: memref<2x8x1000x512xbf16>, %dk: memref<2x2x5000x512xbf16>,
    %dv: memref<2x2x5000x320xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x8x1000x512xbf16>, memref<2x2x5000x512xbf16>, memref<2x2x5000x320xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 256, query_block = 64, strip = 4096, heads = 3, stages = 3, merged = 0, persistent = 1>}
      : memref<2x8x1000x320xbf16>, memref<2x8x1000x512xbf16>, memref<2x2x5000x512xbf16>,
        memref<2x2x5000x320xbf16>, memref<2x8x1000x320xbf16>, memref<2x8x1000xf32>
  return
}

// One round is no loop, its arrays are no larger than the problem, and no sums
// wait.
// CHECK-LABEL: func.func @one_round
// CHECK-DAG: tile.scratch : memref<2x4x128x512xbf16>
// CHECK-DAG: tile.scratch : memref<1x8x0x32768xf32>
// CHECK-NOT: scf.for
// CHECK-COUNT-3: tile.launch {{.*}}%c0_i32, %c2_i32, %c0_i32,
func.func @one_round(%do: memref<1x8x100x320xbf16>, %q: memref<1x8x100x512xbf16>,
    %k: memref<1x2x300x512xbf16>, %v: memref<1x2x300x320xbf16>,
    %o: memref<1x8x100x320xbf16>, %lse: memref<1x8x100xf32>,
    %dq: memref<1x8x100x512xbf16>, %dk: memref<1x2x300x512xbf16>,
    %dv: memref<1x2x300x320xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<1x8x100x512xbf16>, memref<1x2x300x512xbf16>, memref<1x2x300x320xbf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 256, query_block = 64, strip = 4096, heads = 3, stages = 3, merged = 0, persistent = 1>}
      : memref<1x8x100x320xbf16>, memref<1x8x100x512xbf16>, memref<1x2x300x512xbf16>,
        memref<1x2x300x320xbf16>, memref<1x8x100x320xbf16>, memref<1x8x100xf32>
  return
}
}

// -----

// Without keys there is a round of them all the same, for dQ.
// CHECK-LABEL: func.func @any_sizes
// CHECK-DAG: %[[BATCH:.*]] = memref.dim %arg1, %c0
// CHECK-DAG: %[[QUERIES:.*]] = memref.dim %arg1, %c2
// CHECK-DAG: %[[KEYS:.*]] = memref.dim %arg2, %c2
// CHECK-DAG: %[[SOME:.*]] = arith.maxsi %[[KEYS]], %c1
// CHECK-DAG: %[[ALL:.*]] = arith.muli %[[BATCH]], %c2
// CHECK-DAG: %[[ATONCE:.*]] = arith.minsi %[[ALL]], %c4
// CHECK-DAG: %[[TILES:.*]] = arith.ceildivsi %[[QUERIES]], %c128
// CHECK-DAG: %[[ROWS:.*]] = arith.muli %[[TILES]], %c128
// CHECK-DAG: %[[BLOCKS:.*]] = arith.ceildivsi %[[KEYS]], %c256
// CHECK-DAG: %[[WHOLE:.*]] = arith.muli %[[BLOCKS]], %c256
// CHECK-DAG: %[[COLUMNS:.*]] = arith.minsi %[[WHOLE]], %c2048
// CHECK-COUNT-2: tile.scratch(%[[ATONCE]], %[[ROWS]], %[[COLUMNS]]) : memref<?x3x?x?xf16>
// CHECK: %[[STRIPS:.*]] = arith.muli %[[TILES]], %c2
// CHECK: %[[SEVERAL:.*]] = arith.cmpi sgt, %[[KEYS]], %c2048
// CHECK: %[[WAITING:.*]] = arith.select %[[SEVERAL]], %[[STRIPS]], %c0
// CHECK: tile.scratch(%[[BATCH]], %[[WAITING]]) : memref<?x6x?x24576xf32>
// CHECK: scf.for %[[HEAD:.*]] = %c0 to %[[ALL]] step %c4 {
// CHECK: scf.for %{{.*}} = %c0 to %[[SOME]] step %c2048 {
// CHECK-COUNT-3: tile.launch
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @any_sizes(%do: memref<?x6x?x384xf16>, %q: memref<?x6x?x384xf16>,
    %k: memref<?x2x?x384xf16>, %v: memref<?x2x?x384xf16>,
    %o: memref<?x6x?x384xf16>, %lse: memref<?x6x?xf32, strided<[?, ?, 1]>>,
    %dq: memref<?x6x?x384xf16>, %dk: memref<?x2x?x384xf16>, %dv: memref<?x2x?x384xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x6x?x384xf16>, memref<?x2x?x384xf16>, memref<?x2x?x384xf16>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 256, key = 128, column = 192, query_block = 64, strip = 2048, heads = 4, stages = 3, merged = 0, persistent = 1>}
      : memref<?x6x?x384xf16>, memref<?x6x?x384xf16>, memref<?x2x?x384xf16>,
        memref<?x2x?x384xf16>, memref<?x6x?x384xf16>, memref<?x6x?xf32, strided<[?, ?, 1]>>
  return
}
}

// -----

// On mma.sync P and dS are pointers, to f32 here; every tile of a full round has a
// block: 4 query heads of 2 tiles by 8 blocks of keys, 2 key heads of 4 tiles of
// 3 + 2 runs of columns, and of dQ 2.
// CHECK-LABEL: tile.kernel @spill_backward_mma_sync_f32_200_300_tf32x3_scores(
// CHECK-SAME: !tile.ptr<f32> {tile.role = "scratch_p"}
// CHECK-SAME: !tile.ptr<f32> {tile.role = "scratch_ds"}
// CHECK-NOT: counter
// CHECK-SAME: {tile.per_strip = 128 : i64, tile.role = "scratch_statistics"}
// CHECK-SAME: i32 {tile.role = "first_head"}
// CHECK-LABEL: tile.kernel @spill_backward_mma_sync_f32_200_300_tf32x3_dq(
// CHECK-SAME: !tile.ptr<f32> {tile.role = "scratch_ds"}
// CHECK-SAME: {tile.per_strip = 16384 : i64, tile.role = "scratch_dq"}
// CHECK-LABEL: func.func @pointers
// CHECK-DAG: %[[P:.*]] = tile.scratch : memref<2x2x256x512xf32>
// CHECK: tile.launch {{.*}}_scores grid(%c64, %c1, %c1)
// CHECK-NEXT: tile.launch {{.*}}_dk_dv grid(%c40, %c1, %c1)
// CHECK-NEXT: tile.launch {{.*}}_dq grid(%c16, %c1, %c1)
module attributes {attn.machine = #attn.machine<a100_80g>} {
func.func @pointers(%do: memref<1x4x150x300xf32>, %q: memref<1x4x150x200xf32>,
    %k: memref<1x2x450x200xf32>, %v: memref<1x2x450x300xf32>,
    %o: memref<1x4x150x300xf32>, %lse: memref<1x4x150xf32, strided<[640, 160, 1]>>,
    %dq: memref<1x4x150x200xf32>, %dk: memref<1x2x450x200xf32>,
    %dv: memref<1x2x450x300xf32>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<1x4x150x200xf32>, memref<1x2x450x200xf32>, memref<1x2x450x300xf32>)
      {schedule = #attn.schedule<spill_backward, query = 128, key_block = 128, key = 128, column = 128, query_block = 64, strip = 1024, heads = 2, slice = 16, warps = 8, stages = 3>}
      : memref<1x4x150x300xf32>, memref<1x4x150x200xf32>, memref<1x2x450x200xf32>,
        memref<1x2x450x300xf32>, memref<1x4x150x300xf32>, memref<1x4x150xf32, strided<[640, 160, 1]>>
  return
}
}
