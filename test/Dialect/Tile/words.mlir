// Words in one piece, transposes and images in shared memory, columns of a
// right factor and stages of stores, as text and back.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: tile.kernel @words
  // CHECK-SAME: (%[[SUMS:.*]]: !tile.ptr<f32>, %[[NUMBERS:.*]]: !tile.ptr<f32>, %[[MAP:.*]]: !tile.tensor_map<64x128xbf16>, %[[I:.*]]: i32)
  tile.kernel @words(%sums: !tile.ptr<f32>, %numbers: !tile.ptr<f32>, %map: !tile.tensor_map<64x128xbf16>, %i: i32) attributes {warps = 8 : i32} {
    %s = tile.alloc "s" : <2x64x128xbf16, sw128>
    %n = tile.alloc "n" : <3x1x128xf32>
    %full = tile.mbarrier "full" arrivals 1 : <3>
    tile.roles {
      tile.role "copies" warps 4 registers 24 single_lane {
        // CHECK: tile.load_words %[[NUMBERS]][%[[I]]] to %[[N:.*]][%[[I]]] arrive %[[FULL:.*]][%[[I]]] : <f32> to <3x1x128xf32>, <3>
        tile.load_words %numbers[%i] to %n[%i] arrive %full[%i] : <f32> to <3x1x128xf32>, <3>
        tile.fence_async
        // CHECK: tile.add_words %[[S:.*]][%[[I]]] to %[[SUMS]][%[[I]]] count 4096 : <2x64x128xbf16, sw128> to <f32>
        tile.add_words %s[%i] to %sums[%i] count 4096 : <2x64x128xbf16, sw128> to <f32>
        // CHECK: tile.store_words %[[S]][%[[I]]] to %[[SUMS]][%[[I]]] count 4096 : <2x64x128xbf16, sw128> to <f32>
        tile.store_words %s[%i] to %sums[%i] count 4096 : <2x64x128xbf16, sw128> to <f32>
        // CHECK: tile.tma_store %[[S]][%[[I]]] stage(%[[I]]) to %[[MAP]][%[[I]], %[[I]], %[[I]], %[[I]]] : <2x64x128xbf16, sw128> to <64x128xbf16>
        tile.tma_store %s[%i] stage(%i) to %map[%i, %i, %i, %i] : <2x64x128xbf16, sw128> to <64x128xbf16>
        tile.tma_store_wait 0
      }
      tile.role "products" warps 4 registers 240 {
        %k = tile.alias %s : <2x64x128xbf16, sw128> -> <1x128x128xbf16, sw128>
        %t = tile.alloc "t" : <2x64x128xbf16>
        // CHECK: %[[P:.*]] = tile.wgmma %[[S]][%[[I]], %[[I]]], %{{.*}}[%[[I]], %[[I]]] : !tile.smem<2x64x128xbf16, sw128>, <128x128xbf16, sw128> -> <16x64xf32>
        %p = tile.wgmma %s[%i, %i], %k[%i, %i] : !tile.smem<2x64x128xbf16, sw128>, <1x128x128xbf16, sw128> -> <16x64xf32>
        // CHECK: %[[Q:.*]] = tile.wgmma %[[S]][%[[I]], %[[I]]], %{{.*}}[%[[I]], %[[I]]] acc(%[[P]] : !tile.pending<16x64xf32>) : !tile.smem<2x64x128xbf16, sw128>, <128x128xbf16, sw128> -> <16x64xf32>
        %q = tile.wgmma %s[%i, %i], %k[%i, %i] acc(%p : !tile.pending<16x64xf32>) : !tile.smem<2x64x128xbf16, sw128>, <1x128x128xbf16, sw128> -> <16x64xf32>
        %x = tile.wgmma_wait 0, %q : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
        %f = tile.cast %x : <16x64xf32, acc> -> <16x64xbf16, lhs>
        // CHECK: tile.store_transposed %{{.*}} to %[[S]][%[[I]], %[[I]], %[[I]]] : <16x64xbf16, lhs> to <2x64x128xbf16, sw128>
        // CHECK: tile.store_transposed %{{.*}} to %[[T:.*]][%[[I]], %[[I]], %[[I]]] : <16x64xbf16, lhs> to <2x64x128xbf16>
        tile.store_transposed %f to %s[%i, %i, %i] : <16x64xbf16, lhs> to <2x64x128xbf16, sw128>
        tile.store_transposed %f to %t[%i, %i, %i] : <16x64xbf16, lhs> to <2x64x128xbf16>
        // CHECK: tile.store_matrix %{{.*}} to %[[S]][%[[I]]] stage(%[[I]]) : <16x64xf32, acc> to <2x64x128xbf16, sw128>
        // CHECK: tile.store_matrix %{{.*}} to %[[T]][%[[I]], %[[I]]] stage(%[[I]]) : <16x64xf32, acc> to <2x64x128xbf16>
        tile.store_matrix %x to %s[%i] stage(%i) : <16x64xf32, acc> to <2x64x128xbf16, sw128>
        tile.store_matrix %x to %t[%i, %i] stage(%i) : <16x64xf32, acc> to <2x64x128xbf16>
        // CHECK: tile.put_registers %{{.*}}, %{{.*}} to %[[S]][%[[I]], %[[I]]] : !tile.frag<16x64xf32, acc>, !tile.frag<16x64xbf16, lhs> to <2x64x128xbf16, sw128>
        tile.put_registers %x, %f to %s[%i, %i] : !tile.frag<16x64xf32, acc>, !tile.frag<16x64xbf16, lhs> to <2x64x128xbf16, sw128>
        // CHECK: tile.get_registers %[[S]][%[[I]], %[[I]]] : <2x64x128xbf16, sw128> -> !tile.frag<16x64xf32, acc>, !tile.frag<16x64xbf16, lhs>
        %got:2 = tile.get_registers %s[%i, %i] : <2x64x128xbf16, sw128> -> !tile.frag<16x64xf32, acc>, !tile.frag<16x64xbf16, lhs>
      }
    }
    tile.return
  }
}
