// What TMA, wgmma, transposes and launches refuse.  A function or kernel is
// named for what is asked of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

tile.kernel @load_by_one_lane(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 {
  // expected-error @below {{'tile.tma_load' op expects to stand in a role of a single lane}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x64xbf16> to <64x64xbf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_layout(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xbf16>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load' op expects a buffer in layout sw128, but got '!tile.smem<64x64xbf16>'}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x64xbf16> to <64x64xbf16>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_element(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load' op expects a buffer of 'bf16', but got '!tile.smem<64x64xf16, sw128>'}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x64xbf16> to <64x64xf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_rows(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <96x64xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load' op expects a buffer for boxes of 64 x 64, but got '!tile.smem<96x64xbf16, sw128>'}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x64xbf16> to <96x64xbf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_fewer_rows(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <32x64xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load' op expects a buffer for boxes of 64 x 64, but got '!tile.smem<32x64xbf16, sw128>'}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x64xbf16> to <32x64xbf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @load_columns(%m: !tile.tensor_map<64x72xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load' op expects a buffer for boxes of 64 x 72, but got '!tile.smem<64x64xbf16, sw128>'}}
      tile.tma_load %m[%c0, %c0, %c0] to %s[%c0] arrive %b[%c0] : <64x72xbf16> to <64x64xbf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @store_layout(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xbf16>
  // expected-error @below {{'tile.tma_store' op expects a buffer in layout sw128, but got '!tile.smem<64x64xbf16>'}}
  tile.tma_store %s[%c0] to %m[%c0, %c0, %c0, %c0] : <64x64xbf16> to <64x64xbf16>
  tile.return
}

// -----

tile.kernel @store_element(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <64x64xf16, sw128>
  // expected-error @below {{'tile.tma_store' op expects a buffer of 'bf16', but got '!tile.smem<64x64xf16, sw128>'}}
  tile.tma_store %s[%c0] to %m[%c0, %c0, %c0, %c0] : <64x64xf16, sw128> to <64x64xbf16>
  tile.return
}

// -----

tile.kernel @store_rows(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %s = tile.alloc "s" : <32x64xbf16, sw128>
  // expected-error @below {{'tile.tma_store' op expects a buffer for boxes of 64 rows, but got '!tile.smem<32x64xbf16, sw128>'}}
  tile.tma_store %s[%c0] to %m[%c0, %c0, %c0, %c0] : <32x64xbf16, sw128> to <64x64xbf16>
  tile.return
}

// -----

tile.kernel @store_column(%m: !tile.tensor_map<64x128xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  // expected-error @below {{'tile.tma_store' op expects a column in steps of 64 below 128, but got 32}}
  tile.tma_store %s[%c0] to %m[%c0, %c0, %c0, %c32] : <64x64xbf16, sw128> to <64x128xbf16>
  tile.return
}

// -----

tile.kernel @store_column_inside(%m: !tile.tensor_map<64x128xbf16>) attributes {warps = 8 : i32} {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %s = tile.alloc "s" : <64x64xbf16, sw128>
  // expected-error @below {{'tile.tma_store' op expects a column in steps of 64 below 128, but got 128}}
  tile.tma_store %s[%c0] to %m[%c0, %c0, %c0, %c128] : <64x64xbf16, sw128> to <64x128xbf16>
  tile.return
}

// -----

func.func @wgmma_transposed(%a: !tile.smem<2x128x64xbf16, sw128>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects the transpose of a left factor of 64 rows of 'bf16' of 16 bits in layout sw128, but got '!tile.smem<2x128x64xbf16, sw128>'}}
  %p = tile.wgmma %a[%i, %i] transpose, %b[%i] : !tile.smem<2x128x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_layout(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a right factor in layout sw128, but got '!tile.smem<64x64xbf16>'}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_bytes_transposed(%a: !tile.frag<16x64xf8E4M3FN, lhs>, %b: !tile.smem<64x64xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects `transpose` for elements of 8 bits}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xf8E4M3FN, lhs>, <64x64xf8E4M3FN, sw128_paired> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_registers_by_pairs(%a: !tile.frag<16x64xf8E4M3FN, lhs>, %b: !tile.smem<64x64xf8E4M3FN, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a right factor in layout sw128_paired, but got '!tile.smem<64x64xf8E4M3FN, sw128>'}}
  %p = tile.wgmma %a, %b[%i] transpose : !tile.frag<16x64xf8E4M3FN, lhs>, <64x64xf8E4M3FN, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_pairs_by_registers(%a: !tile.smem<64x64xf8E4M3FN, sw128>, %b: !tile.smem<64x64xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a right factor in layout sw128, but got '!tile.smem<64x64xf8E4M3FN, sw128_paired>'}}
  %p = tile.wgmma %a[%i, %i], %b[%i] transpose : !tile.smem<64x64xf8E4M3FN, sw128>, <64x64xf8E4M3FN, sw128_paired> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_left_factor_as_it_is(%a: !tile.smem<64x64xf8E4M3FN, sw128_paired>, %b: !tile.smem<64x64xf8E4M3FN, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a left factor of 64 rows or a multiple and 64 columns of 'f8E4M3FN' in layout sw128, but got '!tile.smem<64x64xf8E4M3FN, sw128_paired>'}}
  %p = tile.wgmma %a[%i, %i], %b[%i] transpose : !tile.smem<64x64xf8E4M3FN, sw128_paired>, <64x64xf8E4M3FN, sw128> -> <16x64xf32>
  return
}

// -----

func.func @transpose_source(%a: !tile.smem<64x64xbf16, sw128>, %b: !tile.smem<64x64xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.transpose' op expects a source of 8-bit elements in layout sw128, but got '!tile.smem<64x64xbf16, sw128>'}}
  tile.transpose %a[%i, %i] to %b[%i] : <64x64xbf16, sw128> to <64x64xf8E4M3FN, sw128_paired>
  return
}

// -----

func.func @transpose_strips(%a: !tile.smem<48x64xf8E4M3FN, sw128>, %b: !tile.smem<64x48xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.transpose' op expects rows in multiples of 32, but got '!tile.smem<48x64xf8E4M3FN, sw128>'}}
  tile.transpose %a[%i, %i] to %b[%i] : <48x64xf8E4M3FN, sw128> to <64x48xf8E4M3FN, sw128_paired>
  return
}

// -----

func.func @transpose_target(%a: !tile.smem<64x32xf8E4M3FN, sw128>, %b: !tile.smem<64x32xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.transpose' op expects a target of 32 x 64 'f8E4M3FN' in layout sw128_paired, but got '!tile.smem<64x32xf8E4M3FN, sw128_paired>'}}
  tile.transpose %a[%i, %i] to %b[%i] : <64x32xf8E4M3FN, sw128> to <64x32xf8E4M3FN, sw128_paired>
  return
}

// -----

func.func @bytes_by_ldmatrix(%a: !tile.smem<64x64xf8E4M3FN, sw128>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects a buffer of 16-bit or 32-bit elements, but got '!tile.smem<64x64xf8E4M3FN, sw128>'}}
  %f = tile.load_matrix %a[%i, %i, %i] : <64x64xf8E4M3FN, sw128> -> <16x32xf8E4M3FN, lhs>
  return
}

// -----

func.func @bytes_by_stmatrix(%f: !tile.frag<16x32xf32, acc>, %a: !tile.smem<64x64xf8E4M3FN, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_matrix' op expects a buffer of 16-bit or 32-bit elements, but got '!tile.smem<64x64xf8E4M3FN, sw128>'}}
  tile.store_matrix %f to %a[%i] : <16x32xf32, acc> to <64x64xf8E4M3FN, sw128>
  return
}

// -----

func.func @wgmma_steps(%a: !tile.frag<16x64xf8E4M3FN, lhs>, %b: !tile.smem<64x48xf8E4M3FN, sw128_paired>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a contracted extent in multiples of 32, but got 48}}
  %p = tile.wgmma %a, %b[%i] transpose : !tile.frag<16x64xf8E4M3FN, lhs>, <64x48xf8E4M3FN, sw128_paired> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_columns(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a product of 64 columns, but got '!tile.pending<16x72xf32>'}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x72xf32>
  return
}

// -----

func.func @wgmma_all_columns_of_a_transpose(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a product of 64 columns, but got '!tile.pending<16x56xf32>'}}
  %p = tile.wgmma %a, %b[%i] transpose : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x56xf32>
  return
}

// -----

func.func @wgmma_accumulator(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %c: !tile.frag<16x32xf32, acc>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects an accumulator of the shape of '!tile.pending<16x64xf32>', but got '!tile.frag<16x32xf32, acc>'}}
  %p = tile.wgmma %a, %b[%i] acc(%c : !tile.frag<16x32xf32, acc>) : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_place_of_registers(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects no place for a left factor in registers}}
  %p = tile.wgmma %a[%i, %i], %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_place_of_memory(%a: !tile.smem<64x64xbf16, sw128>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects stage and row of the left factor}}
  %p = tile.wgmma %a, %b[%i] : !tile.smem<64x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_left_fragment(%a: !tile.frag<16x32xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a left factor of 16 x 64 'bf16' in layout lhs, but got '!tile.frag<16x32xbf16, lhs>'}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x32xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_left_element(%a: !tile.frag<16x64xf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a left factor of 16 x 64 'bf16' in layout lhs, but got '!tile.frag<16x64xf16, lhs>'}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_left_rows(%a: !tile.smem<32x64xbf16, sw128>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a left factor of 64 rows or a multiple and 64 columns of 'bf16' in layout sw128, but got '!tile.smem<32x64xbf16, sw128>'}}
  %p = tile.wgmma %a[%i, %i], %b[%i] : !tile.smem<32x64xbf16, sw128>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wgmma_left_layout(%a: !tile.smem<64x64xbf16>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects a left factor of 64 rows or a multiple and 64 columns of 'bf16' in layout sw128, but got '!tile.smem<64x64xbf16>'}}
  %p = tile.wgmma %a[%i, %i], %b[%i] : !tile.smem<64x64xbf16>, <64x64xbf16, sw128> -> <16x64xf32>
  return
}

// -----

func.func @wait_gives_accumulators(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  // expected-error @below {{'tile.wgmma_wait' op expects the accumulator of '!tile.pending<16x64xf32>', but got '!tile.frag<16x32xf32, acc>'}}
  %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x32xf32, acc>
  return
}

// -----

func.func @wait_in_the_block(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32, %y: i1) {
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  scf.if %y {
  // expected-error @below {{'tile.wgmma_wait' op expects products started in the same block}}
    %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  }
  return
}

// -----

func.func @wait_once(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.wgmma' op expects to be waited for once}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  %y = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  return
}

// -----

func.func @wait_oldest_first(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  // expected-note @below {{the product is here}}
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  %q = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  // expected-error @below {{'tile.wgmma_wait' op expects the older product to be waited for first}}
  %x = tile.wgmma_wait 1, %q : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  %y = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  return
}

// -----

func.func @wait_leaves_the_younger(%a: !tile.frag<16x64xbf16, lhs>, %b: !tile.smem<64x64xbf16, sw128>, %i: i32) {
  %p = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  %q = tile.wgmma %a, %b[%i] : !tile.frag<16x64xbf16, lhs>, <64x64xbf16, sw128> -> <16x64xf32>
  // expected-error @below {{'tile.wgmma_wait' op expects in_flight to be the number of younger products, 1, but got 0}}
  %x = tile.wgmma_wait 0, %p : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  %y = tile.wgmma_wait 0, %q : !tile.pending<16x64xf32> -> !tile.frag<16x64xf32, acc>
  return
}

// -----

tile.kernel @kernel(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_map_rank(%n: index, %m: memref<8x64xbf16>) {
  // expected-error @below {{'tile.launch' op expects argument 0 to match '!tile.tensor_map<64x64xbf16>', but got 'memref<8x64xbf16>'}}
  tile.launch @kernel grid(%n, %n, %n) args(%m) : memref<8x64xbf16>
  return
}

// -----

tile.kernel @kernel(%m: !tile.tensor_map<64x64xbf16>) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_map_columns(%n: index, %m: memref<1x1x8x72xbf16>) {
  // expected-error @below {{'tile.launch' op expects argument 0 to match '!tile.tensor_map<64x64xbf16>', but got 'memref<1x1x8x72xbf16>'}}
  tile.launch @kernel grid(%n, %n, %n) args(%m) : memref<1x1x8x72xbf16>
  return
}

// -----

tile.kernel @box_columns(%m: !tile.tensor_map<32x384xbf16>, %c: i32) attributes {warps = 8 : i32} {
  %s = tile.alloc "s" : <32x256xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load_rows' op expects columns in steps of 64 up to 256, but got 100}}
      tile.tma_load_rows %m[%c, %c, %c, %c] to %s[%c, %c] columns 100 at %b[%c] : <32x384xbf16> to <32x256xbf16, sw128>, <1>
    }
  }
  tile.return
}

// -----

tile.kernel @expect_columns(%c: i32) attributes {warps = 8 : i32} {
  %s = tile.alloc "s" : <32x256xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.mbarrier_expect' op expects columns in steps of 64 up to 256, but got 320}}
      tile.mbarrier_expect %b[%c] bytes of %s columns 320 : <1>, <32x256xbf16, sw128>
    }
  }
  tile.return
}

// -----

tile.kernel @columns_ahead(%m: !tile.tensor_map<32x384xbf16>, %c: i32) attributes {warps = 8 : i32} {
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_prefetch' op expects columns in steps of 64, but got 100}}
      tile.tma_prefetch %m[%c, %c, %c, %c] columns 100 : <32x384xbf16>
    }
  }
  tile.return
}

// -----

tile.kernel @lanes_that_ask(%m: !tile.tensor_map<32x384xbf16>, %c: i32) attributes {warps = 8 : i32} {
  // expected-error @below {{'tile.tma_prefetch' op expects to stand in a role of a single lane}}
  tile.tma_prefetch %m[%c, %c, %c, %c] columns 64 : <32x384xbf16>
  tile.return
}

// -----

tile.kernel @any_columns(%m: !tile.tensor_map<32x?xbf16>, %c: i32) attributes {warps = 8 : i32} {
  %s = tile.alloc "s" : <32x256xbf16, sw128>
  %b = tile.mbarrier "b" arrivals 1 : <1>
  tile.roles {
    tile.role "a" warps 8 registers 64 single_lane {
  // expected-error @below {{'tile.tma_load_rows' op expects a column of}}
      tile.tma_load_rows %m[%c, %c, %c] to %s[%c, %c] at %b[%c] : <32x?xbf16> to <32x256xbf16, sw128>, <1>
    }
  }
  tile.return
}
