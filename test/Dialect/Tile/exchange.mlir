// What blocks exchange, clusters and products that go on, as text and back.
// RUN: attn-opt %s | FileCheck %s
// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: tile.kernel @exchange
  // CHECK-SAME: (%[[SCRATCH:.*]]: !tile.ptr<i32>, %[[FLAGS:.*]]: !tile.ptr<i32>, %[[O:.*]]: !tile.ptr<bf16>, %[[MAP:.*]]: !tile.tensor_map<64x512xbf16>)
  // CHECK-SAME: attributes {cluster = 2 : i32, cooperative, min_blocks_per_sm = 1 : i32, warps = 8 : i32}
  tile.kernel @exchange(%scratch: !tile.ptr<i32>, %flags: !tile.ptr<i32>, %o: !tile.ptr<bf16>, %map: !tile.tensor_map<64x512xbf16>) attributes {cluster = 2 : i32, cooperative, warps = 8 : i32} {
    %c0 = arith.constant 0 : i32
    %n0 = arith.constant 0 : i64
    %f0 = arith.constant 0.0 : f32
    %s = tile.alloc "s" : <2x128x64xbf16, sw128>
    %v = tile.alias %s : <2x128x64xbf16, sw128> -> <2x32x256xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    // CHECK: tile.side
    %side = tile.side
    // CHECK: %[[RANK:.*]] = tile.cluster_rank
    %rank = tile.cluster_rank
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // CHECK: tile.tma_load %[[MAP]][%[[C0:.*]], %[[C0]], %[[C0]], %[[RANK]]] to %[[S:.*]][%[[C0]]] multicast(%[[RANK]]) arrive %[[FULL:.*]][%[[C0]]] : <64x512xbf16> to <2x128x64xbf16, sw128>, <2>
        tile.tma_load %map[%c0, %c0, %c0, %rank] to %s[%c0] multicast(%rank) arrive %full[%c0] : <64x512xbf16> to <2x128x64xbf16, sw128>, <2>
        // CHECK: tile.publish %[[FLAGS]][%[[C0]]], %[[C0]] : <i32>
        tile.publish %flags[%c0], %c0 : <i32>
        // CHECK: tile.publish %[[FLAGS]][%[[C0]]], %[[C0]] {kept} : <i32>
        tile.publish %flags[%c0], %c0 {kept} : <i32>
        // CHECK: %[[SEEN:.*]] = tile.await %[[FLAGS]][%[[C0]]] at_least %[[C0]] : <i32>
        // CHECK: tile.publish %[[FLAGS]][%[[C0]]], %[[SEEN]] : <i32>
        %seen = tile.await %flags[%c0] at_least %c0 : <i32>
        tile.publish %flags[%c0], %seen : <i32>
      }
      tile.role "consumer" warps 4 registers 240 {
        %acc = tile.fill %f0 : f32 -> !tile.frag<16x32xf32, acc>
        %row = tile.fill %f0 : f32 -> !tile.row<16xf32>
        %sum = tile.fill %f0 : f32 -> !tile.row<16xf32, partial>
        %p = tile.cast %acc : <16x32xf32, acc> -> <16x32xbf16, lhs>
        // CHECK: tile.store_registers %[[P:.*]], %[[ROW:.*]], %[[SUM:.*]] to %[[SCRATCH]][%[[C0]]] : !tile.frag<16x32xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial> to <i32>
        tile.store_registers %p, %row, %sum to %scratch[%c0] : !tile.frag<16x32xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial> to <i32>
        // CHECK: %[[GOT:.*]]:3 = tile.load_registers %[[SCRATCH]][%[[C0]]] : <i32> -> !tile.frag<16x32xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial>
        %got:3 = tile.load_registers %scratch[%c0] : <i32> -> !tile.frag<16x32xbf16, lhs>, !tile.row<16xf32>, !tile.row<16xf32, partial>
        // CHECK: tile.load_registers %[[SCRATCH]][%[[C0]]] {near} : <i32> -> !tile.row<16xf32>
        %near = tile.load_registers %scratch[%c0] {near} : <i32> -> !tile.row<16xf32>
        // CHECK: tile.store_registers %{{.*}} to %[[SCRATCH]][%[[C0]]] {near} : !tile.row<16xf32> to <i32>
        tile.store_registers %near to %scratch[%c0] {near} : !tile.row<16xf32> to <i32>
        // CHECK: %[[SCALED:.*]] = tile.scale_rows %[[GOT]]#0 by %[[GOT]]#1 : <16x32xbf16, lhs>, <16xf32>
        %scaled = tile.scale_rows %got#0 by %got#1 : <16x32xbf16, lhs>, <16xf32>
        // CHECK: %[[A:.*]] = tile.wgmma %[[SCALED]], %[[V:.*]][%[[C0]]] : !tile.frag<16x32xbf16, lhs>, <2x32x256xbf16, sw128> -> <16x192xf32>
        %a = tile.wgmma %scaled, %v[%c0] : !tile.frag<16x32xbf16, lhs>, <2x32x256xbf16, sw128> -> <16x192xf32>
        // CHECK: %[[B:.*]] = tile.wgmma %[[SCALED]], %[[V]][%[[C0]]] acc(%[[A]] : !tile.pending<16x192xf32>) : !tile.frag<16x32xbf16, lhs>, <2x32x256xbf16, sw128> -> <16x192xf32>
        %b = tile.wgmma %scaled, %v[%c0] acc(%a : !tile.pending<16x192xf32>) : !tile.frag<16x32xbf16, lhs>, <2x32x256xbf16, sw128> -> <16x192xf32>
        // CHECK: tile.wgmma_wait 1{{$}}
        // CHECK: tile.mbarrier_arrive %[[FULL]][%[[C0]]] cluster : <2>
        // CHECK: tile.wgmma_wait 0, %[[B]]
        tile.wgmma_wait 1
        tile.mbarrier_arrive %full[%c0] cluster : <2>
        %x = tile.wgmma_wait 0, %b : !tile.pending<16x192xf32> -> !tile.frag<16x192xf32, acc>
        %view = tile.view %o[%n0] rows(%c0) stride(%n0) : <bf16> -> <?x512xbf16, align = 16>
        // CHECK: tile.store_fragment %{{.*}} to %{{.*}}[%[[C0]], %[[RANK]]] : <16x192xf32, acc> to <?x512xbf16, align = 16>
        tile.store_fragment %x to %view[%c0, %rank] : <16x192xf32, acc> to <?x512xbf16, align = 16>
        // CHECK: tile.load_fragment %{{.*}}[%[[C0]], %[[RANK]]] : <?x512xbf16, align = 16> -> <16x192xf32, acc>
        %y = tile.load_fragment %view[%c0, %rank] : <?x512xbf16, align = 16> -> <16x192xf32, acc>
      }
    }
    tile.return
  }

  // Of an array of any number of columns.
  // CHECK-LABEL: @any_columns
  // CHECK-SAME: !tile.tensor_map<64x?xbf16>
  tile.kernel @any_columns(%map: !tile.tensor_map<64x?xbf16>, %c: i32) attributes {warps = 4 : i32} {
    %s = tile.alloc "s" : <1x64x64xbf16, sw128>
    tile.roles {
      tile.role "writer" warps 4 registers 24 single_lane {
        // CHECK: tile.tma_store
        tile.tma_store %s[%c] to %map[%c, %c, %c, %c] : <1x64x64xbf16, sw128> to <64x?xbf16>
      }
    }
    tile.return
  }

  // Whole panels of a wider stage.
  // CHECK-LABEL: @columns
  tile.kernel @columns(%map: !tile.tensor_map<32x384xbf16>, %c: i32) attributes {warps = 8 : i32} {
    %s = tile.alloc "s" : <2x32x256xbf16, sw128>
    %full = tile.mbarrier "full" arrivals 1 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        // CHECK: tile.tma_load %{{.*}} to %{{.*}} columns 192 arrive
        tile.tma_load %map[%c, %c, %c, %c] to %s[%c] columns 192 arrive %full[%c] : <32x384xbf16> to <2x32x256xbf16, sw128>, <2>
        // CHECK: tile.mbarrier_expect %{{.*}} bytes of %{{.*}} columns 192 :
        // CHECK: tile.tma_load_rows %{{.*}}[%[[C:.*]], %[[C]], %[[C]], %[[C]]] to %{{.*}}[%[[C]], %[[C]]] columns 192 at %{{.*}} :
        tile.mbarrier_expect %full[%c] bytes of %s columns 192 : <2>, <2x32x256xbf16, sw128>
        tile.tma_load_rows %map[%c, %c, %c, %c] to %s[%c, %c] columns 192 at %full[%c] : <32x384xbf16> to <2x32x256xbf16, sw128>, <2>
        // CHECK: tile.tma_prefetch %{{.*}}[%[[C:.*]], %[[C]], %[[C]], %[[C]]] columns 192 : <32x384xbf16>
        tile.tma_prefetch %map[%c, %c, %c, %c] columns 192 : <32x384xbf16>
      }
      tile.role "consumer" warps 4 registers 240 {
      }
    }
    tile.return
  }

  // What others count may be awaited where not all blocks run, by whole warps.
  // CHECK-LABEL: @counts
  // CHECK-SAME: (%[[FLAGS:.*]]: !tile.ptr<i32>, %[[C:.*]]: i32)
  tile.kernel @counts(%flags: !tile.ptr<i32>, %c: i32) attributes {warps = 8 : i32} {
    tile.roles {
      tile.role "writer" warps 4 registers 24 single_lane {
        // CHECK: tile.tma_store_wait 1{{$}}
        // CHECK: tile.tma_store_wait 0 complete{{$}}
        // CHECK: tile.count %[[FLAGS]][%[[C]]] below %[[C]] : <i32>
        tile.tma_store_wait 1
        tile.tma_store_wait 0 complete
        tile.count %flags[%c] below %c : <i32>
      }
      tile.role "finisher" warps 4 registers 240 {
        // CHECK: tile.await %[[FLAGS]][%[[C]]] at_least %[[C]] : <i32>
        // CHECK: tile.publish %[[FLAGS]][%[[C]]], %[[C]] : <i32>
        %seen = tile.await %flags[%c] at_least %c : <i32>
        tile.publish %flags[%c], %c : <i32>
      }
    }
    tile.return
  }

  // Launches that overlap.  Where an array lies may be known before the wait.
  // CHECK-LABEL: @ahead
  tile.kernel @ahead(%flags: !tile.ptr<i32>, %k: !tile.ptr<bf16>, %o: i64, %n: i32,
      %i: i32) attributes {warps = 4 : i32} {
    // CHECK: tile.view
    // CHECK-NEXT: tile.await_launch
    // CHECK-NEXT: tile.release_launch
    // CHECK-NEXT: tile.count
    %v = tile.view %k[%o] rows(%n) stride(%o) : <bf16> -> <?x64xbf16, align = 16>
    tile.await_launch
    tile.release_launch
    tile.count %flags[%i] below %i : <i32>
    tile.return
  }
}

// CHECK-LABEL: @host
func.func @host() {
  // CHECK: tile.scratch : memref<4096xi32>
  // CHECK: tile.counter : memref<528xi32>
  %scratch = tile.scratch : memref<4096xi32>
  %counters = tile.counter : memref<528xi32>
  return
}
