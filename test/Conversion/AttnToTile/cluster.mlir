// Flash in clusters on wgmma: who loads what for whom, and what is launched.
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm | FileCheck %s

// Keys of 128 columns are two panels, one for each block; values of 64 columns
// are dealt out by rows.  Nobody draws tiles.
// CHECK-LABEL: tile.kernel @cluster_wgmma_bf16_128_64_causal(
// CHECK-SAME: !tile.tensor_map<128x128xbf16> {tile.role = "q_map"}, {{[^:]*}}: !tile.tensor_map<64x128xbf16> {tile.role = "k_map"}, {{[^:]*}}: !tile.tensor_map<32x64xbf16> {tile.role = "v_map"},
// CHECK-NOT: tile.role = "counter"
// CHECK: attributes {cluster = 2 : i32,

// Queries are each block's own, keys and values everybody's.
// CHECK: tile.mbarrier "query_empty" arrivals 8
// CHECK: %[[KEY:.*]] = tile.mbarrier "key_empty" arrivals 16
// CHECK: %[[VALUE:.*]] = tile.mbarrier "value_empty" arrivals 16
// CHECK: %[[RANK:.*]] = tile.cluster_rank
// CHECK: tile.role "producer"
// CHECK: tile.tma_load {{.*}} multicast(%[[RANK]]) {{.*}} : <64x128xbf16> to
// CHECK: tile.tma_load
// CHECK-NOT: multicast
// CHECK-SAME: : <128x128xbf16> to
// CHECK: tile.tma_load {{.*}} multicast(%[[RANK]]) {{.*}} : <64x128xbf16> to
// CHECK: tile.tma_load {{.*}} multicast(%[[RANK]]) {{.*}} : <32x64xbf16> to
// CHECK: tile.role "consumer"
// CHECK: tile.mbarrier_arrive %[[KEY]][%{{.*}}] cluster
// CHECK: tile.mbarrier_arrive %[[VALUE]][%{{.*}}] cluster

// 700 rows are 3 tiles of 256 for each of 2 heads: 6 clusters.
// CHECK-LABEL: func.func @f
// CHECK-NOT: tile.counter
// CHECK: tile.launch @attn_kernels::@cluster_wgmma_bf16_128_64_causal grid(%c12, %c1, %c1)
func.func @f(%q: tensor<1x2x700x128xbf16>, %k: tensor<1x1x700x128xbf16>, %v: tensor<1x1x700x64xbf16>) -> tensor<1x2x700x64xbf16> {
  %o = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<cluster, query = 128, key = 64, stages = 2, query_stages = 1, cluster = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1>} : tensor<1x2x700x128xbf16>, tensor<1x1x700x128xbf16>, tensor<1x1x700x64xbf16> -> tensor<1x2x700x64xbf16>
  return %o : tensor<1x2x700x64xbf16>
}
