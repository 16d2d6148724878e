// The kernel of column_split on wgmma: what it reserves, its roles, and what is
// launched.  The pipeline checks its bytes and its footprint against the plan.
// RUN: attn-opt %s -attn-to-tile | FileCheck %s

// Two parts of 256 columns in clusters of two: each block brings half of the
// keys of a unit, and half of the panels of a piece of values.
// A block has 4 places for 8 warps, each of 16 x 128 weights and 4 words a lane;
// two flags and its share of 4 messages.
// CHECK-LABEL: tile.kernel @column_split_wgmma_bf16_512_causal_lse(
// CHECK-SAME: !tile.tensor_map<128x512xbf16> {tile.role = "q_map"}, {{[^:]*}}: !tile.tensor_map<64x512xbf16> {tile.role = "k_map"}, {{[^:]*}}: !tile.tensor_map<32x512xbf16> {tile.role = "v_map"},
// CHECK-SAME: %[[SCRATCH:[^:]*]]: !tile.ptr<i32> {tile.per_block = 36864 : i64, tile.role = "scratch"}, %[[FLAGS:[^:]*]]: !tile.ptr<i32> {tile.per_block = 4 : i64, tile.role = "flags"}, %[[COUNTER:[^:]*]]: !tile.ptr<i32> {tile.role = "counter"},
// CHECK-SAME: attributes {cluster = 2 : i32, cooperative,
// CHECK-SAME: warps = 12 : i32
// CHECK: %[[Q:.*]] = tile.alloc "query" : <8x128x64xbf16, sw128>
// CHECK-NEXT: %[[UNITS:.*]] = tile.alloc "ring" : <6x128x64xbf16, sw128>
// CHECK-NEXT: %[[PIECES:.*]] = tile.alias %[[UNITS]] : <6x128x64xbf16, sw128> -> <6x32x256xbf16, sw128>
// CHECK-NEXT: %[[QFULL:.*]] = tile.mbarrier "query_full" arrivals 8 : <1>
// CHECK-NEXT: %[[QEMPTY:.*]] = tile.mbarrier "query_empty" arrivals 8 : <1>
// CHECK-NEXT: %[[FULL:.*]] = tile.mbarrier "ring_full" arrivals 1 : <6>
// CHECK-NEXT: %[[EMPTY:.*]] = tile.mbarrier "ring_empty" arrivals 16 : <6>
// CHECK-NEXT: %[[WRITTEN:.*]] = tile.mbarrier "written" arrivals 4 : <2>
// CHECK-NEXT: %[[READY:.*]] = tile.mbarrier "ready" arrivals 1 : <2>
// CHECK-NEXT: %[[TILE:.*]] = tile.queue "tile" readers 10 : <2x3>
// CHECK: tile.role "producer" warps 1 registers 24 single_lane {
// CHECK: tile.push %[[TILE]]
// CHECK: tile.mbarrier_wait %[[QEMPTY]]
// CHECK: to %[[Q]][%{{.*}}] arrive %[[QFULL]]
// The next tile is asked for late.
// CHECK: tile.draw %[[COUNTER]] below
// CHECK: tile.publish %[[FLAGS]]
// CHECK: to %[[UNITS]][%{{.*}}] multicast(%{{.*}}) arrive %[[FULL]]
// CHECK: to %[[PIECES]][%{{.*}}] multicast(%{{.*}}) arrive %[[FULL]]
// CHECK: tile.await %[[FLAGS]]
// CHECK: tile.push %[[TILE]]
// CHECK: tile.role "publisher 0" warps 1 registers 24 single_lane {
// CHECK: tile.mbarrier_wait %[[WRITTEN]]
// CHECK: tile.publish %[[FLAGS]]
// CHECK: tile.await %[[FLAGS]]
// CHECK: tile.mbarrier_arrive %[[READY]]
// CHECK: tile.role "publisher 1" warps 2 registers 24 single_lane {
// CHECK: tile.role "consumer" warps 8 registers 240 {
// Scores of the own keys, panel by panel; what was read is handed back while the
// next product runs.
// CHECK: tile.mbarrier_wait %[[QFULL]]
// CHECK: %[[FIRST:.*]] = tile.wgmma %[[Q]][{{.*}}], %[[UNITS]][{{.*}}] transpose :
// CHECK: tile.wgmma %[[Q]][{{.*}}], %[[UNITS]][{{.*}}] transpose acc(%[[FIRST]] : !tile.pending<16x128xf32>)
// CHECK-NEXT: tile.wgmma_wait 1
// CHECK-NEXT: tile.mbarrier_arrive %[[EMPTY]][%{{.*}}] cluster
// CHECK: tile.mbarrier_arrive %[[QEMPTY]][%{{.*}}] if
// Values of the own part, slice by slice under the softmax.
// CHECK: tile.any_above
// CHECK: tile.extract
// CHECK: tile.scale_rows
// CHECK: tile.wgmma %{{.*}}, %[[PIECES]]
// CHECK: tile.store_registers {{.*}} to %[[SCRATCH]]
// CHECK: tile.mbarrier_arrive %[[WRITTEN]]
// The strip before is ready before this one is said to be written, and its
// maxima come under the scores; its values follow in the same chain.
// CHECK: scf.for
// CHECK: tile.wgmma %[[Q]]
// CHECK: tile.mbarrier_wait %[[READY]]
// CHECK: tile.load_registers %[[SCRATCH]]
// CHECK: tile.mbarrier_arrive %[[WRITTEN]]
// CHECK: tile.load_registers %[[SCRATCH]]
// CHECK: tile.scale_rows
// CHECK: tile.wgmma %{{.*}}, %[[PIECES]]
// The last strip of the others, and the last tile's output.
// CHECK: tile.mbarrier_wait %[[READY]]
// CHECK: tile.store_fragment
// CHECK: tile.store_row

// 700 rows are 3 tiles of 256 for each of 2 heads: 6 teams of 4 blocks.  What a
// launch has for itself is for the largest grid, 33 teams.
// CHECK-LABEL: func.func @f
// CHECK: tile.scratch : memref<4866048xi32>
// CHECK: tile.counter : memref<528xi32>
// CHECK: tile.counter : memref<1xi32>
// CHECK: tile.launch @attn_kernels::@column_split_wgmma_bf16_512_causal_lse grid(%c24, %c1, %c1)
func.func @f(%q: tensor<1x2x700x512xbf16>, %k: tensor<1x1x700x512xbf16>, %v: tensor<1x1x700x512xbf16>) -> (tensor<1x2x700x512xbf16>, tensor<1x2x700xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 2, slots = 6, resident = 8>} : tensor<1x2x700x512xbf16>, tensor<1x1x700x512xbf16>, tensor<1x1x700x512xbf16> -> tensor<1x2x700x512xbf16>, tensor<1x2x700xf32>
  return %o, %l : tensor<1x2x700x512xbf16>, tensor<1x2x700xf32>
}
