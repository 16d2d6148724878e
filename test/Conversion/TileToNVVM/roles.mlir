// Warps with different work: one branch for each role, registers, single lanes.
// RUN: attn-opt %s -convert-tile-to-nvvm -canonicalize -cse -split-input-file | FileCheck %s

// Behind a barrier of the block every warp finds its role by the number of its
// warpgroup, which a shuffle makes uniform.  A launch of 384 threads gives each
// 168 registers: the first role returns some, the other takes them.
// CHECK-LABEL: llvm.func @two(
// CHECK-SAME: nvvm.maxntid = array<i32: 384>
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NEXT: nvvm.barrier{{$}}
// CHECK: %[[GROUP:.*]] = arith.shrui %[[THREAD:.*]], %c7_i32
// CHECK: %[[UNIFORM:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[GROUP]], %c0_i32, %c31_i32
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %[[UNIFORM]], %c1_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: nvvm.setmaxregister decrease 24
// One lane of the first warp does all the work of a role of a single lane, so
// that its arrivals need no predicate.
// CHECK: %[[WARP:.*]] = arith.shrui %[[THREAD]], %c5_i32
// CHECK: %[[UNIFORMWARP:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[WARP]], %c0_i32, %c31_i32
// CHECK: %[[LEADER:.*]] = arith.cmpi eq, %[[UNIFORMWARP]], %c0_i32
// CHECK: scf.if %[[LEADER]] {
// CHECK-NEXT: %[[ELECTED:.*]] = nvvm.elect.sync -> i1
// CHECK-NEXT: scf.if %[[ELECTED]] {
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.shared::cta.b64 _, [$0];"
// CHECK-NEXT: } {tile.single_lane}
// CHECK: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 240
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "{ .reg .pred p; bar.warp.sync 0xffffffff; setp.ne.b32 p, $1, 0; @p mbarrier.arrive.shared::cta.b64 _, [$0]; }"
// CHECK-NOT: nvvm.setmaxregister
gpu.module @roles {
  tile.kernel @two(%n: i32) attributes {warps = 12 : i32} {
    %full = tile.mbarrier "full" arrivals 9 : <2>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.mbarrier_arrive %full[%n] : <2>
      }
      tile.role "consumer" warps 8 registers 240 {
        tile.mbarrier_arrive %full[%n] : <2>
      }
    }
    tile.return
  }
}

// -----

// Branches nest; a role that wants what the launch gave (128 registers of each
// of 512 threads) asks for nothing.  The leader of a later role is its own
// first warp.
// CHECK-LABEL: llvm.func @three(
// CHECK: %[[GROUP:.*]] = nvvm.shfl.sync idx
// CHECK: arith.cmpi slt, %[[GROUP]], %c1_i32
// CHECK: scf.if
// CHECK-NEXT: nvvm.setmaxregister decrease 24
// CHECK-NEXT: nvvm.barrier id = %{{.*}} number_of_threads = %c384_i32
// CHECK-NEXT: } else {
// CHECK-NEXT: arith.cmpi slt, %[[GROUP]], %c3_i32
// CHECK-NEXT: scf.if
// CHECK-NEXT: nvvm.barrier id = %{{.*}} number_of_threads = %c384_i32
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 160
// CHECK: nvvm.shfl.sync idx
// CHECK-NEXT: arith.cmpi eq, %{{.*}}, %c12_i32
// CHECK: nvvm.elect.sync
// CHECK: llvm.inline_asm has_side_effects asm_dialect = att "mbarrier.arrive.shared::cta.b64 _, [$0];"
gpu.module @roles {
  tile.kernel @three(%n: i32) attributes {warps = 16 : i32} {
    %full = tile.mbarrier "full" arrivals 1 : <1>
    tile.roles {
      tile.role "a" warps 4 registers 24 {
        tile.bar_sync %n warps 12
      }
      tile.role "b" warps 8 registers 128 {
        tile.bar_sync %n warps 12
      }
      tile.role "c" warps 4 registers 160 single_lane {
        tile.mbarrier_arrive %full[%n] : <1>
      }
    }
    tile.return
  }
}

// -----

// Roles that share a warpgroup ask for registers together; then each warp finds
// its own by its number.  Of a role of one warp and one lane only the lane is to
// be elected.
// CHECK-LABEL: llvm.func @shared(
// CHECK: %[[GROUP:.*]] = nvvm.shfl.sync idx
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %[[GROUP]], %c1_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: nvvm.setmaxregister decrease 40
// CHECK: %[[WARP:.*]] = arith.shrui %{{.*}}, %c5_i32
// CHECK: %[[UNIFORM:.*]] = nvvm.shfl.sync idx %c-1_i32, %[[WARP]], %c0_i32, %c31_i32
// CHECK: %[[LEADER:.*]] = arith.cmpi slt, %[[UNIFORM]], %c1_i32
// CHECK: scf.if %[[LEADER]] {
// CHECK-NEXT: %[[ELECTED:.*]] = nvvm.elect.sync -> i1
// CHECK-NEXT: scf.if %[[ELECTED]] {
// CHECK: "mbarrier.arrive.shared::cta.b64 _, [$0];"
// CHECK-NEXT: } {tile.single_lane}
// CHECK-NEXT: } else {
// CHECK-NOT: nvvm.setmaxregister
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: nvvm.barrier id = %{{.*}} number_of_threads = %c64_i32
// CHECK-NEXT: } else {
// CHECK-NEXT: nvvm.barrier id = %{{.*}} number_of_threads = %c32_i32
// CHECK: } else {
// CHECK-NEXT: nvvm.setmaxregister increase 232
// CHECK-NEXT: nvvm.barrier id = %{{.*}} number_of_threads = %c256_i32
gpu.module @roles {
  tile.kernel @shared(%n: i32) attributes {warps = 12 : i32} {
    %full = tile.mbarrier "full" arrivals 9 : <2>
    tile.roles {
      tile.role "producer" warps 1 registers 40 single_lane {
        tile.mbarrier_arrive %full[%n] : <2>
      }
      tile.role "two" warps 2 registers 40 {
        tile.bar_sync %n warps 2
      }
      tile.role "one" warps 1 registers 40 {
        tile.bar_sync %n warps 1
      }
      tile.role "consumer" warps 8 registers 232 {
        tile.bar_sync %n warps 8
      }
    }
    tile.return
  }
}

// -----

// Loops in a kernel with roles stay as they are written; others may be unrolled.
// CHECK: #[[$UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[$ONCE:.*]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>
// CHECK-LABEL: llvm.func @loops(
// CHECK: scf.for
// CHECK: scf.for
// CHECK: } {llvm.loop_annotation = #[[$ONCE]]}
// CHECK: } {llvm.loop_annotation = #[[$ONCE]]}
// CHECK-LABEL: llvm.func @without_roles(
// CHECK: scf.for
// CHECK-NOT: loop_annotation
gpu.module @roles {
  tile.kernel @loops(%n: i32) attributes {warps = 8 : i32} {
    %c1 = arith.constant 1 : i32
    %full = tile.mbarrier "full" arrivals 1 : <1>
    tile.roles {
      tile.role "producer" warps 4 registers 24 single_lane {
        tile.mbarrier_arrive %full[%n] : <1>
      }
      tile.role "consumer" warps 4 registers 240 {
        scf.for %i = %c1 to %n step %c1 : i32 {
          scf.for %j = %c1 to %n step %c1 : i32 {
            tile.mbarrier_wait %full[%i] parity %j : <1>
          }
        }
      }
    }
    tile.return
  }
  tile.kernel @without_roles(%n: i32) attributes {warps = 4 : i32} {
    %c1 = arith.constant 1 : i32
    scf.for %i = %c1 to %n step %c1 : i32 {
      tile.barrier
    }
    tile.return
  }
}

// -----

// A launch gives each of 640 threads 96 registers.  Two producers share a
// warpgroup, which gives its registers up once.
// CHECK-LABEL: llvm.func @pairs(
// CHECK: nvvm.setmaxregister decrease 24
// CHECK-NOT: nvvm.setmaxregister decrease
// CHECK: nvvm.setmaxregister increase 112
gpu.module @roles {
  tile.kernel @pairs() attributes {warps = 20 : i32} {
    tile.roles {
      tile.role "producer_0" warps 2 registers 24 single_lane {
      }
      tile.role "producer_1" warps 2 registers 24 single_lane {
      }
      tile.role "consumer" warps 16 registers 112 {
      }
    }
    tile.return
  }
}
