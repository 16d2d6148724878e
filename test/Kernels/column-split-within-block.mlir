// column_split within a block: values are the first columns of keys, which lie
// in shared memory once for both products.  Against fp64; the pipeline compares
// the bytes with the plan's.
// RUN: attn-run %s --on interpreter --function latent | FileCheck %s
// RUN: attn-run %s --on interpreter --function lengths | FileCheck %s
// RUN: attn-run %s --on interpreter --function narrow | FileCheck %s
// RUN: attn-run %s --on interpreter --function parts | FileCheck %s
// RUN: attn-run %s --on interpreter --function ragged_columns | FileCheck %s
// RUN: attn-run %s --on interpreter --function no_columns_behind | FileCheck %s

// CHECK-NOT: WRONG
// CHECK: moved

// 128 query heads are the rows of two tiles; the last strip has keys for one
// warpgroup only.
func.func @latent(%q: tensor<2x128x1x576xbf16>, %k: tensor<2x1x310x576xbf16>) -> (tensor<2x128x1x512xbf16>, tensor<2x128x1xf32>) {
  %o, %l = attn.forward %q, %k values(keys, first 512) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 1, late = 1, prefetch = 1>} : tensor<2x128x1x576xbf16>, tensor<2x1x310x576xbf16> -> tensor<2x128x1x512xbf16>, tensor<2x128x1xf32>
  return %o, %l : tensor<2x128x1x512xbf16>, tensor<2x128x1xf32>
}

func.func @lengths(%q: tensor<3x64x2x576xbf16>, %k: tensor<3x1x400x576xbf16>, %n: tensor<3xi32>) -> (tensor<3x64x2x512xbf16>, tensor<3x64x2xf32>) {
  %o, %l = attn.forward %q, %k mask(causal_bottom_right) values(keys, first 512) lengths(k %n : tensor<3xi32>) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 1, late = 0, prefetch = 1>} : tensor<3x64x2x576xbf16>, tensor<3x1x400x576xbf16> -> tensor<3x64x2x512xbf16>, tensor<3x64x2xf32>
  return %o, %l : tensor<3x64x2x512xbf16>, tensor<3x64x2xf32>
}

func.func @narrow(%q: tensor<3x16x2x320xf16>, %k: tensor<3x1x192x320xf16>, %n: tensor<3xi64>) -> (tensor<3x16x2x256xf16>, tensor<3x16x2xf32>) {
  %o, %l = attn.forward %q, %k mask(causal_bottom_right) values(keys, first 256) lengths(k %n : tensor<3xi64>) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 2, late = 2, prefetch = 0>} : tensor<3x16x2x320xf16>, tensor<3x1x192x320xf16> -> tensor<3x16x2x256xf16>, tensor<3x16x2xf32>
  return %o, %l : tensor<3x16x2x256xf16>, tensor<3x16x2xf32>
}

// More parts than strips of some sequences.
func.func @parts(%q: tensor<3x16x3x320xbf16>, %k: tensor<3x1x600x320xbf16>, %n: tensor<3xi32>) -> (tensor<3x16x3x256xbf16>, tensor<3x16x3xf32>) {
  %o, %l = attn.forward %q, %k mask(window<300, 5>) values(keys, first 256) lengths(k %n : tensor<3xi32>) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 1, parts = 3, late = 1, prefetch = 1>} : tensor<3x16x3x320xbf16>, tensor<3x1x600x320xbf16> -> tensor<3x16x3x256xbf16>, tensor<3x16x3xf32>
  return %o, %l : tensor<3x16x3x256xbf16>, tensor<3x16x3xf32>
}

// Rows that see nothing, several tiles of a head, and columns of K that fill no
// step of a product.
func.func @ragged_columns(%q: tensor<1x2x300x136xf16>, %k: tensor<1x2x280x136xf16>) -> (tensor<1x2x300x128xf16>, tensor<1x2x300xf32>) {
  %o, %l = attn.forward %q, %k mask(causal_bottom_right) values(keys, first 128) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 2, late = 0, prefetch = 0>} : tensor<1x2x300x136xf16>, tensor<1x2x280x136xf16> -> tensor<1x2x300x128xf16>, tensor<1x2x300xf32>
  return %o, %l : tensor<1x2x300x128xf16>, tensor<1x2x300xf32>
}

func.func @no_columns_behind(%q: tensor<2x4x70x128xbf16>, %k: tensor<2x2x900x128xbf16>) -> tensor<2x4x70x128xbf16> {
  %o = attn.forward %q, %k values(keys, first 128) {schedule = #attn.schedule<column_split, query = 64, key = 128, warpgroups = 2, stages = 1, late = 2, prefetch = 1>} : tensor<2x4x70x128xbf16>, tensor<2x2x900x128xbf16> -> tensor<2x4x70x128xbf16>
  return %o : tensor<2x4x70x128xbf16>
}
