// Sequences one behind the other: every one is attention of its own, of any
// length, also of none, on both families; what moves is what was promised.
// RUN: attn-run --on interpreter --machine h100_sxm --schedule "flash, query = 64, key = 64, stages = 2, query_stages = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1" --function causal --batch 6 --queries 300 --keys 420 --guard %s | FileCheck %s --check-prefix=CAUSAL
// RUN: attn-run --on interpreter --machine h100_sxm --schedule "flash, query = 64, key = 64, stages = 2, query_stages = 2, staging = 64, ping_pong = 0, overlap = 1, persistent = 1" --function causal --batch 30 --queries 300 --keys 420 --guard %s | FileCheck %s --check-prefix=MANY
// RUN: attn-run --on interpreter --machine l4 --schedule "flash, query = 64, key = 32, stages = 2, warps = 2" --function causal --batch 6 --queries 300 --keys 420 --guard %s | FileCheck %s --check-prefix=CAUSAL
// RUN: attn-run --on interpreter --machine h100_sxm --function clauses --guard %s | FileCheck %s --check-prefix=CLAUSES
// RUN: attn-run --on interpreter --machine l4 --function clauses --guard %s | FileCheck %s --check-prefix=CLAUSES
// RUN: attn-run --on interpreter --machine h100_sxm --function self --inputs nan-key %s | FileCheck %s --check-prefix=SELF
// RUN: attn-run --on interpreter --machine h100_sxm --function narrow --guard %s | FileCheck %s --check-prefix=NARROW
// RUN: attn-run --on interpreter --machine h100_sxm --function single --guard %s | FileCheck %s --check-prefix=SINGLE
// RUN: attn-opt -attn-to-tile=machine=h100_sxm %s | FileCheck %s --check-prefix=TILE

// Among many there are some with queries and no keys, whose boxes have no rows:
// the copy engine reads the first bytes of the map's array all the same.
// MANY-NOT: WRONG
// MANY: o {{.*}}(limit
// MANY: lse

// The grid follows from tokens and sequences alone.
// CAUSAL: problem bf16, batch 6, heads 4 over 2, queries 300, keys 420
// CAUSAL-NOT: WRONG
// CAUSAL: o {{.*}}(limit
// CAUSAL: lse
// TILE: tile.kernel @{{.*}}flash_wgmma_bf16_64_causal_bottom_right_ragged_lse
func.func @causal(%q: memref<?x4x64xbf16>, %k: memref<?x2x64xbf16>, %v: memref<?x2x64xbf16>,
                  %cu_q: memref<?xi32>, %cu_k: memref<?xi32>,
                  %o: memref<?x4x64xbf16>, %lse: memref<4x?xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right)
      ragged(%cu_q, %cu_k, longest 150, 200 : memref<?xi32>, memref<?xi32>)
      outs(%o, %lse : memref<?x4x64xbf16>, memref<4x?xf32>)
      : memref<?x4x64xbf16>, memref<?x2x64xbf16>, memref<?x2x64xbf16>
  return
}

// Positions count in a sequence, and b is its number.
// CLAUSES-NOT: WRONG
// CLAUSES: o {{.*}}(limit
func.func @clauses(%q: tensor<200x2x32xf16>, %k: tensor<260x1x32xf16>, %v: tensor<260x1x32xf16>,
                   %cu_q: tensor<5xi32>, %cu_k: tensor<5xi32>, %x: tensor<4x2xf32>,
                   %s: tensor<2xf32>) -> tensor<200x2x32xf16> {
  %o = attn.forward %q, %k, %v mask(window<40, 10>) captures(%x : tensor<4x2xf32>)
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
        %a = attn.read %y[%b, %h] : tensor<4x2xf32>
        %r = arith.addf %z, %a : f32
        attn.yield %r : f32
      }
      sinks(%s : tensor<2xf32>)
      ragged(%cu_q, %cu_k, longest 100, 100 : tensor<5xi32>, tensor<5xi32>)
      : tensor<200x2x32xf16>, tensor<260x1x32xf16>, tensor<260x1x32xf16> -> tensor<200x2x32xf16>
  return %o : tensor<200x2x32xf16>
}

// A NaN reaches no other sequence.
// SELF-NOT: WRONG
// SELF: o {{.*}}(limit
func.func @self(%q: tensor<150x1x64xbf16>, %k: tensor<150x1x64xbf16>, %v: tensor<150x1x64xbf16>,
                %cu: tensor<7xi32>) -> tensor<150x1x64xbf16> {
  %o = attn.forward %q, %k, %v mask(causal)
      ragged(%cu, %cu, longest 60, 60 : tensor<7xi32>, tensor<7xi32>)
      : tensor<150x1x64xbf16>, tensor<150x1x64xbf16>, tensor<150x1x64xbf16> -> tensor<150x1x64xbf16>
  return %o : tensor<150x1x64xbf16>
}

// Boxes of keys of another type than queries, and pieces of f32, may have no
// rows as well.
// NARROW-NOT: WRONG
// NARROW: o {{.*}}(limit
func.func @narrow(%q: tensor<300x4x64xbf16>, %k: tensor<420x2x64xf8E4M3FN>, %v: tensor<420x2x64xf8E4M3FN>, %cu_q: tensor<31xi32>, %cu_k: tensor<31xi32>) -> tensor<300x4x64xbf16> {
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) ragged(%cu_q, %cu_k, longest 100, 100 : tensor<31xi32>, tensor<31xi32>)
      : tensor<300x4x64xbf16>, tensor<420x2x64xf8E4M3FN>, tensor<420x2x64xf8E4M3FN> -> tensor<300x4x64xbf16>
  return %o : tensor<300x4x64xbf16>
}

// SINGLE-NOT: WRONG
// SINGLE: o {{.*}}(limit
func.func @single(%q: tensor<300x4x64xf32>, %k: tensor<420x2x64xf32>, %v: tensor<420x2x64xf32>, %cu_q: tensor<31xi32>, %cu_k: tensor<31xi32>) -> tensor<300x4x64xf32> {
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) ragged(%cu_q, %cu_k, longest 100, 100 : tensor<31xi32>, tensor<31xi32>)
      : tensor<300x4x64xf32>, tensor<420x2x64xf32>, tensor<420x2x64xf32> -> tensor<300x4x64xf32>
  return %o : tensor<300x4x64xf32>
}
