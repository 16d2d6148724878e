// Gradients of sequences one behind the other: each is alone, also one without
// keys or without queries, on both families; what moves is what was promised.
// RUN: attn-run --on interpreter --machine h100_sxm --schedule "flash_backward, key = 64, query_block = 64, beside = 0, overlap = 1, stages = 2, ordered = 0, short_first = 0, first_stores = 0, persistent = 1" --function gradients --batch 6 --queries 300 --keys 420 --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine h100_sxm --schedule "flash_backward, key = 64, query_block = 64, beside = 0, overlap = 1, stages = 2, ordered = 0, short_first = 0, first_stores = 0, persistent = 1" --function gradients --batch 30 --queries 300 --keys 420 --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine h100_sxm --function gradients --batch 6 --queries 300 --keys 420 --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine h100_sxm --function gradients --batch 30 --queries 300 --keys 420 --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine l4 --schedule "split_backward, query = 64, key_block = 32, query_warps = 4, key = 64, query_block = 32, key_warps = 4, stages = 2, separate = 0" --function gradients --batch 6 --queries 300 --keys 420 --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine h100_sxm --function one_order --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine h100_sxm --function clauses --guard %s | FileCheck %s
// RUN: attn-run --on interpreter --machine l4 --function clauses --guard %s | FileCheck %s
// RUN: attn-opt -attn-to-tile=machine=h100_sxm %s | FileCheck %s --check-prefix=TILE

// CHECK-NOT: WRONG
// CHECK: dq {{.*}}(limit
// CHECK: dk {{.*}}(limit
// CHECK: dv {{.*}}(limit

// TILE: tile.kernel @{{(flash|split)_backward_.*}}_bf16_64_causal_bottom_right_ragged_
func.func @gradients(%do: memref<?x4x64xbf16>, %q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>,
                     %v: memref<?x2x64xbf16>, %o: memref<?x4x64xbf16>, %lse: memref<4x?xf32>,
                     %dlse: memref<4x?xf32>, %cu_q: memref<?xi32>, %cu_k: memref<?xi32>,
                     %dq: memref<?x4x64xbf16>, %dk: memref<?x2x64xbf16>, %dv: memref<?x2x64xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse dlse(%dlse : memref<4x?xf32>) mask(causal_bottom_right)
      ragged(%cu_q, %cu_k, longest 150, 200 : memref<?xi32>, memref<?xi32>)
      outs(%dq, %dk, %dv : memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>)
      : memref<?x4x64xbf16>, memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>, memref<?x4x64xbf16>, memref<4x?xf32>
  return
}

// TILE: tile.kernel @split_backward_{{.*}}_f16_32_ragged64_
func.func @one_order(%do: memref<150x2x32xf16>, %q: memref<150x2x32xf16>, %k: memref<170x2x32xf16>,
                     %v: memref<170x2x32xf16>, %o: memref<150x2x32xf16>, %lse: memref<2x150xf32>,
                     %low: memref<2x150xf32>, %cu_q: memref<5xi64>, %cu_k: memref<5xi64>,
                     %dq: memref<150x2x32xf16>, %dk: memref<170x2x32xf16>, %dv: memref<170x2x32xf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse lse_low(%low : memref<2x150xf32>)
      ragged(%cu_q, %cu_k, longest 90, 90 : memref<5xi64>, memref<5xi64>)
      outs(%dq, %dk, %dv : memref<150x2x32xf16>, memref<170x2x32xf16>, memref<170x2x32xf16>) {deterministic}
      : memref<150x2x32xf16>, memref<150x2x32xf16>, memref<170x2x32xf16>, memref<170x2x32xf16>, memref<150x2x32xf16>, memref<2x150xf32>
  return
}

// Positions count in a sequence, and b is its number.
func.func @clauses(%do: memref<120x2x32xbf16>, %q: memref<120x2x32xbf16>, %k: memref<160x1x32xbf16>,
                   %v: memref<160x1x32xbf16>, %o: memref<120x2x32xbf16>, %lse: memref<2x120xf32>,
                   %cu_q: memref<5xi32>, %cu_k: memref<5xi32>, %x: memref<4x2xf32>,
                   %dq: memref<120x2x32xbf16>, %dk: memref<160x1x32xbf16>, %dv: memref<160x1x32xbf16>) {
  attn.backward %do, %q, %k, %v, %o, %lse mask(window<40, 10>) captures(%x : memref<4x2xf32>)
      sees (%b, %h, %i, %j, %nq, %nk, %y) {
        %d = arith.addi %i, %nk : index
        %e = arith.subi %d, %nq : index
        %t = arith.addi %e, %j : index
        %three = arith.constant 3 : index
        %r = arith.remui %t, %three : index
        %zero = arith.constant 0 : index
        %is = arith.cmpi ne, %r, %zero : index
        attn.yield %is : i1
      }
      score (%z : f32, %b, %h, %i, %j, %nq, %nk, %y) {
        %a = attn.read %y[%b, %h] : memref<4x2xf32>
        %s = arith.mulf %z, %a : f32
        %r = arith.addf %z, %s : f32
        attn.yield %r : f32
      }
      ragged(%cu_q, %cu_k, longest 100, 100 : memref<5xi32>, memref<5xi32>)
      outs(%dq, %dk, %dv : memref<120x2x32xbf16>, memref<160x1x32xbf16>, memref<160x1x32xbf16>)
      : memref<120x2x32xbf16>, memref<120x2x32xbf16>, memref<160x1x32xbf16>, memref<160x1x32xbf16>, memref<120x2x32xbf16>, memref<2x120xf32>
  return
}
