// What regions cost is said, and decides: slopes of a soft cap leave no room
// for blocks of 128 x 128, whose gradients would spill.
// RUN: attn-opt %s -attn-attach-machine=machine=h100_sxm -attn-select-schedule=explain -o %t 2> %t.why
// RUN: FileCheck %s < %t
// RUN: FileCheck %s --check-prefix=WHY < %t.why

!t = tensor<1x16x8192x64xbf16>
!l = tensor<1x16x8192xf32>

// CHECK-LABEL: @plain
// CHECK: #attn.schedule<flash_backward, key = 128, query_block = 128
func.func @plain(%do: !t, %q: !t, %k: !t, %v: !t, %o: !t, %l: !l) -> !t {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %l mask(causal) : !t, !t, !t, !t, !t, !l -> !t, !t, !t
  return %dq : !t
}

// CHECK-LABEL: @softcap
// CHECK-NOT: key = 128, query_block = 128
// CHECK: return
// WHY: note: score costs {{[0-9.]+}} instructions a score, 1 functions, {{[0-9.]+}} more for its slope
func.func @softcap(%do: !t, %q: !t, %k: !t, %v: !t, %o: !t, %l: !l) -> !t {
  %dq, %dk, %dv = attn.backward %do, %q, %k, %v, %o, %l mask(causal) softcap(50.0) : !t, !t, !t, !t, !t, !l -> !t, !t, !t
  return %dq : !t
}

// WHY: note: sees costs {{[0-9.]+}} instructions a score of tiles that are cut, along runs
func.func @runs(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.forward %q, %k, %v
      sees (%b, %h, %i, %j, %nq, %nk) {
        %few = arith.constant 64 : index
        %wide = arith.constant 512 : index
        %d = arith.subi %i, %j : index
        %a = math.absi %d : index
        %x = arith.cmpi slt, %j, %few : index
        %y = arith.cmpi sle, %a, %wide : index
        %r = arith.ori %x, %y : i1
        attn.yield %r : i1
      } : !t, !t, !t -> !t
  return %o : !t
}
