// The launches of flash_backward: what is passed from one to the next, and their
// grids.
// RUN: attn-opt %s -convert-attn-to-tile -canonicalize -cse | FileCheck %s

// Statistics and sums have a place for every strip of 64 queries of a query head.
// CHECK-LABEL: tile.kernel @flash_backward_wgmma_bf16_72_40_causal_prepare(
// CHECK-SAME: {tile.per_strip = 128 : i64, tile.role = "scratch_statistics"}
// CHECK-SAME: {tile.per_strip = 8192 : i64, tile.role = "scratch_dq"}
// CHECK-SAME: launch = 0 : i64

// CHECK-LABEL: tile.kernel @flash_backward_wgmma_bf16_72_40_causal(
// CHECK-SAME: !tile.tensor_map<64x72xbf16> {tile.role = "q_map"}
// CHECK-SAME: !tile.tensor_map<128x72xbf16> {tile.role = "k_map"}
// CHECK-SAME: !tile.tensor_map<128x40xbf16> {tile.role = "v_map"}
// CHECK-SAME: !tile.tensor_map<64x40xbf16> {tile.role = "do_map"}
// CHECK-SAME: !tile.tensor_map<64x72xbf16> {tile.role = "dk_map"}
// CHECK-SAME: !tile.tensor_map<64x40xbf16> {tile.role = "dv_map"}
// CHECK-SAME: launch = 1 : i64

// CHECK-LABEL: tile.kernel @flash_backward_wgmma_bf16_72_40_causal_finish(
// CHECK-SAME: launch = 2 : i64

// CHECK-LABEL: tile.kernel @flash_backward_wgmma_f16_64_prepare_dlse(
// CHECK-SAME: tile.role = "dlse"
// CHECK-LABEL: tile.kernel @flash_backward_wgmma_f16_64_dlse(
// CHECK-NOT: tile.role = "dlse"

// 1000 queries are 16 strips; 500 keys are 4 tiles, of 2 heads of 2 batches.
// CHECK-LABEL: func.func @columns
// CHECK-DAG: %[[SUMS:.*]] = tile.scratch : memref<2x8x16x8192xf32>
// CHECK-DAG: %[[STATISTICS:.*]] = tile.scratch : memref<2x8x16x128xf32>
// CHECK: tile.launch @attn_kernels::@flash_backward_wgmma_bf16_72_40_causal_prepare grid(%c256, %c1, %c1) args({{.*}}%[[STATISTICS]], %[[SUMS]]
// CHECK: %[[COUNTER:.*]] = tile.counter
// CHECK: tile.launch @attn_kernels::@flash_backward_wgmma_bf16_72_40_causal grid(%c16, %c1, %c1) args(%arg1, %arg2, %arg3, %arg0, %arg7, %arg8, {{.*}}%[[STATISTICS]], %[[SUMS]], %[[COUNTER]]
// CHECK: tile.launch @attn_kernels::@flash_backward_wgmma_bf16_72_40_causal_finish grid(%c256, %c1, %c1) args(%arg6, {{.*}}%[[SUMS]]
module attributes {attn.machine = #attn.machine<h100_sxm>} {
func.func @columns(%do: memref<2x8x1000x40xbf16>, %q: memref<2x8x1000x72xbf16>,
    %k: memref<2x2x500x72xbf16>, %v: memref<2x2x500x40xbf16>,
    %o: memref<2x8x1000x40xbf16>, %lse: memref<2x8x1000xf32>,
    %dq: memref<2x8x1000x72xbf16>, %dk: memref<2x2x500x72xbf16>,
    %dv: memref<2x2x500x40xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(causal)
      outs(%dq, %dk, %dv : memref<2x8x1000x72xbf16>, memref<2x2x500x72xbf16>, memref<2x2x500x40xbf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 64, beside = 0, stages = 2, first_stores = 0, persistent = 1>}
      : memref<2x8x1000x40xbf16>, memref<2x8x1000x72xbf16>, memref<2x2x500x72xbf16>,
        memref<2x2x500x40xbf16>, memref<2x8x1000x40xbf16>, memref<2x8x1000xf32>
  return
}

// Blocks of 128 queries have two strips, even the last.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c128
// CHECK: %[[STRIPS:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK-DAG: tile.scratch(%{{.*}}, %[[STRIPS]]) : memref<?x3x?x128xf32>
// CHECK-DAG: tile.scratch(%{{.*}}, %[[STRIPS]]) : memref<?x3x?x4096xf32>
// CHECK: %[[ALL:.*]] = arith.muli %[[STRIPS]], %{{.*}}
// CHECK: tile.launch {{.*}}_prepare_dlse grid(%[[ALL]], %c1, %c1)
// CHECK: tile.launch {{.*}}_finish_dlse grid(%[[ALL]], %c1, %c1)
func.func @blocks(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>, %dlse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : memref<?x3x?xf32>)
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, stages = 2, first_stores = 0, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}

// Beside the tiles strips are finished without a launch: flags count the tiles
// of key heads, and strips are drawn like tiles.  If there are no keys a block
// runs all the same, for the gradients of queries that see none.
// CHECK-LABEL: func.func @beside
// CHECK: %[[SUMS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x4096xf32>
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64_prepare grid({{.*}}) args({{.*}}%[[SUMS]]
// CHECK: %[[COUNTS:.*]] = tile.counter : memref<1024xi32>
// CHECK: %[[STRIPS:.*]] = tile.counter : memref<1xi32>
// CHECK: %[[COUNTER:.*]] = tile.counter : memref<1xi32>
// CHECK: %[[QUERIES:.*]] = arith.muli %dim_{{[0-9]+}}, %dim
// CHECK: %[[ONE:.*]] = arith.minsi %[[QUERIES]], %c1
// CHECK: %[[TILES:.*]] = arith.maxsi %{{.*}}, %[[ONE]]
// CHECK: %[[BLOCKS:.*]] = arith.minsi %[[TILES]], %c132
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64 grid(%[[BLOCKS]], %c1, %c1) args({{.*}}%[[SUMS]], %arg6, {{.*}}%[[COUNTS]], %[[STRIPS]], %[[COUNTER]]
// CHECK-NOT: tile.launch
// CHECK: return
func.func @beside(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 1, stages = 2, first_stores = 0, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}

// Nor is there a launch before them, if they are prepared beside the tiles too.
// CHECK-LABEL: func.func @before
// CHECK: %[[BLOCKS:.*]] = arith.ceildivsi %{{.*}}, %c128
// CHECK: %[[STRIPS:.*]] = arith.muli %[[BLOCKS]], %c2
// CHECK-DAG: %[[STATISTICS:.*]] = tile.scratch(%{{.*}}, %[[STRIPS]]) : memref<?x3x?x128xf32>
// CHECK-DAG: %[[SUMS:.*]] = tile.scratch(%{{.*}}, %[[STRIPS]]) : memref<?x3x?x4096xf32>
// CHECK: %[[COUNTS:.*]] = tile.counter : memref<1024xi32>
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64{{.*}} args({{.*}}%[[STATISTICS]], %[[SUMS]], %arg4, {{.*}}%arg5, {{.*}}%arg6, {{.*}}%[[COUNTS]]
// CHECK-NOT: tile.launch
// CHECK: return
func.func @before(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 2, stages = 2, first_stores = 0, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}

// Where the first tile stores, flags for every strip are zeroed instead of sums,
// and who finishes asks which rows have sums.
// CHECK-LABEL: func.func @first_stores
// CHECK: %[[TOLD:.*]] = tile.scratch({{.*}}) : memref<?x3x?x1xi32>
// CHECK: tile.launch {{.*}}_prepare{{.*}} grid({{.*}}) args({{.*}}%[[TOLD]]
// CHECK: %[[SUMS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x4096xf32>
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64{{.*}} grid({{.*}}) args({{.*}}%[[SUMS]], %[[TOLD]]
// CHECK: tile.launch {{.*}}_finish{{.*}} args({{.*}}%[[SUMS]]
func.func @first_stores(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, stages = 2, first_stores = 1, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}

// In order tiles pass flags on, one for every strip, and the first of a block is
// drawn like all others.
// CHECK-LABEL: func.func @ordered
// CHECK: %[[SUMS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x4096xf32>
// CHECK: %[[TURNS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x1xi32>
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64_prepare_deterministic grid({{.*}}) args({{.*}}%[[SUMS]], %[[TURNS]]
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64_deterministic grid({{.*}}) args({{.*}}%[[SUMS]], %[[TURNS]]
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64_finish_deterministic
func.func @ordered(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {deterministic, schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, stages = 2, ordered = 1, first_stores = 0, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}

// So may those of which the first stores: no launch before it writes sums.
// CHECK-LABEL: func.func @ordered_first_stores
// CHECK: %[[TURNS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x1xi32>
// CHECK: tile.launch {{.*}}_prepare_deterministic{{.*}} grid({{.*}}) args({{.*}}%[[TURNS]]
// CHECK: %[[SUMS:.*]] = tile.scratch({{.*}}) : memref<?x3x?x4096xf32>
// CHECK: tile.launch {{.*}}@flash_backward_wgmma_f16_64_deterministic{{.*}} grid({{.*}}) args({{.*}}%[[SUMS]], %[[TURNS]]
func.func @ordered_first_stores(%do: memref<?x3x?x64xf16>, %q: memref<?x3x?x64xf16>,
    %k: memref<?x3x?x64xf16>, %v: memref<?x3x?x64xf16>,
    %o: memref<?x3x?x64xf16>, %lse: memref<?x3x?xf32>,
    %dq: memref<?x3x?x64xf16>, %dk: memref<?x3x?x64xf16>, %dv: memref<?x3x?x64xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse
      outs(%dq, %dk, %dv : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>)
      {deterministic, schedule = #attn.schedule<flash_backward, key = 128, query_block = 128, beside = 0, stages = 2, ordered = 1, first_stores = 1, persistent = 1>}
      : memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?x64xf16>,
        memref<?x3x?x64xf16>, memref<?x3x?x64xf16>, memref<?x3x?xf32>
  return
}
}
