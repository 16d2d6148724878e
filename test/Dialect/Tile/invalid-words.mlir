// What words, transposes, images in shared memory and columns of a right factor
// refuse.  A function or kernel is named for what is asked of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @load_by_one_lane(%p: !tile.ptr<f32>, %s: !tile.smem<1x128xf32>, %b: !tile.mbarrier<1>, %i: i32) {
  // expected-error @below {{'tile.load_words' op expects to stand in a role of a single lane}}
  tile.load_words %p[%i] to %s[%i] arrive %b[%i] : <f32> to <1x128xf32>, <1>
  return
}

// -----

tile.kernel @load_one_row(%p: !tile.ptr<f32>, %i: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <2x2x128xf32>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 4 registers 64 single_lane {
      // expected-error @below {{'tile.load_words' op expects a buffer of one row of f32, but got '!tile.smem<2x2x128xf32>'}}
      tile.load_words %p[%i] to %s[%i] arrive %b[%i] : <f32> to <2x2x128xf32>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_numbers(%p: !tile.ptr<f32>, %i: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <16x128xbf16>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 4 registers 64 single_lane {
      // expected-error @below {{'tile.load_words' op expects a buffer of one row of f32, but got '!tile.smem<16x128xbf16>'}}
      tile.load_words %p[%i] to %s[%i] arrive %b[%i] : <f32> to <16x128xbf16>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_from_numbers(%p: !tile.ptr<i32>, %i: i32) attributes {warps = 4 : i32} {
  %s = tile.alloc "s" : <1x128xf32>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 4 registers 64 single_lane {
      // expected-error @below {{'tile.load_words' op expects an array of f32, but got '!tile.ptr<i32>'}}
      tile.load_words %p[%i] to %s[%i] arrive %b[%i] : <i32> to <1x128xf32>, <1>
    }
  }
  tile.return
}

// -----

func.func @add_inside(%p: !tile.ptr<f32>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.add_words' op expects at most the 8192 bytes of a stage of '!tile.smem<2x64x64xbf16, sw128>', but got 8208}}
  tile.add_words %s[%i] to %p[%i] count 2052 : <2x64x64xbf16, sw128> to <f32>
  return
}

// -----

func.func @add_something(%p: !tile.ptr<f32>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.add_words' op expects bytes in multiples of 16, but got 0}}
  tile.add_words %s[%i] to %p[%i] count 0 : <2x64x64xbf16, sw128> to <f32>
  return
}

// -----

func.func @add_pieces(%p: !tile.ptr<f32>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.add_words' op expects bytes in multiples of 16, but got 408}}
  tile.add_words %s[%i] to %p[%i] count 102 : <2x64x64xbf16, sw128> to <f32>
  return
}

// -----

func.func @add_numbers(%p: !tile.ptr<bf16>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.add_words' op expects an array of f32, but got '!tile.ptr<bf16>'}}
  tile.add_words %s[%i] to %p[%i] count 64 : <2x64x64xbf16, sw128> to <bf16>
  return
}

// -----

func.func @store_inside(%p: !tile.ptr<f32>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_words' op expects at most the 8192 bytes of a stage of '!tile.smem<2x64x64xbf16, sw128>', but got 8208}}
  tile.store_words %s[%i] to %p[%i] count 2052 : <2x64x64xbf16, sw128> to <f32>
  return
}

// -----

func.func @store_pieces(%p: !tile.ptr<f32>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_words' op expects bytes in multiples of 16, but got 408}}
  tile.store_words %s[%i] to %p[%i] count 102 : <2x64x64xbf16, sw128> to <f32>
  return
}

// -----

func.func @store_numbers(%p: !tile.ptr<bf16>, %s: !tile.smem<2x64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_words' op expects an array of f32, but got '!tile.ptr<bf16>'}}
  tile.store_words %s[%i] to %p[%i] count 64 : <2x64x64xbf16, sw128> to <bf16>
  return
}

// -----

func.func @image_inside(%x: !tile.frag<16x64xf32, acc>, %s: !tile.smem<2x16x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.put_registers' op expects at most the 2048 bytes of a stage of '!tile.smem<2x16x64xbf16, sw128>', but got 4096}}
  tile.put_registers %x to %s[%i, %i] : !tile.frag<16x64xf32, acc> to <2x16x64xbf16, sw128>
  return
}

// -----

func.func @image_that_is_inside(%s: !tile.smem<2x16x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.get_registers' op expects at most the 2048 bytes of a stage of '!tile.smem<2x16x64xbf16, sw128>', but got 4096}}
  %x = tile.get_registers %s[%i, %i] : <2x16x64xbf16, sw128> -> !tile.frag<16x64xf32, acc>
  return
}

// -----

func.func @image_of_pairs(%s: !tile.smem<2x16x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.put_registers' op expects values with registers in multiples of 2, but got 0}}
  "tile.put_registers"(%s, %i, %i) : (!tile.smem<2x16x64xbf16, sw128>, i32, i32) -> ()
  return
}

// -----

func.func @transposed_factor(%x: !tile.frag<16x64xf32, acc>, %s: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_transposed' op expects a fragment of 16-bit elements in layout lhs, but got '!tile.frag<16x64xf32, acc>'}}
  tile.store_transposed %x to %s[%i, %i, %i] : <16x64xf32, acc> to <64x64xbf16, sw128>
  return
}

// -----

func.func @transposed_bytes(%x: !tile.frag<16x64xf8E4M3FN, lhs>, %s: !tile.smem<64x64xf8E4M3FN, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_transposed' op expects a fragment of 16-bit elements in layout lhs, but got '!tile.frag<16x64xf8E4M3FN, lhs>'}}
  tile.store_transposed %x to %s[%i, %i, %i] : <16x64xf8E4M3FN, lhs> to <64x64xf8E4M3FN, sw128>
  return
}

// -----

func.func @transposed_element(%x: !tile.frag<16x64xf16, lhs>, %s: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_transposed' op expects a buffer of 'f16', but got '!tile.smem<64x64xbf16, sw128>'}}
  tile.store_transposed %x to %s[%i, %i, %i] : <16x64xf16, lhs> to <64x64xbf16, sw128>
  return
}

// -----

func.func @transposed_inside(%x: !tile.frag<16x64xbf16, lhs>, %s: !tile.smem<32x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_transposed' op expects a fragment whose transpose is inside '!tile.smem<32x64xbf16, sw128>', but got '!tile.frag<16x64xbf16, lhs>'}}
  tile.store_transposed %x to %s[%i, %i, %i] : <16x64xbf16, lhs> to <32x64xbf16, sw128>
  return
}

// -----

func.func @transposed_columns(%x: !tile.frag<64x16xbf16, lhs>, %s: !tile.smem<32x32xbf16>, %i: i32) {
  // expected-error @below {{'tile.store_transposed' op expects a fragment whose transpose is inside '!tile.smem<32x32xbf16>', but got '!tile.frag<64x16xbf16, lhs>'}}
  tile.store_transposed %x to %s[%i, %i, %i] : <64x16xbf16, lhs> to <32x32xbf16>
  return
}

// -----

func.func @column_of_rows(%a: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects no column with `transpose`}}
  %p = tile.wgmma %a[%i, %i], %a[%i, %i] transpose : !tile.smem<64x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @column_of_panels(%a: !tile.smem<64x128xbf16, sw128>, %i: i32) {
  %c = arith.constant 32 : i32
  // expected-error @below {{'tile.wgmma' op expects a column in steps of 64 from 0 to 64, but got 32}}
  %p = tile.wgmma %a[%i, %i], %a[%i, %c] : !tile.smem<64x128xbf16, sw128>, <64x128xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @column_inside(%a: !tile.smem<64x128xbf16, sw128>, %i: i32) {
  %c = arith.constant 128 : i32
  // expected-error @below {{'tile.wgmma' op expects a column in steps of 64 from 0 to 64, but got 128}}
  %p = tile.wgmma %a[%i, %i], %a[%i, %c] : !tile.smem<64x128xbf16, sw128>, <64x128xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @number_of_i32(%p: !tile.ptr<f32>, %i: i32) -> i32 {
  // expected-error @below {{'tile.load_number' op expects an array of i32 or i64, but got '!tile.ptr<f32>'}}
  %n = tile.load_number %p[%i] : <f32>, i32
  return %n : i32
}
