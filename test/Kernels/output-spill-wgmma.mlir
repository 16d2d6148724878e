// output_spill on wgmma, run block by block: every kernel against fp64, its
// barriers checked, its bytes counted.  The pipeline compares the bytes with the
// plan's.
// RUN: attn-run %s --on interpreter --function one_strip | FileCheck %s
// RUN: attn-run %s --on interpreter --function ragged | FileCheck %s
// RUN: attn-run %s --on interpreter --function masked_rows | FileCheck %s
// RUN: attn-run %s --on interpreter --function several_strips | FileCheck %s
// RUN: attn-run %s --on interpreter --function window | FileCheck %s
// RUN: attn-run %s --on interpreter --function short_ring | FileCheck %s

// CHECK: kernel {{.*}}output_spill_wgmma
// CHECK-NOT: WRONG
// CHECK: moved

// Of two parts, an odd number of panels.
func.func @one_strip(%q: tensor<1x1x512x320xbf16>, %k: tensor<1x1x512x320xbf16>, %v: tensor<1x1x512x320xbf16>) -> (tensor<1x1x512x320xbf16>, tensor<1x1x512xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 12>} : tensor<1x1x512x320xbf16>, tensor<1x1x512x320xbf16>, tensor<1x1x512x320xbf16> -> tensor<1x1x512x320xbf16>, tensor<1x1x512xf32>
  return %o, %l : tensor<1x1x512x320xbf16>, tensor<1x1x512xf32>
}

// Rows, keys and columns that no tile divides, heads that share keys.
func.func @ragged(%q: tensor<1x2x300x320xf16>, %k: tensor<1x1x270x320xf16>, %v: tensor<1x1x270x264xf16>) -> (tensor<1x2x300x264xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 12>} : tensor<1x2x300x320xf16>, tensor<1x1x270x320xf16>, tensor<1x1x270x264xf16> -> tensor<1x2x300x264xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x264xf16>, tensor<1x2x300xf32>
}

// The first rows see no key.
func.func @masked_rows(%q: tensor<1x1x300x640xbf16>, %k: tensor<1x1x100x640xbf16>, %v: tensor<1x1x100x640xbf16>) -> (tensor<1x1x300x640xbf16>, tensor<1x1x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 8>} : tensor<1x1x300x640xbf16>, tensor<1x1x100x640xbf16>, tensor<1x1x100x640xbf16> -> tensor<1x1x300x640xbf16>, tensor<1x1x300xf32>
  return %o, %l : tensor<1x1x300x640xbf16>, tensor<1x1x300xf32>
}

// The output waits between strips.
func.func @several_strips(%q: tensor<1x1x300x136xbf16>, %k: tensor<1x1x1300x136xbf16>, %v: tensor<1x1x1300x200xbf16>) -> (tensor<1x1x300x200xbf16>, tensor<1x1x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 128, slots = 6>} : tensor<1x1x300x136xbf16>, tensor<1x1x1300x136xbf16>, tensor<1x1x1300x200xbf16> -> tensor<1x1x300x200xbf16>, tensor<1x1x300xf32>
  return %o, %l : tensor<1x1x300x200xbf16>, tensor<1x1x300xf32>
}

// Strips and parts of which some rows see the end only.
func.func @window(%q: tensor<1x1x300x72xbf16>, %k: tensor<1x1x1300x72xbf16>, %v: tensor<1x1x1300x40xbf16>) -> tensor<1x1x300x40xbf16> {
  %o = attn.forward %q, %k, %v mask(window<100, 700>) {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 256, slots = 6>} : tensor<1x1x300x72xbf16>, tensor<1x1x1300x72xbf16>, tensor<1x1x1300x40xbf16> -> tensor<1x1x300x40xbf16>
  return %o : tensor<1x1x300x40xbf16>
}

// As an invented machine of 99 KiB has it.
func.func @short_ring(%q: tensor<1x1x260x1032xf16>, %k: tensor<1x1x300x1032xf16>, %v: tensor<1x1x300x1032xf16>) -> tensor<1x1x260x1032xf16> {
  %o = attn.forward %q, %k, %v {schedule = #attn.schedule<output_spill, query = 128, key = 512, column = 128, part = 128, slots = 4>} : tensor<1x1x260x1032xf16>, tensor<1x1x300x1032xf16>, tensor<1x1x300x1032xf16> -> tensor<1x1x260x1032xf16>
  return %o : tensor<1x1x260x1032xf16>
}
