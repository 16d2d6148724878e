// An annotation that lowering from scf leaves beside a branch becomes its own,
// which the translation to LLVM IR reads.
// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(convert-scf-to-cf,convert-to-llvm,attn-annotate-loops))' | FileCheck %s

// CHECK: #[[$UNROLL:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[$ONCE:.*]] = #llvm.loop_annotation<unroll = #[[$UNROLL]]>

#once = #llvm.loop_annotation<unroll = <disable = true>>
gpu.module @loops {
  // The branch back of the first loop; the second one has no annotation.
  // CHECK-LABEL: llvm.func @loop(
  // CHECK-NOT: loop_annotation
  // CHECK: llvm.add
  // CHECK-NEXT: llvm.br ^{{.*}} {loop_annotation = #[[$ONCE]]}
  // CHECK-NOT: loop_annotation
  llvm.func @loop(%n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      llvm.inline_asm has_side_effects "nop;", "" : () -> ()
    } {llvm.loop_annotation = #once}
    scf.for %i = %c0 to %n step %c1 : i32 {
      llvm.inline_asm has_side_effects "nop;", "" : () -> ()
    }
    llvm.return
  }
  // Both kinds of branch; what is another attribute stays as it is.
  // CHECK-LABEL: llvm.func @branches(
  // CHECK-NEXT: llvm.br ^{{.*}} {loop_annotation = #[[$ONCE]]}
  // CHECK: llvm.cond_br %{{.*}}, ^{{.*}}, ^{{.*}} {loop_annotation = #[[$ONCE]], mark}
  // CHECK: llvm.br ^bb{{[0-9]+}}{{$}}
  // CHECK: llvm.cond_br %{{.*}}, ^bb{{[0-9]+}}, ^bb{{[0-9]+}}{{$}}
  llvm.func @branches(%c: i1) {
    llvm.br ^a {llvm.loop_annotation = #once}
  ^a:
    llvm.cond_br %c, ^a, ^b {llvm.loop_annotation = #once, mark}
  ^b:
    llvm.br ^c
  ^c:
    llvm.cond_br %c, ^c, ^d
  ^d:
    llvm.return
  }
}
