// What the types and ops refuse.  A function or kernel is named for what is
// asked of it.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expects element type bf16, f16, f32 or f8E4M3FN, but got 'f64'}}
func.func private @ptr_element(!tile.ptr<f64>)

// -----

// expected-error @below {{expects element type bf16, f16, f32 or f8E4M3FN, but got 'i32'}}
func.func private @view_element(!tile.view<?x8xi32, align = 4>)

// -----

// expected-error @below {{expects a view of ?xT or ?xCxT with C at least 1}}
func.func private @view_rows_at_run_time(!tile.view<64x8xf16, align = 16>)

// -----

// expected-error @below {{expects a view of ?xT or ?xCxT with C at least 1}}
func.func private @view_columns_known(!tile.view<?x?xf16, align = 16>)

// -----

// expected-error @below {{expects a view of ?xT or ?xCxT with C at least 1}}
func.func private @view_columns_at_least_1(!tile.view<?x0xf16, align = 16>)

// -----

// expected-error @below {{expects a view of ?xT or ?xCxT with C at least 1}}
func.func private @view_extents(!tile.view<?x8x8xf16, align = 16>)

// -----

// expected-error @below {{expects an alignment of 4 to 16 bytes that is a power of two, but got 2}}
func.func private @view_aligned_to_element(!tile.view<?x8xf32, align = 2>)

// -----

// expected-error @below {{expects an alignment of 2 to 16 bytes that is a power of two, but got 32}}
func.func private @view_alignment_at_most_16(!tile.view<?x8xf16, align = 32>)

// -----

// expected-error @below {{expects an alignment of 2 to 16 bytes that is a power of two, but got 12}}
func.func private @view_alignment_power_of_two(!tile.view<?x8xf16, align = 12>)

// -----

// expected-error @below {{expected ','}}
func.func private @view_alignment_given(!tile.view<?x8xf16>)

// -----

// expected-error @below {{expects a buffer of rows x columns or stages x rows x columns, but got 1 extents}}
func.func private @smem_two_extents(!tile.smem<16xf16>)

// -----

// expected-error @below {{expects a buffer of rows x columns or stages x rows x columns, but got 4 extents}}
func.func private @smem_three_extents(!tile.smem<1x2x16x16xf16>)

// -----

// expected-error @below {{expects element type bf16, f16 or f32, but got 'f64'}}
func.func private @smem_element(!tile.smem<16x16xf64>)

// -----

// expected-error @below {{expects extents from 1 to 65536, but got 0 x 16 x 16}}
func.func private @smem_extent_at_least_1(!tile.smem<0x16x16xf16>)

// -----

// expected-error @below {{expects extents from 1 to 65536, but got 1 x 16 x 65552}}
func.func private @smem_extent_at_most(!tile.smem<16x65552xf16>)

// -----

// expected-error @below {{expects rows and columns in multiples of 16, but got 24 x 16}}
func.func private @smem_rows(!tile.smem<24x16xf16>)

// -----

// expected-error @below {{expects rows and columns in multiples of 16, but got 16 x 8}}
func.func private @smem_columns(!tile.smem<16x8xf16>)

// -----

// expected-error @below {{expects rows x columns x type and one of acc, lhs, rhs, lhs_paired, rhs_paired}}
func.func private @frag_layout(!tile.frag<16x16xf32, both>)

// -----

// expected-error @below {{expects rows x columns x type and one of acc, lhs, rhs, lhs_paired, rhs_paired}}
func.func private @frag_extents(!tile.frag<16xf32, acc>)

// -----

// expected-error @below {{expects element type f32 in layout acc, but got 'f16'}}
func.func private @frag_acc_element(!tile.frag<16x16xf16, acc>)

// -----

// expected-error @below {{expects element type bf16, f16, f8E4M3FN, f32 or tf32 in layout lhs, but got 'f64'}}
func.func private @frag_lhs_element(!tile.frag<16x16xf64, lhs>)

// -----

// expected-error @below {{expects element type f32 or tf32 in layout lhs_paired, but got 'f16'}}
func.func private @frag_paired_element(!tile.frag<16x16xf16, lhs_paired>)

// -----

// expected-error @below {{expects rows in multiples of 8 and columns in multiples of 16 up to 4096, but got 12 x 16}}
func.func private @frag_rows_of_words(!tile.frag<12x16xf32, rhs>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 8 up to 4096, but got 16 x 12}}
func.func private @frag_columns_of_words(!tile.frag<16x12xtf32, lhs_paired>)

// -----

// expected-error @below {{expects element type bf16, f16, f8E4M3FN, f32 or tf32 in layout rhs, but got 'f8E5M2'}}
func.func private @frag_rhs_element(!tile.frag<16x16xf8E5M2, rhs>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 32 up to 4096, but got 16 x 16}}
func.func private @frag_columns_of_bytes(!tile.frag<16x16xf8E4M3FN, lhs>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 8 up to 4096, but got 8 x 8}}
func.func private @frag_rows(!tile.frag<8x8xf32, acc>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 8 up to 4096, but got 16 x 12}}
func.func private @frag_acc_columns(!tile.frag<16x12xf32, acc>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 16 up to 4096, but got 16 x 24}}
func.func private @frag_rhs_columns(!tile.frag<16x24xf16, rhs>)

// -----

// expected-error @below {{expects rows in multiples of 16 and columns in multiples of 8 up to 4096, but got 4112 x 8}}
func.func private @frag_limit(!tile.frag<4112x8xf32, acc>)

// -----

// expected-error @below {{expects one extent, but got 2}}
func.func private @row_extents(!tile.row<16x16xf32>)

// -----

// expected-error @below {{expected 'partial'}}
func.func private @row_partial_or_not(!tile.row<16xf32, whole>)

// -----

// expected-error @below {{expects element type f32 or i32, but got 'f16'}}
func.func private @row_element(!tile.row<16xf16>)

// -----

// expected-error @below {{expects rows in multiples of 16 up to 4096, but got 8}}
func.func private @row_rows(!tile.row<8xf32>)

// -----

// expected-error @below {{expects rows in multiples of 16 up to 4096, but got 4112}}
func.func private @row_limit(!tile.row<4112xf32>)

// -----

// expected-error @below {{expects f32 in a partial row, but got 'i32'}}
func.func private @row_partial_f32(!tile.row<16xi32, partial>)

// -----

// expected-error @below {{'tile.kernel' op expects 1 to 32 warps, but got 0}}
tile.kernel @kernel_warps_at_least_1() attributes {warps = 0 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects 1 to 32 warps, but got 33}}
tile.kernel @kernel_warps_at_most_32() attributes {warps = 33 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op requires attribute 'warps'}}
tile.kernel @kernel_warps_given() {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects 1 to 32 blocks per multiprocessor, but got 0}}
tile.kernel @kernel_blocks_at_least_1() attributes {warps = 1 : i32, min_blocks_per_sm = 0 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects 1 to 32 blocks per multiprocessor, but got 33}}
tile.kernel @kernel_blocks_at_most_32() attributes {warps = 1 : i32, min_blocks_per_sm = 33 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects no results, but got 1}}
tile.kernel @kernel_no_results() -> i32 attributes {warps = 1 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects arguments of type !tile.ptr, !tile.tensor_map, i32, i64 or f32, but got 'f64'}}
tile.kernel @kernel_arguments(%x: f64) attributes {warps = 1 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects arguments of type !tile.ptr, !tile.tensor_map, i32, i64 or f32, but got '!tile.smem<16x16xf16>'}}
tile.kernel @kernel_arguments(%x: !tile.smem<16x16xf16>) attributes {warps = 1 : i32} {
  tile.return
}

// -----

// expected-error @below {{'tile.kernel' op expects a body, but got a declaration}}
tile.kernel @kernel_body() attributes {warps = 1 : i32}

// -----

// expected-error @below {{'tile.kernel' op expects tile.return at the end of its body}}
tile.kernel @kernel_return() attributes {warps = 1 : i32} {
  tile.barrier
}

// -----

// expected-error @below {{'tile.kernel' op expects tile.return at the end of its body}}
"tile.kernel"() <{sym_name = "kernel_return", function_type = () -> (), warps = 1 : i32}> ({
^bb0:
}) : () -> ()

// -----

func.func @return_in_kernel() {
  // expected-error @below {{'tile.return' op expects parent op 'tile.kernel'}}
  tile.return
}

// -----

func.func @launch_of_nothing(%n: index, %x: i32) {
  // expected-error @below {{'tile.launch' op expects the name of a tile.kernel, but got @nothing}}
  tile.launch @nothing grid(%n, %n, %n) args(%x) : i32
  return
}

// -----

func.func private @callee(i32)
func.func @launch_of_function(%n: index, %x: i32) {
  // expected-error @below {{'tile.launch' op expects the name of a tile.kernel, but got @callee}}
  tile.launch @callee grid(%n, %n, %n) args(%x) : i32
  return
}

// -----

tile.kernel @kernel(%n: i32, %s: i64) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_count(%n: index, %x: i32) {
  // expected-error @below {{'tile.launch' op expects 2 arguments for @kernel, but got 1}}
  tile.launch @kernel grid(%n, %n, %n) args(%x) : i32
  return
}

// -----

tile.kernel @kernel(%n: i32, %s: i64) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_scalar(%n: index, %x: i32) {
  // expected-error @below {{'tile.launch' op expects argument 1 to match 'i64', but got 'i32'}}
  tile.launch @kernel grid(%n, %n, %n) args(%x, %x) : i32, i32
  return
}

// -----

tile.kernel @kernel(%p: !tile.ptr<f16>) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_memref_element(%n: index, %m: memref<8xbf16>) {
  // expected-error @below {{'tile.launch' op expects argument 0 to match '!tile.ptr<f16>', but got 'memref<8xbf16>'}}
  tile.launch @kernel grid(%n, %n, %n) args(%m) : memref<8xbf16>
  return
}

// -----

tile.kernel @kernel(%p: !tile.ptr<f16>) attributes {warps = 1 : i32} {
  tile.return
}
func.func @launch_memref(%n: index, %x: i64) {
  // expected-error @below {{'tile.launch' op expects argument 0 to match '!tile.ptr<f16>', but got 'i64'}}
  tile.launch @kernel grid(%n, %n, %n) args(%x) : i64
  return
}

// -----

func.func @program_id_dimension() {
  // expected-error @below {{'tile.program_id' op attribute 'dim' failed to satisfy constraint: 32-bit signless integer attribute whose minimum value is 0 whose maximum value is 2}}
  %x = tile.program_id 3
  return
}

// -----

func.func @wait_group_not_negative() {
  // expected-error @below {{'tile.wait_group' op attribute 'in_flight' failed to satisfy constraint: 32-bit signless integer attribute whose minimum value is 0}}
  tile.wait_group -1
  return
}

// -----

func.func @view_of_base(%p: !tile.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @below {{'tile.view' op expects a view of 'f16', but got '!tile.view<?x8xbf16, align = 16>'}}
  %v = tile.view %p[%s] rows(%n) stride(%s) : <f16> -> <?x8xbf16, align = 16>
  return
}

// -----

func.func @alloc_named() {
  // expected-error @below {{'tile.alloc' op expects a name for the buffer}}
  %b = tile.alloc "" : <16x16xf16>
  return
}

// -----

func.func @alias_fits(%b: !tile.smem<16x16xf16>) {
  // expected-error @below {{'tile.alias' op expects at most the 512 bytes of the buffer, but got 1024}}
  %a = tile.alias %b : <16x16xf16> -> <2x16x16xf16>
  return
}

// -----

func.func @copy_async_element(%v: !tile.view<?x16xbf16, align = 16>, %b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.copy_async' op expects rows of 'f16', but got '!tile.view<?x16xbf16, align = 16>'}}
  tile.copy_async %v[%i] to %b[%i] : <?x16xbf16, align = 16> to <16x16xf16>
  return
}

// -----

func.func @copy_async_rows(%v: !tile.view<?xf16, align = 16>, %b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.copy_async' op expects a buffer of one row for a vector, but got '!tile.smem<16x16xf16>'}}
  tile.copy_async %v[%i] to %b[%i] : <?xf16, align = 16> to <16x16xf16>
  return
}

// -----

func.func @copy_async_columns(%v: !tile.view<?x17xf16, align = 2>, %b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.copy_async' op expects at most 16 columns, but got 17}}
  tile.copy_async %v[%i] to %b[%i] : <?x17xf16, align = 2> to <16x16xf16>
  return
}

// -----

func.func @load_matrix_operand(%b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects a fragment in layout lhs or rhs, but got acc}}
  %f = tile.load_matrix %b[%i, %i, %i] : <16x16xf16> -> <16x16xf32, acc>
  return
}

// -----

func.func @load_matrix_lhs_along_k(%b: !tile.smem<16x16xf32>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects f32 in layout lhs_paired from rows along k, but got lhs}}
  %f = tile.load_matrix %b[%i, %i, %i] transpose : <16x16xf32> -> <16x8xf32, lhs>
  return
}

// -----

func.func @load_matrix_element(%b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects elements of 'f16', but got 'bf16'}}
  %f = tile.load_matrix %b[%i, %i, %i] : <16x16xf16> -> <16x16xbf16, lhs>
  return
}

// -----

func.func @load_matrix_part(%b: !tile.smem<16x32xf16>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects a part of '!tile.smem<16x32xf16>', but got 32 x 16}}
  %f = tile.load_matrix %b[%i, %i, %i] : <16x32xf16> -> <32x16xf16, lhs>
  return
}

// -----

func.func @load_matrix_transposed_part(%b: !tile.smem<16x32xf16>, %i: i32) {
  // expected-error @below {{'tile.load_matrix' op expects a part of '!tile.smem<16x32xf16>', but got 32 x 16}}
  %f = tile.load_matrix %b[%i, %i, %i] transpose : <16x32xf16> -> <16x32xf16, rhs>
  return
}

// -----

func.func @store_matrix_accumulator(%f: !tile.frag<16x16xf16, lhs>, %b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.store_matrix' op expects a fragment in layout acc, but got lhs}}
  tile.store_matrix %f to %b[%i] : <16x16xf16, lhs> to <16x16xf16>
  return
}

// -----

func.func @store_matrix_inside(%f: !tile.frag<16x24xf32, acc>, %b: !tile.smem<16x16xf16>, %i: i32) {
  // expected-error @below {{'tile.store_matrix' op expects a fragment inside '!tile.smem<16x16xf16>', but got '!tile.frag<16x24xf32, acc>'}}
  tile.store_matrix %f to %b[%i] : <16x24xf32, acc> to <16x16xf16>
  return
}

// -----

func.func @store_matrix_column(%f: !tile.frag<16x16xf32, acc>, %b: !tile.smem<64x64xf16, sw128>, %i: i32) {
  // expected-error @below {{'tile.store_matrix' op expects no column in panels, but got '!tile.smem<64x64xf16, sw128>'}}
  tile.store_matrix %f to %b[%i, %i] : <16x16xf32, acc> to <64x64xf16, sw128>
  return
}

// -----

func.func @copy_out_element(%b: !tile.smem<16x16xf16>, %v: !tile.view<?x16xbf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.copy_out' op expects a view of 'f16' rows, but got '!tile.view<?x16xbf16, align = 16>'}}
  tile.copy_out %b[%i] to %v[%i] count 16 : <16x16xf16> to <?x16xbf16, align = 16>
  return
}

// -----

func.func @copy_out_columns(%b: !tile.smem<16x16xf16>, %v: !tile.view<?x32xf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.copy_out' op expects at most 16 columns, but got 32}}
  tile.copy_out %b[%i] to %v[%i] count 16 : <16x16xf16> to <?x32xf16, align = 16>
  return
}

// -----

func.func @copy_out_at_least_1(%b: !tile.smem<16x16xf16>, %v: !tile.view<?x16xf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.copy_out' op expects 1 to 16 rows, but got 0}}
  tile.copy_out %b[%i] to %v[%i] count 0 : <16x16xf16> to <?x16xf16, align = 16>
  return
}

// -----

func.func @copy_out_at_most(%b: !tile.smem<16x16xf16>, %v: !tile.view<?x16xf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.copy_out' op expects 1 to 16 rows, but got 17}}
  tile.copy_out %b[%i] to %v[%i] count 17 : <16x16xf16> to <?x16xf16, align = 16>
  return
}

// -----

func.func @store_row_whole(%r: !tile.row<16xf32, partial>, %v: !tile.view<?xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.store_row' op expects a whole row, but got '!tile.row<16xf32, partial>'; combine it first}}
  tile.store_row %r to %v[%i] : <16xf32, partial> to <?xf32, align = 4>
  return
}

// -----

func.func @store_row_vector(%r: !tile.row<16xf32>, %v: !tile.view<?x16xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.store_row' op expects a vector of 'f32', but got '!tile.view<?x16xf32, align = 4>'}}
  tile.store_row %r to %v[%i] : <16xf32> to <?x16xf32, align = 4>
  return
}

// -----

func.func @store_row_element(%r: !tile.row<16xi32>, %v: !tile.view<?xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.store_row' op expects a vector of 'i32', but got '!tile.view<?xf32, align = 4>'}}
  tile.store_row %r to %v[%i] : <16xi32> to <?xf32, align = 4>
  return
}

// -----

func.func @copied_vector_is_one_row(%v: !tile.view<?xf32, align = 4>, %b: !tile.smem<2x64xf32>, %i: i32) {
  // expected-error @below {{'tile.copy_async' op expects a buffer of one row for a vector, but got '!tile.smem<2x64xf32>'}}
  tile.copy_async %v[%i] to %b[%i] : <?xf32, align = 4> to <2x64xf32>
  return
}

// -----

func.func @columns_of_f32(%b: !tile.smem<16x64xbf16>, %i: i32) {
  // expected-error @below {{'tile.get_columns' op expects a fragment in layout acc and a buffer of f32, but got '!tile.frag<16x64xf32, acc>' and '!tile.smem<16x64xbf16>'}}
  %r = tile.get_columns %b[%i, %i, %i] : <16x64xbf16> -> <16x64xf32, acc>
  return
}

// -----

func.func @columns_inside(%b: !tile.smem<1x32xf32>, %i: i32) {
  // expected-error @below {{'tile.get_columns' op expects at most 32 columns, but got '!tile.frag<16x64xf32, acc>'}}
  %r = tile.get_columns %b[%i, %i, %i] : <1x32xf32> -> <16x64xf32, acc>
  return
}

// -----

func.func @loaded_row_is_of_a_vector(%v: !tile.view<?x8xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.load_row' op expects a vector of 'f32', but got '!tile.view<?x8xf32, align = 4>'}}
  %r = tile.load_row %v[%i] : <?x8xf32, align = 4> -> <16xf32>
  return
}

// -----

func.func @loaded_row_is_whole(%v: !tile.view<?xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.load_row' op expects a whole row, but got '!tile.row<16xf32, partial>'}}
  %r = tile.load_row %v[%i] : <?xf32, align = 4> -> <16xf32, partial>
  return
}

// -----

func.func @dot_of_matrices(%v: !tile.view<?xf32, align = 4>, %i: i32) {
  // expected-error @below {{'tile.row_dot' op expects views of 16-bit or 32-bit elements, but got '!tile.view<?xf32, align = 4>'}}
  %r = tile.row_dot %v, %v[%i] : <?xf32, align = 4>, <?xf32, align = 4> -> <16xf32>
  return
}

// -----

func.func @dot_of_rows_of_two_lengths(%v: !tile.view<?x64xbf16, align = 16>, %w: !tile.view<?x72xbf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.row_dot' op expects views of as many columns and one element type, but got '!tile.view<?x64xbf16, align = 16>' and '!tile.view<?x72xbf16, align = 16>'}}
  %r = tile.row_dot %v, %w[%i] : <?x64xbf16, align = 16>, <?x72xbf16, align = 16> -> <16xf32>
  return
}

// -----

func.func @dot_of_two_types(%v: !tile.view<?x64xbf16, align = 16>, %w: !tile.view<?x64xf16, align = 16>, %i: i32) {
  // expected-error @below {{'tile.row_dot' op expects views of as many columns and one element type, but got '!tile.view<?x64xbf16, align = 16>' and '!tile.view<?x64xf16, align = 16>'}}
  %r = tile.row_dot %v, %w[%i] : <?x64xbf16, align = 16>, <?x64xf16, align = 16> -> <16xf32>
  return
}

// -----

func.func @scratch_sizes(%n: index) {
  // expected-error @below {{'tile.scratch' op expects a size for each dynamic extent, but got 0 for 'memref<2x?xf32>'}}
  %r = tile.scratch : memref<2x?xf32>
  return
}

// -----

module {
  gpu.module @kernels {
    tile.kernel @k() attributes {warps = 1 : i32} {
      tile.return
    }
  }
  func.func @host() {
    %one = arith.constant 1 : index
    %many = arith.constant 65536 : index
    // expected-error @below {{expects a grid of 0 to 65535 blocks along dimension 1, but got 65536}}
    tile.launch @kernels::@k grid(%one, %many, %one) args()
    return
  }
}
