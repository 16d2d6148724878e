// Lists of blocks that kernels make, compared with the host's to the last
// number, and attention on them in the same function.
// RUN: attn-run --on interpreter --function lists %s | FileCheck %s --check-prefix=LISTS
// RUN: attn-run --on interpreter --function by_keys --guard %s | FileCheck %s --check-prefix=KEYS
// RUN: attn-run --on interpreter --function attention %s | FileCheck %s --check-prefix=ATTENTION

!c = tensor<2x3x3xi32>
!n = tensor<2x3x3x11xi32>
!ids = tensor<2x700xi32>

// LISTS: problem lists of blocks 128x64, batch 2, heads 3, queries 300, keys 700, captures 1
// LISTS-NOT: WRONG
// LISTS: partial_counts 2x3x3xi32 {{.*}}(limit 0e+00){{$}}
// LISTS-NEXT: partial_blocks 2x3x3x11xi32
// LISTS-NEXT: full_counts
// LISTS-NEXT: full_blocks
// LISTS-NEXT: moved
func.func @lists(%ids: !ids) -> (!c, !n, !c, !n) {
  %nq = arith.constant 300 : index
  %nk = arith.constant 700 : index
  %pc, %pi, %fc, %fi = attn.block_lists queries(%nq) keys(%nk) batch(2) heads(3)
      size 128 x 64 captures(%ids : !ids)
      sees (%b, %h, %i, %j, %n, %m, %x) {
        %y = attn.read %x[%b, %i] : !ids
        %z = attn.read %x[%b, %j] : !ids
        %k = arith.constant 200 : index
        %w = arith.muli %h, %k : index
        %d = arith.subi %j, %i : index
        %far = arith.cmpi sgt, %d, %w : index
        %same = arith.cmpi eq, %y, %z : i32
        %r = arith.ori %far, %same : i1
        attn.yield %r : i1
      } : !c, !n, !c, !n
  return %pc, %pi, %fc, %fi : !c, !n, !c, !n
}

// KEYS: problem lists of blocks by keys
// KEYS-NOT: WRONG
// KEYS: partial_counts 2x3x40xi32
// KEYS: full_blocks 2x3x40x70xi32
!cq = tensor<2x3x70xi32>
!nq = tensor<2x3x70x40xi32>
!ck = tensor<2x3x40xi32>
!nk = tensor<2x3x40x70xi32>
func.func @by_keys(%pc: !cq, %pi: !nq, %fc: !cq, %fi: !nq) -> (!ck, !nk, !ck, !nk) {
  %a, %b, %c, %d = attn.transpose_blocks %pc, %pi, %fc, %fi
      : !cq, !nq, !cq, !nq -> !ck, !nk, !ck, !nk
  return %a, %b, %c, %d : !ck, !nk, !ck, !nk
}

// ATTENTION: o {{.*}}(limit 4e-03){{$}}
!q = tensor<1x2x150x16xbf16>
!k = tensor<1x2x200x16xbf16>
!one = tensor<200xi32>
!c1 = tensor<1x1x3xi32>
!n1 = tensor<1x1x3x4xi32>
func.func @attention(%q: !q, %k: !k, %ids: !one) -> !q {
  %n = arith.constant 150 : index
  %m = arith.constant 200 : index
  %pc, %pi, %fc, %fi = attn.block_lists queries(%n) keys(%m) batch(1) heads(1)
      size 64 x 64 captures(%ids : !one)
      sees (%b, %h, %i, %j, %nq, %nk, %x) {
        %y = attn.read %x[%i] : !one
        %z = attn.read %x[%j] : !one
        %r = arith.cmpi eq, %y, %z : i32
        attn.yield %r : i1
      } : !c1, !n1, !c1, !n1
  %o = attn.forward %q, %k, %k document(%ids : !one)
      blocks(partial %pc, %pi, full %fc, %fi, size 64 x 64 : !c1, !n1, !c1, !n1)
      : !q, !k, !k -> !q
  return %o : !q
}
