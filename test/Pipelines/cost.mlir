// An op from text to a cubin costs little memory and time, also where tiles are
// large; and the script that measures fails when a bound is passed.
// REQUIRES: ptxas
// UNSUPPORTED: asan
// RUN: %python %S/Inputs/cost.py 500 3 %build/bin/attn-opt %s -attn-to-binary=machine=h100_sxm
// RUN: %python %S/Inputs/cost.py 500 3 %build/bin/attn-opt %s -attn-to-binary=machine=a100_80g
// RUN: not %python %S/Inputs/cost.py 1 3 %build/bin/attn-opt %s -attn-to-binary | FileCheck %s --check-prefix=MEMORY
// RUN: not %python %S/Inputs/cost.py 500 0 %build/bin/attn-opt %s -attn-to-binary | FileCheck %s --check-prefix=TIME
// RUN: not %python %S/Inputs/cost.py 500 3 %build/bin/attn-opt %s -no-such-option | FileCheck %s --check-prefix=STATUS
// MEMORY: status 0
// MEMORY-NEXT: expects at most 1 MB, but needs
// TIME: status 0
// TIME-NEXT: expects at most 0 s, but needs
// STATUS: status 1
func.func @f(%q: tensor<2x16x4096x128xbf16>) -> (tensor<2x16x4096x128xbf16>, tensor<2x16x4096xf32>) {
  %o:2 = attn.forward %q, %q, %q mask(causal) : tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16>, tensor<2x16x4096x128xbf16> -> tensor<2x16x4096x128xbf16>, tensor<2x16x4096xf32>
  return %o#0, %o#1 : tensor<2x16x4096x128xbf16>, tensor<2x16x4096xf32>
}
