// Fragments from global memory.
// RUN: attn-opt %s -convert-tile-to-nvvm | FileCheck %s

// A warp whose part is all there loads pairs at fixed places of two rows; where
// something is behind the end, one by one, or zeros.
// CHECK-LABEL: llvm.func @load(
// CHECK: scf.if
// CHECK: "ld.global.b32 $0, [$1+0];", "=r,l"
// CHECK: "ld.global.b32 $0, [$1+0];", "=r,l"
// CHECK: "ld.global.b32 $0, [$1+16];", "=r,l"
// CHECK: "ld.global.b32 $0, [$1+16];", "=r,l"
// CHECK-NOT: "ld.global
// CHECK: setp.eq.s32 p, $2, 1; setp.gt.s32 q, $2, 1; mov.b32 $0, 0; @p ld.global.u16 $0, [$1+0]; @q ld.global.b32 $0, [$1+0]; }", "=&r,l,r"
// CHECK-COUNT-1: setp.eq.s32 p, $2, 1;
// CHECK-COUNT-2: setp.eq.s32 p, $2, 9; {{.*}} [$1+16]; }", "=&r,l,r"
gpu.module @m {
  tile.kernel @load(%w: !tile.ptr<bf16>, %rows: i32, %row: i32, %columns: i32, %stride: i64, %o: !tile.ptr<i32>) attributes {warps = 4 : i32} {
    %n0 = arith.constant 0 : i64
    %view = tile.view %w[%n0] rows(%rows) stride(%stride) : <bf16> -> <?x16xbf16, align = 16>
    %f = tile.load_fragment %view[%row] columns(%columns) : <?x16xbf16, align = 16> -> <16x16xbf16, lhs>
    tile.store_registers %f to %o[%row] : !tile.frag<16x16xbf16, lhs> to <i32>
    tile.return
  }
}
