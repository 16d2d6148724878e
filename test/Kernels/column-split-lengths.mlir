// column_split on a cache: batch entries that use some of their keys, whole
// walks and walks in parts, and values that are columns of keys, against fp64.
// The pipeline compares the bytes with the plan's.
// RUN: attn-run %s --on interpreter --function whole | FileCheck %s
// RUN: attn-run %s --on interpreter --function parts | FileCheck %s
// RUN: attn-run %s --on interpreter --function latent | FileCheck %s
// RUN: attn-run %s --on interpreter --function without_lengths | FileCheck %s

// CHECK-NOT: WRONG
// CHECK: moved

func.func @whole(%q: tensor<3x2x40x72xbf16>, %k: tensor<3x1x700x72xbf16>, %v: tensor<3x1x700x136xbf16>, %n: tensor<3xi32>) -> (tensor<3x2x40x136xbf16>, tensor<3x2x40xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) lengths(k %n : tensor<3xi32>) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 1, slots = 6, resident = 2>} : tensor<3x2x40x72xbf16>, tensor<3x1x700x72xbf16>, tensor<3x1x700x136xbf16> -> tensor<3x2x40x136xbf16>, tensor<3x2x40xf32>
  return %o, %l : tensor<3x2x40x136xbf16>, tensor<3x2x40xf32>
}

func.func @parts(%q: tensor<3x2x40x72xf16>, %k: tensor<3x1x700x72xf16>, %v: tensor<3x1x700x136xf16>, %n: tensor<3xi64>) -> (tensor<3x2x40x136xf16>, tensor<3x2x40xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(window<300, 5>) lengths(k %n : tensor<3xi64>) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 1, slots = 4, parts = 2, resident = 1>} : tensor<3x2x40x72xf16>, tensor<3x1x700x72xf16>, tensor<3x1x700x136xf16> -> tensor<3x2x40x136xf16>, tensor<3x2x40xf32>
  return %o, %l : tensor<3x2x40x136xf16>, tensor<3x2x40xf32>
}

// 128 query heads are the rows of one tile.
func.func @latent(%q: tensor<2x128x1x576xbf16>, %k: tensor<2x1x600x576xbf16>, %n: tensor<2xi32>) -> tensor<2x128x1x512xbf16> {
  %o = attn.forward %q, %k mask(causal_bottom_right) values(keys, first 512) lengths(k %n : tensor<2xi32>) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 1, slots = 6, parts = 3, resident = 8>} : tensor<2x128x1x576xbf16>, tensor<2x1x600x576xbf16> -> tensor<2x128x1x512xbf16>
  return %o : tensor<2x128x1x512xbf16>
}

// More parts than strips, and rows that see nothing.
func.func @without_lengths(%q: tensor<1x2x300x64xbf16>, %k: tensor<1x2x280x64xbf16>, %v: tensor<1x2x280x72xbf16>) -> (tensor<1x2x300x72xbf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k, %v mask(causal_bottom_right) {schedule = #attn.schedule<column_split, query = 128, key = 128, group = 2, cluster = 1, slots = 6, parts = 3, resident = 1>} : tensor<1x2x300x64xbf16>, tensor<1x2x280x64xbf16>, tensor<1x2x280x72xbf16> -> tensor<1x2x300x72xbf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x72xbf16>, tensor<1x2x300xf32>
}
