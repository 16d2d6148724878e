// Clauses against the reference of clauses.  Where no kernel takes a clause, the
// kernel of a band is compared with what the clause says, and must not be with
// what it does not say.
// RUN: attn-run --on interpreter --function lists --guard %s | FileCheck %s --check-prefix=LISTS
// RUN: attn-run --on interpreter --function shared --seed 3 %s | FileCheck %s --check-prefix=SHARED
// RUN: attn-run --on interpreter --function causal --reference sees %s | FileCheck %s --check-prefix=SEES
// RUN: attn-run --on interpreter --function sees --reference causal %s | FileCheck %s --check-prefix=DERIVED
// RUN: not attn-run --on interpreter --function causal --reference sees_less %s | FileCheck %s --check-prefix=LESS
// RUN: attn-run --on interpreter --function plain --reference doubled %s | FileCheck %s --check-prefix=DOUBLED
// RUN: not attn-run --on interpreter --function plain --reference softcapped %s | FileCheck %s --check-prefix=CAPPED
// RUN: not attn-run --on interpreter --function plain --reference sunk %s | FileCheck %s --check-prefix=SUNK
// RUN: not attn-run --on interpreter --function ids --reference documents %s | FileCheck %s --check-prefix=DOCUMENTS
// RUN: attn-run --on interpreter --function gradients --reference gradients_that_see %s | FileCheck %s --check-prefix=GRADIENTS
// RUN: not attn-run --on interpreter --function of_bits %s 2>&1 | FileCheck %s --check-prefix=BITS
// RUN: not attn-run --on interpreter --function of_rows --batch 2 --queries 150 %s 2>&1 | FileCheck %s --check-prefix=ROWS

!q = tensor<2x4x150x16xbf16>
!k = tensor<2x2x200x16xbf16>
!lse = tensor<2x4x150xf32>
!pc = tensor<2x4x3xi32>
!pi = tensor<2x4x3x4xi32>
!fc = tensor<1x1x3xi32>
!fi = tensor<1x1x3x4xi32>

// LISTS: problem {{.*}} mask causal, scale 0.25, blocks 64x64
// LISTS: o         2x4x150x16xbf16 {{.*}}(limit 4e-03){{$}}
// LISTS-NEXT: lse  {{.*}}(limit 1e-04){{$}}
// LISTS-NEXT: moved
func.func @lists(%q: !q, %k: !k, %pc: !pc, %pi: !pi, %fc: !fc, %fi: !fi) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k mask(causal)
      blocks(partial %pc, %pi, full %fc, %fi, size 64 x 64 : !pc, !pi, !fc, !fi)
      : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// SHARED: o {{.*}}(limit 4e-03){{$}}
func.func @shared(%q: !q, %k: !k, %fc: !fc, %fi: !fi) -> !q {
  %o = attn.forward %q, %k, %k
      blocks(partial %fc, %fi, size 64 x 64 : !fc, !fi) : !q, !k, !k -> !q
  return %o : !q
}

// DERIVED: kernel {{.*}}_causal_bottom_right
// DERIVED: o         {{.*}}(limit 4e-03){{$}}
func.func @causal(%q: !q, %k: !k) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k mask(causal_bottom_right) : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// SEES: problem {{.*}} mask none, scale 0.25, sees
// SEES: o         {{.*}}(limit 4e-03){{$}}
// SEES-NEXT: lse  {{.*}}(limit 1e-04){{$}}
func.func @sees(%q: !q, %k: !k) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k
      sees (%b, %h, %i, %j, %nq, %nk) {
        %more = arith.subi %nk, %nq : index
        %last = arith.addi %i, %more : index
        %r = arith.cmpi sle, %j, %last : index
        attn.yield %r : i1
      } : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// LESS: o {{.*}}WRONG
func.func @sees_less(%q: !q, %k: !k) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k
      sees (%b, %h, %i, %j, %nq, %nk) {
        %more = arith.subi %nk, %nq : index
        %last = arith.addi %i, %more : index
        %r = arith.cmpi slt, %j, %last : index
        attn.yield %r : i1
      } : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

!s = tensor<4xf32>
func.func @plain(%q: !q, %k: !k, %s: !s) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k scale(0.25) : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// DOUBLED: problem {{.*}}scale 0.125, score
// DOUBLED: o         {{.*}}(limit 4e-03){{$}}
// DOUBLED-NEXT: lse  {{.*}}(limit 1e-04){{$}}
func.func @doubled(%q: !q, %k: !k, %s: !s) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k scale(0.125)
      score (%z : f32, %b, %h, %i, %j, %nq, %nk) {
        %r = arith.addf %z, %z : f32
        attn.yield %r : f32
      } : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// CAPPED: problem {{.*}}captures 1, softcap, alibi
// CAPPED: o {{.*}}WRONG
func.func @softcapped(%q: !q, %k: !k, %s: !s) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k scale(0.25) softcap(2.0) alibi(%s : !s)
      : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

// SUNK: problem {{.*}}sinks
// SUNK: o   {{.*}}WRONG
// SUNK: lse {{.*}}WRONG
func.func @sunk(%q: !q, %k: !k, %s: !s) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %k scale(0.25) sinks(%s : !s)
      : !q, !k, !k -> !q, !lse
  return %o, %lse : !q, !lse
}

!ids = tensor<?xi32>
func.func @ids(%q: !q, %k: !k, %ids: !ids) -> !q {
  %o = attn.forward %q, %k, %k : !q, !k, !k -> !q
  return %o : !q
}
// DOCUMENTS: problem {{.*}}captures 1, document
// DOCUMENTS: o {{.*}}WRONG
func.func @documents(%q: !q, %k: !k, %ids: !ids) -> !q {
  %o = attn.forward %q, %k, %k document(%ids : !ids) : !q, !k, !k -> !q
  return %o : !q
}

func.func @gradients(%do: !q, %q: !q, %k: !k, %o: !q, %lse: !lse) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %k, %o, %lse mask(window<30, 20>)
      : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}
// GRADIENTS: dq {{.*}}(limit 6e-03){{$}}
// GRADIENTS-NEXT: dk {{.*}}(limit 6e-03){{$}}
// GRADIENTS-NEXT: dv {{.*}}(limit 6e-03){{$}}
func.func @gradients_that_see(%do: !q, %q: !q, %k: !k, %o: !q, %lse: !lse) -> (!q, !k, !k) {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %k, %o, %lse
      sees (%b, %h, %i, %j, %nq, %nk) {
        %most = arith.constant 20 : index
        %least = arith.constant -30 : index
        %more = arith.subi %nk, %nq : index
        %middle = arith.addi %i, %more : index
        %d = arith.subi %j, %middle : index
        %x = arith.cmpi sle, %d, %most : index
        %y = arith.cmpi sge, %d, %least : index
        %r = arith.andi %x, %y : i1
        attn.yield %r : i1
      } : !q, !q, !k, !k, !q, !lse -> !q, !k, !k
  return %dq, %dk, %dv : !q, !k, !k
}

!bits = tensor<150x200xi1>
// BITS: error: expects capture 0 of bf16, f16, f32 or integers of 8, 16, 32 or 64 bits, of which random numbers can be drawn, but got 'i1'
func.func @of_bits(%q: !q, %k: !k, %x: !bits) -> !q {
  %o = attn.forward %q, %k, %k captures(%x : !bits)
      sees (%b, %h, %i, %j, %nq, %nk, %y) {
        %r = attn.read %y[%i, %j] : !bits
        attn.yield %r : i1
      } : !q, !k, !k -> !q
  return %o : !q
}

// ROWS: error: expects counts of partial blocks of sizes 2x4x3, which follow from q and k, but got 2x4x2
!open = tensor<?x4x?x16xbf16>
func.func @of_rows(%q: !q, %k: !open, %c: tensor<2x4x2xi32>, %n: tensor<2x4x2x?xi32>) -> !open {
  %o = attn.forward %k, %q, %q
      blocks(partial %c, %n, size 64 x 64 : tensor<2x4x2xi32>, tensor<2x4x2x?xi32>)
      : !open, !q, !q -> !open
  return %o : !open
}
