// Roles, barriers, queues, TMA and wgmma, as text and back.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

// CHECK-LABEL: @types
// CHECK-SAME: !tile.smem<64x128xbf16, sw128>, !tile.smem<2x64x64xf8E4M3FN, sw128>, !tile.smem<2x64x64xf8E4M3FN, sw128_paired>, !tile.smem<16x16xf16>,
// CHECK-SAME: !tile.tensor_map<256x96xbf16>, !tile.mbarrier<2>, !tile.queue<2x4>,
// CHECK-SAME: !tile.pending<16x256xf32>, !tile.frag<16x32xf8E4M3FN, lhs>, !tile.ptr<i32>
func.func private @types(
    !tile.smem<64x128xbf16, sw128>, !tile.smem<2x64x64xf8E4M3FN, sw128>, !tile.smem<2x64x64xf8E4M3FN, sw128_paired>, !tile.smem<16x16xf16, padded>,
    !tile.tensor_map<256x96xbf16>, !tile.mbarrier<2>, !tile.queue<2x4>,
    !tile.pending<16x256xf32>, !tile.frag<16x32xf8E4M3FN, lhs>, !tile.ptr<i32>)

gpu.module @kernels {
  // CHECK-LABEL: tile.kernel @roles
  // CHECK-SAME: (%[[MAP:.*]]: !tile.tensor_map<64x64xbf16> {tile.role = "q_map"}, %[[COUNTER:.*]]: !tile.ptr<i32>)
  tile.kernel @roles(%map: !tile.tensor_map<64x64xbf16> {tile.role = "q_map"}, %counter: !tile.ptr<i32>) attributes {warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %f0 = arith.constant 0.0 : f32
    // CHECK: tile.grid_size 2
    %size = tile.grid_size 2
    // CHECK: %[[S:.*]] = tile.alloc "s" : <2x64x64xbf16, sw128>
    // CHECK: %[[FULL:.*]] = tile.mbarrier "full" arrivals 1 : <2>
    // CHECK: %[[QUEUE:.*]] = tile.queue "next" readers 4 : <2x3>
    // CHECK: tile.queue "each" readers 4 rings 2 : <4x3>
    %s = tile.alloc "s" : <2x64x64xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    %queue = tile.queue "next" readers 4 : <2x3>
    %each = tile.queue "each" readers 4 rings 2 : <4x3>
    // CHECK: tile.roles {
    // CHECK-NEXT: tile.role "producer" warps 4 registers 24 single_lane {
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // CHECK: %[[D:.*]] = tile.draw %[[COUNTER]] below %[[C0:.*]] : <i32>
        // CHECK: tile.draw %[[COUNTER]][%[[D]]] below %[[C0]] : <i32>
        // CHECK: tile.push %[[QUEUE]][%[[C0]]] parity %[[C0]], %[[D]], %[[D]], %[[D]] : <2x3>
        // CHECK: tile.mbarrier_wait %[[FULL]][%[[C0]]] parity %[[C0]] : <2>
        // CHECK: tile.tma_load %[[MAP]][%[[C0]], %[[D]], %[[C0]]] to %[[S]][%[[C0]]] arrive %[[FULL]][%[[C0]]] : <64x64xbf16> to <2x64x64xbf16, sw128>, <2>
        %d = tile.draw %counter below %c0 : <i32>
        %e = tile.draw %counter[%d] below %c0 : <i32>
        tile.push %queue[%c0] parity %c0, %d, %d, %d : <2x3>
        tile.mbarrier_wait %full[%c0] parity %c0 : <2>
        tile.tma_load %map[%c0, %d, %c0] to %s[%c0] arrive %full[%c0] : <64x64xbf16> to <2x64x64xbf16, sw128>, <2>
        // CHECK: tile.mbarrier_expect %[[FULL]][%[[C0]]] bytes of %[[S]] : <2>, <2x64x64xbf16, sw128>
        // CHECK: tile.tma_load_rows %[[MAP]][%[[C0]], %[[D]], %[[C0]]] to %[[S]][%[[C0]], %[[C0]]] at %[[FULL]][%[[C0]]] : <64x64xbf16> to <2x64x64xbf16, sw128>, <2>
        tile.mbarrier_expect %full[%c0] bytes of %s : <2>, <2x64x64xbf16, sw128>
        tile.tma_load_rows %map[%c0, %d, %c0] to %s[%c0, %c0] at %full[%c0] : <64x64xbf16> to <2x64x64xbf16, sw128>, <2>
      }
      // CHECK: tile.role "consumer" warps 4 registers 240 {
      tile.role "consumer" warps 4 registers 240 {
        // CHECK: %[[MESSAGE:.*]]:3 = tile.pop %[[QUEUE]][%[[C0]]] parity %[[C0]] : <2x3> -> i32, i32, i32
        %message:3 = tile.pop %queue[%c0] parity %c0 : <2x3> -> i32, i32, i32
        // CHECK: %[[P:.*]] = tile.wgmma %[[S]][%[[C0]], %[[C0]]], %[[S]][%[[C0]]] transpose : !tile.smem<2x64x64xbf16, sw128>, <2x64x64xbf16, sw128> -> <16x64xf32>
        %p = tile.wgmma %s[%c0, %c0], %s[%c0] transpose : !tile.smem<2x64x64xbf16, sw128>, <2x64x64xbf16, sw128> -> <16x64xf32>
        // CHECK: %[[ACC:.*]] = tile.fill
        // CHECK: %[[LHS:.*]] = tile.cast %[[ACC]]
        %acc = tile.fill %f0 : f32 -> !tile.frag<16x64xf32, acc>
        %lhs = tile.cast %acc : <16x64xf32, acc> -> <16x64xbf16, lhs>
        // CHECK: %[[Q:.*]] = tile.wgmma %[[LHS]], %[[S]][%[[C0]]] acc(%[[ACC]] : !tile.frag<16x64xf32, acc>) : !tile.frag<16x64xbf16, lhs>, <2x64x64xbf16, sw128> -> <16x64xf32>
        // CHECK: tile.wgmma %[[LHS]], %[[S]][%[[C0]]] : !tile.frag<16x64xbf16, lhs>, <2x64x64xbf16, sw128> -> <16x8xf32>
        %q = tile.wgmma %lhs, %s[%c0] acc(%acc : !tile.frag<16x64xf32, acc>) : !tile.frag<16x64xbf16, lhs>, <2x64x64xbf16, sw128> -> <16x64xf32>
        %r = tile.wgmma %lhs, %s[%c0] : !tile.frag<16x64xbf16, lhs>, <2x64x64xbf16, sw128> -> <16x8xf32>
        // CHECK: %[[X:.*]] = tile.wgmma_wait 2, %[[P]] : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
        // CHECK: tile.wgmma_wait 0, %[[Q]], %{{.*}} : !tile.pending<16x64xf32>, !tile.pending<16x8xf32> -> !tile.frag<16x64xf32, acc>, !tile.frag<16x8xf32, acc>
        %x = tile.wgmma_wait 2, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
        %y:2 = tile.wgmma_wait 0, %q, %r : !tile.pending<16x64xf32>, !tile.pending<16x8xf32> -> !tile.frag<16x64xf32, acc>, !tile.frag<16x8xf32, acc>
        // CHECK: %[[PARTS:.*]] = tile.row_reduce max %[[X]] : <16x64xf32, acc> -> <16xf32, partial>
        // CHECK: %[[ROW:.*]] = tile.row_combine max %[[PARTS]] : <16xf32, partial> -> <16xf32>
        // CHECK: %[[ANY:.*]] = tile.any_above %[[PARTS]], %[[ROW]] : !tile.row<16xf32, partial>, <16xf32>
        // CHECK: tile.mbarrier_arrive %[[FULL]][%[[C0]]] if %[[ANY]] : <2>
        // CHECK: tile.mbarrier_arrive %[[FULL]][%[[C0]]] : <2>
        %parts = tile.row_reduce max %x : <16x64xf32, acc> -> <16xf32, partial>
        %row = tile.row_combine max %parts : <16xf32, partial> -> <16xf32>
        %any = tile.any_above %parts, %row : !tile.row<16xf32, partial>, <16xf32>
        tile.mbarrier_arrive %full[%c0] if %any : <2>
        tile.mbarrier_arrive %full[%c0] : <2>
        // CHECK: tile.fence_async
        // CHECK: tile.bar_arrive %[[C0]] warps 8
        // CHECK: tile.bar_sync %[[C0]] warps 4
        // CHECK: tile.tma_store %[[S]][%[[C0]]] to %[[MAP]][%[[C0]], %[[C0]], %[[C0]], %[[C0]]] : <2x64x64xbf16, sw128> to <64x64xbf16>
        // CHECK: tile.tma_store_wait 0
        tile.fence_async
        tile.bar_arrive %c0 warps 8
        tile.bar_sync %c0 warps 4
        tile.tma_store %s[%c0] to %map[%c0, %c0, %c0, %c0] : <2x64x64xbf16, sw128> to <64x64xbf16>
        tile.tma_store_wait 0
      }
    }
    tile.return
  }
}

// CHECK-LABEL: func.func @bytes
// CHECK-SAME: (%[[V:.*]]: !tile.smem<2x64x32xf8E4M3FN, sw128>, %[[T:.*]]: !tile.smem<32x64xf8E4M3FN, sw128_paired>, %[[P:.*]]: !tile.frag<16x64xf8E4M3FN, lhs>, %[[I:.*]]: i32)
func.func @bytes(%v: !tile.smem<2x64x32xf8E4M3FN, sw128>, %t: !tile.smem<32x64xf8E4M3FN, sw128_paired>, %p: !tile.frag<16x64xf8E4M3FN, lhs>, %i: i32) {
  // CHECK: tile.transpose %[[V]][%[[I]], %[[I]]] to %[[T]][%[[I]]] : <2x64x32xf8E4M3FN, sw128> to <32x64xf8E4M3FN, sw128_paired>
  // CHECK: tile.wgmma %[[P]], %[[T]][%[[I]]] transpose : !tile.frag<16x64xf8E4M3FN, lhs>, <32x64xf8E4M3FN, sw128_paired> -> <16x32xf32>
  tile.transpose %v[%i, %i] to %t[%i] : <2x64x32xf8E4M3FN, sw128> to <32x64xf8E4M3FN, sw128_paired>
  %o = tile.wgmma %p, %t[%i] transpose : !tile.frag<16x64xf8E4M3FN, lhs>, <32x64xf8E4M3FN, sw128_paired> -> <16x32xf32>
  return
}

// CHECK-LABEL: func.func @host
// CHECK: %[[COUNTER:.*]] = tile.counter : memref<1xi32>
// CHECK: tile.launch @kernels::@roles grid(%{{.*}}, %{{.*}}, %{{.*}}) args(%{{.*}}, %[[COUNTER]]) : memref<2x3x?x64xbf16>, memref<1xi32>
func.func @host(%n: index, %q: memref<2x3x?x64xbf16>) {
  %counter = tile.counter : memref<1xi32>
  tile.launch @kernels::@roles grid(%n, %n, %n) args(%q, %counter) : memref<2x3x?x64xbf16>, memref<1xi32>
  return
}
