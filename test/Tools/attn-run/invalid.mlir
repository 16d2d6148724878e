// Every wrong use gives one located error and exit status 1.
// RUN: not attn-run --on interpreter %s 2>&1 | FileCheck %s --check-prefix=WHICH
// RUN: not attn-run --on interpreter --function g %s 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not attn-run --on interpreter --function open %s 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not attn-run --on interpreter --function add %s 2>&1 | FileCheck %s --check-prefix=ADD
// RUN: not attn-run --on interpreter --function scalar %s 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not attn-run --on interpreter --function chain %s 2>&1 | FileCheck %s --check-prefix=CHAIN
// RUN: not attn-run --on interpreter --function gradient_of_result %s 2>&1 | FileCheck %s --check-prefix=GRADIENT
// RUN: not attn-run --on interpreter --function captures %s 2>&1 | FileCheck %s --check-prefix=CAPTURES
// RUN: not attn-run --on interpreter --function sizes --queries 4 %s 2>&1 | FileCheck %s --check-prefix=SIZES
// RUN: not attn-run --on interpreter --function open --batch -1 %s 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: not attn-run --on interpreter --machine h1000 %s 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not attn-run --on interpreter %t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not attn-run --on interpreter --repeat -3 %s 2>&1 | FileCheck %s --check-prefix=REPEAT

// RUN: not attn-run --on interpreter --function fixed --batch 3 %s 2>&1 | FileCheck %s --check-prefix=FIXED
// RUN: not attn-run --on interpreter --function fixed --keys 7 %s 2>&1 | FileCheck %s --check-prefix=KEYS
// RUN: attn-run --on interpreter --function fixed --batch 2 --queries 5 --keys 6 --progress %s 2>&1 | FileCheck %s --check-prefix=PROGRESS

// WHICH: error: expects one function, but got 8; name one with --function
// WHICH: note: functions: open, add, scalar, chain, gradient_of_result, captures, sizes, fixed
// NONE: error: expects a function 'g', but there is none
// BATCH: attn-run: error: --batch expects 0 to 1073741823, but got -1
// MACHINE: attn-run: error: expects a known machine, but got 'h1000'; known machines: gtx_1060, t4,
// ABSENT: attn-run: error: cannot open input file
// REPEAT: attn-run: error: --repeat expects 0 or more, but got -3

!q = memref<?x2x?x16xf16>

// OPEN: invalid.mlir:[[#@LINE+2]]:3: error: expects a value for dimension 0 of argument 0, which is dynamic: give --batch
func.func @open(%q: !q, %k: !q, %v: !q, %o: !q) {
  attn.forward %q, %k, %v outs(%o : !q) : !q, !q, !q
  return
}

// ADD: invalid.mlir:[[#@LINE+3]]:8: error: expects attn.forward, attn.backward or merges on arguments of the function, for which there is a reference, but got 'arith.addf'
func.func @add(%a: memref<1xf32>, %b: memref<1xf32>) {
  %c = arith.constant 1.0 : f32
  %s = arith.addf %c, %c : f32
  return
}

// SCALAR: error: expects tensors or memrefs as arguments, but argument 0 is 'index'
func.func @scalar(%a: index) {
  return
}

!t = tensor<1x1x4x16xf16>
// CHAIN: error: expects q to be an argument of the function, so that there is a reference
func.func @chain(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.forward %q, %k, %v : !t, !t, !t -> !t
  %p = attn.forward %o, %k, %v : !t, !t, !t -> !t
  return %p : !t
}

// GRADIENT: error: expects do to be an argument of the function, so that there is a reference
func.func @gradient_of_result(%q: !t) -> !t {
  %o, %lse = attn.forward %q, %q, %q : !t, !t, !t -> !t, tensor<1x1x4xf32>
  %dq, %dk, %dv = attn.backward %o, %q, %q, %q, %o, %lse : !t, !t, !t, !t, !t, tensor<1x1x4xf32> -> !t, !t, !t
  return %dq : !t
}

// CAPTURES: error: expects gradients of q, k and v, for which there is a reference, but got gradients(..) of captures
!sink = tensor<1xf32>
!sum = tensor<1x1x4xf32>
func.func @captures(%q: !t, %lse: !sum, %s: !sink) -> !t {
  %dq, %dk, %dv, %ds = attn.backward %q, %q, %q, %q, %q, %lse sinks(%s : !sink) gradients(%s)
      : !t, !t, !t, !t, !t, !sum -> !t, !t, !t, !sink
  return %dq : !t
}

!rows = tensor<1x1x?x16xf16>
!sums = tensor<1x1x?xf32>
// SIZES: error: expects do of sizes 1x1x4x16, which follow from q and k, but got 1x1x5x16
func.func @sizes(%do: tensor<1x1x5x16xf16>, %q: !rows, %o: !rows, %lse: !sums) -> !rows {
  %dq, %dk, %dv = attn.backward %do, %q, %q, %q, %o, %lse : tensor<1x1x5x16xf16>, !rows, !rows, !rows, !rows, !sums -> !rows, !rows, !rows
  return %dq : !rows
}

// FIXED: invalid.mlir:[[#@LINE+6]]:1: error: expects --batch where a type leaves that size open, but got 3 for 2
// KEYS: error: expects --keys where a type leaves that size open, but got 7 for 6
// PROGRESS: attn-run: compiling
// PROGRESS: attn-run: running on the interpreter
// PROGRESS-NEXT: attn-run: comparing with fp64
// PROGRESS: function fixed
func.func @fixed(%q: memref<2x2x5x16xf16>, %k: memref<2x2x6x16xf16>, %o: memref<2x2x5x16xf16>) {
  attn.forward %q, %k, %k outs(%o : memref<2x2x5x16xf16>) : memref<2x2x5x16xf16>, memref<2x2x6x16xf16>, memref<2x2x6x16xf16>
  return
}
