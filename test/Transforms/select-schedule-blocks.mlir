// Of schedules that walk lists of blocks one is chosen whose tiles divide them.
// RUN: attn-opt %s -attn-select-schedule | FileCheck %s

// CHECK: schedule = #attn.schedule<flash, query = 64, key = {{64|32|128}},
module attributes {attn.machine = #attn.machine<h100_sxm>} {
  func.func @blocks(%q: tensor<2x8x1000x128xbf16>, %k: tensor<2x2x1000x128xbf16>, %v: tensor<2x2x1000x128xbf16>,
                    %counts: tensor<1x1x16xi32>, %list: tensor<1x1x16x8xi32>) -> tensor<2x8x1000x128xbf16> {
    %o = attn.forward %q, %k, %v blocks(partial %counts, %list, size 64 x 128 : tensor<1x1x16xi32>, tensor<1x1x16x8xi32>) mask(causal)
        : tensor<2x8x1000x128xbf16>, tensor<2x2x1000x128xbf16>, tensor<2x2x1000x128xbf16> -> tensor<2x8x1000x128xbf16>
    return %o : tensor<2x8x1000x128xbf16>
  }
}
