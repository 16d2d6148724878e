// What the arithmetic ops refuse.  A function is named for what is asked.
// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @fill_accumulator(%x: f32) {
  // expected-error @below {{'tile.fill' op expects a fragment in layout acc, but got '!tile.frag<16x16xf16, lhs>'}}
  %f = tile.fill %x : f32 -> !tile.frag<16x16xf16, lhs>
  return
}

// -----

func.func @fill_value(%x: i32) {
  // expected-error @below {{'tile.fill' op expects a value of type 'f32', but got 'i32'}}
  %f = tile.fill %x : i32 -> !tile.frag<16x16xf32, acc>
  return
}

// -----

func.func @fill_row_value(%x: f32) {
  // expected-error @below {{'tile.fill' op expects a value of type 'i32', but got 'f32'}}
  %f = tile.fill %x : f32 -> !tile.row<16xi32>
  return
}

// -----

func.func @mma_layout_lhs(%a: !tile.frag<16x16xf16, rhs>, %b: !tile.frag<16x32xf16, rhs>, %c: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects operands in layouts lhs, rhs and acc}}
  %d = tile.mma %a, %b, %c : <16x16xf16, rhs>, <16x32xf16, rhs>, <16x32xf32, acc>
  return
}

// -----

func.func @mma_layout_rhs(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<16x32xf16, lhs>, %c: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects operands in layouts lhs, rhs and acc}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <16x32xf16, lhs>, <16x32xf32, acc>
  return
}

// -----

func.func @mma_layout_acc(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<16x32xf16, rhs>, %c: !tile.frag<16x32xf16, lhs>) {
  // expected-error @below {{'tile.mma' op expects operands in layouts lhs, rhs and acc}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <16x32xf16, rhs>, <16x32xf16, lhs>
  return
}

// -----

func.func @mma_one_type(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<16x32xbf16, rhs>, %c: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects factors of one 16-bit type or of tf32, but got 'f16' and 'bf16'}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <16x32xbf16, rhs>, <16x32xf32, acc>
  return
}

// -----

func.func @mma_contracted(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<32x32xf16, rhs>, %c: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects an m x k, a k x n and an m x n fragment, but got 16 x 16, 32 x 32 and 16 x 32}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <32x32xf16, rhs>, <16x32xf32, acc>
  return
}

// -----

func.func @mma_rows(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<16x32xf16, rhs>, %c: !tile.frag<32x32xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects an m x k, a k x n and an m x n fragment, but got 16 x 16, 16 x 32 and 32 x 32}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <16x32xf16, rhs>, <32x32xf32, acc>
  return
}

// -----

func.func @mma_columns(%a: !tile.frag<16x16xf16, lhs>, %b: !tile.frag<16x32xf16, rhs>, %c: !tile.frag<16x24xf32, acc>) {
  // expected-error @below {{'tile.mma' op expects an m x k, a k x n and an m x n fragment, but got 16 x 16, 16 x 32 and 16 x 24}}
  %d = tile.mma %a, %b, %c : <16x16xf16, lhs>, <16x32xf16, rhs>, <16x24xf32, acc>
  return
}

// -----

func.func @cast_from_accumulator(%a: !tile.frag<16x16xf16, lhs>) {
  // expected-error @below {{'tile.cast' op expects acc to lhs, lhs of 16 bits to acc, or f32 to tf32, but got '!tile.frag<16x16xf16, lhs>' to '!tile.frag<16x16xf16, lhs>'}}
  %b = tile.cast %a : <16x16xf16, lhs> -> <16x16xf16, lhs>
  return
}

// -----

func.func @cast_to_lhs(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.cast' op expects acc to lhs, lhs of 16 bits to acc, or f32 to tf32, but got '!tile.frag<16x32xf32, acc>' to '!tile.frag<16x32xf16, rhs>'}}
  %b = tile.cast %a : <16x32xf32, acc> -> <16x32xf16, rhs>
  return
}

// -----

func.func @cast_shape(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.cast' op expects the same shape, but got '!tile.frag<16x32xf32, acc>' to '!tile.frag<16x16xf16, lhs>'}}
  %b = tile.cast %a : <16x32xf32, acc> -> <16x16xf16, lhs>
  return
}

// -----

func.func @extract_layout(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects the same layout, type and rows, but got '!tile.frag<16x32xf32, acc>' to '!tile.frag<16x16xf16, lhs>'}}
  %b = tile.extract %a[0] : <16x32xf32, acc> -> <16x16xf16, lhs>
  return
}

// -----

func.func @extract_element(%a: !tile.frag<16x16xf16, lhs>) {
  // expected-error @below {{'tile.extract' op expects the same layout, type and rows, but got '!tile.frag<16x16xf16, lhs>' to '!tile.frag<16x16xbf16, lhs>'}}
  %b = tile.extract %a[0] : <16x16xf16, lhs> -> <16x16xbf16, lhs>
  return
}

// -----

func.func @extract_rows(%a: !tile.frag<32x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects the same layout, type and rows, but got '!tile.frag<32x32xf32, acc>' to '!tile.frag<16x32xf32, acc>'}}
  %b = tile.extract %a[0] : <32x32xf32, acc> -> <16x32xf32, acc>
  return
}

// -----

func.func @extract_not_rhs(%a: !tile.frag<16x32xf16, rhs>) {
  // expected-error @below {{'tile.extract' op expects a fragment in layout acc or lhs, but got rhs}}
  %b = tile.extract %a[0] : <16x32xf16, rhs> -> <16x16xf16, rhs>
  return
}

// -----

func.func @concat_layout(%a: !tile.frag<16x32xf32, acc>, %b: !tile.frag<16x32xf16, lhs>) {
  // expected-error @below {{'tile.concat' op expects the same layout, type and rows, but got '!tile.frag<16x32xf16, lhs>' to '!tile.frag<16x64xf32, acc>'}}
  %c = tile.concat %a, %b : <16x32xf32, acc>, <16x32xf16, lhs> -> <16x64xf32, acc>
  return
}

// -----

func.func @concat_columns(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.concat' op expects a result of 64 columns, but got '!tile.frag<16x32xf32, acc>'}}
  %c = tile.concat %a, %a : <16x32xf32, acc>, <16x32xf32, acc> -> <16x32xf32, acc>
  return
}

// -----

func.func @concat_not_rhs(%a: !tile.frag<16x32xf16, rhs>) {
  // expected-error @below {{'tile.concat' op expects a fragment in layout acc or lhs, but got rhs}}
  %c = tile.concat %a, %a : <16x32xf16, rhs>, <16x32xf16, rhs> -> <16x64xf16, rhs>
  return
}

// -----

func.func @extract_step_of_lhs(%a: !tile.frag<16x32xf16, lhs>) {
  // expected-error @below {{'tile.extract' op expects a column in steps of 16 from 0 to 16, but got 8}}
  %b = tile.extract %a[8] : <16x32xf16, lhs> -> <16x16xf16, lhs>
  return
}

// -----

func.func @extract_step_of_acc(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects a column in steps of 8 from 0 to 24, but got 4}}
  %b = tile.extract %a[4] : <16x32xf32, acc> -> <16x8xf32, acc>
  return
}

// -----

func.func @extract_last_column(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects a column in steps of 8 from 0 to 24, but got 32}}
  %b = tile.extract %a[32] : <16x32xf32, acc> -> <16x8xf32, acc>
  return
}

// -----

func.func @extract_not_negative(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects a column in steps of 8 from 0 to 24, but got -8}}
  %b = tile.extract %a[-8] : <16x32xf32, acc> -> <16x8xf32, acc>
  return
}

// -----

func.func @extract_not_wider(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.extract' op expects a column in steps of 8 from 0 to -8, but got 0}}
  %b = tile.extract %a[0] : <16x32xf32, acc> -> <16x40xf32, acc>
  return
}

// -----

func.func @row_reduce_accumulator(%a: !tile.frag<16x16xf16, lhs>) {
  // expected-error @below {{'tile.row_reduce' op expects a fragment in layout acc, but got '!tile.frag<16x16xf16, lhs>'}}
  %r = tile.row_reduce max %a : <16x16xf16, lhs> -> <16xf32>
  return
}

// -----

func.func @row_reduce_add_is_partial(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.row_reduce' op expects a partial row of 16 f32, but got '!tile.row<16xf32>'}}
  %r = tile.row_reduce add %a : <16x32xf32, acc> -> <16xf32>
  return
}

// -----

func.func @row_reduce_rows(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.row_reduce' op expects a whole or partial row of 16 f32, but got '!tile.row<32xf32>'}}
  %r = tile.row_reduce max %a : <16x32xf32, acc> -> <32xf32>
  return
}

// -----

func.func @row_reduce_element(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.row_reduce' op expects a whole or partial row of 16 f32, but got '!tile.row<16xi32>'}}
  %r = tile.row_reduce max %a : <16x32xf32, acc> -> <16xi32>
  return
}

// -----

func.func @row_reduce_init(%a: !tile.frag<16x32xf32, acc>, %i: !tile.row<16xf32>) {
  // expected-error @below {{'tile.row_reduce' op expects init of type '!tile.row<16xf32, partial>', but got '!tile.row<16xf32>'}}
  %r = tile.row_reduce add %a init(%i : !tile.row<16xf32>) : <16x32xf32, acc> -> <16xf32, partial>
  return
}

// -----

func.func @row_combine_partial(%a: !tile.row<16xf32>) {
  // expected-error @below {{'tile.row_combine' op expects a partial row and the whole row of its sums or maxima, but got '!tile.row<16xf32>' and '!tile.row<16xf32>'}}
  %r = tile.row_combine %a : <16xf32> -> <16xf32>
  return
}

// -----

func.func @row_combine_whole(%a: !tile.row<16xf32, partial>) {
  // expected-error @below {{'tile.row_combine' op expects a partial row and the whole row of its sums or maxima, but got '!tile.row<16xf32, partial>' and '!tile.row<16xf32, partial>'}}
  %r = tile.row_combine %a : <16xf32, partial> -> <16xf32, partial>
  return
}

// -----

func.func @row_combine_rows(%a: !tile.row<16xf32, partial>) {
  // expected-error @below {{'tile.row_combine' op expects a partial row and the whole row of its sums or maxima, but got '!tile.row<16xf32, partial>' and '!tile.row<32xf32>'}}
  %r = tile.row_combine %a : <16xf32, partial> -> <32xf32>
  return
}

// -----

func.func @map_rows(%a: !tile.row<32xf32>) {
  // expected-error @below {{'tile.map' op expects 16 rows in every operand, but got '!tile.row<32xf32>'}}
  %r = tile.map %a : !tile.row<32xf32> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_row_of_rows(%a: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.map' op expects rows for a result that is a row, but got '!tile.frag<16x16xf32, acc>'}}
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.row<16xf32> {
  ^bb0(%i: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_same_fragments(%a: !tile.frag<16x32xf32, acc>) {
  // expected-error @below {{'tile.map' op expects fragments of type '!tile.frag<16x16xf32, acc>', but got '!tile.frag<16x32xf32, acc>'}}
  %r = tile.map %a : !tile.frag<16x32xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_accumulator(%x: f32) {
  // expected-error @below {{'tile.map' op expects a result in layout acc, but got '!tile.frag<16x16xf16, lhs>'}}
  %r = tile.map -> !tile.frag<16x16xf16, lhs> {
  ^bb0(%i: i32, %j: i32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_fragment_arguments(%a: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.map' op expects block arguments ('i32', 'i32', 'f32'), but got ('i32', 'f32')}}
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_row_arguments(%a: !tile.row<16xf32>) {
  // expected-error @below {{'tile.map' op expects block arguments ('i32', 'f32'), but got ('i32', 'i32', 'f32')}}
  %r = tile.map %a : !tile.row<16xf32> -> !tile.row<16xf32> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_argument_element(%a: !tile.row<16xi32>) {
  // expected-error @below {{'tile.map' op expects block arguments ('i32', 'i32', 'i32'), but got ('i32', 'i32', 'f32')}}
  %r = tile.map %a : !tile.row<16xi32> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_yield(%a: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.map' op expects to yield a value of type 'f32'}}
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %i : i32
  }
  return
}

// -----

func.func @map_yields(%a: !tile.frag<16x16xf32, acc>) {
  // expected-error @below {{'tile.map' op expects to yield a value of type 'f32'}}
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    %y = arith.addf %x, %x : f32
  }
  return
}

// -----

func.func @map_scalar_ops(%a: !tile.frag<16x16xf32, acc>, %c: i1) {
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    // expected-error @below {{'scf.if' op expects a scalar op without effects inside tile.map}}
    scf.if %c {
    }
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_no_effects(%a: !tile.frag<16x16xf32, acc>, %m: memref<f32>) {
  %r = tile.map %a : !tile.frag<16x16xf32, acc> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    // expected-error @below {{'memref.store' op expects a scalar op without effects inside tile.map}}
    memref.store %x, %m[] : memref<f32>
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_partial_sum(%a: !tile.row<16xf32, partial>, %b: !tile.row<16xf32>) {
  %r = tile.map %a, %b : !tile.row<16xf32, partial>, !tile.row<16xf32> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32, %y: f32):
    // expected-error @below {{'arith.addf' op expects partial values on both sides of a sum}}
    %z = arith.addf %x, %y : f32
    tile.yield %z : f32
  }
  return
}

// -----

func.func @map_partial_difference(%a: !tile.row<16xf32, partial>, %b: !tile.row<16xf32>) {
  %r = tile.map %a, %b : !tile.row<16xf32, partial>, !tile.row<16xf32> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32, %y: f32):
    // expected-error @below {{'arith.subf' op expects partial values on both sides of a sum}}
    %z = arith.subf %y, %x : f32
    tile.yield %z : f32
  }
  return
}

// -----

func.func @map_partial_product(%a: !tile.row<16xf32, partial>) {
  %r = tile.map %a : !tile.row<16xf32, partial> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32):
    // expected-error @below {{'arith.mulf' op expects at most one partial factor}}
    %z = arith.mulf %x, %x : f32
    tile.yield %z : f32
  }
  return
}

// -----

func.func @map_partial_function(%a: !tile.row<16xf32, partial>) {
  %r = tile.map %a : !tile.row<16xf32, partial> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32):
    // expected-error @below {{'math.exp2' op expects whole values, but got a partial one}}
    %z = math.exp2 %x : f32
    tile.yield %z : f32
  }
  return
}

// -----

func.func @map_partial_product_is_partial(%a: !tile.row<16xf32, partial>, %b: !tile.row<16xf32>) {
  %r = tile.map %a, %b : !tile.row<16xf32, partial>, !tile.row<16xf32> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32, %y: f32):
    %z = arith.mulf %x, %y : f32
    // expected-error @below {{'math.exp2' op expects whole values, but got a partial one}}
    %w = math.exp2 %z : f32
    tile.yield %w : f32
  }
  return
}

// -----

func.func @map_partial_result(%a: !tile.row<16xf32, partial>) {
  // expected-error @below {{'tile.map' op expects a partial result exactly when the yielded value is partial}}
  %r = tile.map %a : !tile.row<16xf32, partial> -> !tile.row<16xf32> {
  ^bb0(%i: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_whole_result(%a: !tile.row<16xf32>) {
  // expected-error @below {{'tile.map' op expects a partial result exactly when the yielded value is partial}}
  %r = tile.map %a : !tile.row<16xf32> -> !tile.row<16xf32, partial> {
  ^bb0(%i: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @map_partial_row_in_fragment(%a: !tile.row<16xf32, partial>) {
  // expected-error @below {{'tile.map' op expects a partial result exactly when the yielded value is partial}}
  %r = tile.map %a : !tile.row<16xf32, partial> -> !tile.frag<16x16xf32, acc> {
  ^bb0(%i: i32, %j: i32, %x: f32):
    tile.yield %x : f32
  }
  return
}

// -----

func.func @yield_in_map(%x: f32) {
  // expected-error @below {{'tile.yield' op expects parent op 'tile.map'}}
  tile.yield %x : f32
}

// -----

func.func @map_one_block() {
  // expected-error @below {{'tile.map' op expects a non-empty block}}
  %r = "tile.map"() ({
  ^bb0(%i: i32):
  }) : () -> !tile.row<16xf32>
  return
}

// -----

func.func @keep_columns_operand(%p: !tile.frag<16x16xbf16, lhs>, %r: !tile.row<16xi32>) {
  // expected-error @below {{'tile.keep_columns' op expects a fragment in layout acc, but got '!tile.frag<16x16xbf16, lhs>'}}
  %y = tile.keep_columns %p to %r : !tile.frag<16x16xbf16, lhs>, !tile.row<16xi32>
  return
}

// -----

func.func @keep_columns_last(%s: !tile.frag<16x16xf32, acc>, %r: !tile.row<16xf32>) {
  // expected-error @below {{'tile.keep_columns' op expects bounds of type '!tile.row<16xi32>', but got '!tile.row<16xf32>'}}
  %y = tile.keep_columns %s to %r : !tile.frag<16x16xf32, acc>, !tile.row<16xf32>
  return
}

// -----

func.func @keep_columns_first(%s: !tile.frag<16x16xf32, acc>, %r: !tile.row<16xi32>, %f: !tile.row<32xi32>) {
  // expected-error @below {{'tile.keep_columns' op expects bounds of type '!tile.row<16xi32>', but got '!tile.row<32xi32>'}}
  %y = tile.keep_columns %s from %f : !tile.row<32xi32> to %r : !tile.frag<16x16xf32, acc>, !tile.row<16xi32>
  return
}

// -----

func.func @any_above_whole_limits(%v: !tile.row<16xf32, partial>, %l: !tile.row<16xf32, partial>) {
  // expected-error @below {{'tile.any_above' op expects f32 values and a whole row of limits, but got '!tile.row<16xf32, partial>' and '!tile.row<16xf32, partial>'}}
  %y = tile.any_above %v, %l : !tile.row<16xf32, partial>, <16xf32, partial>
  return
}

// -----

func.func @any_above_rows(%v: !tile.row<16xf32>, %l: !tile.row<32xf32>) {
  // expected-error @below {{'tile.any_above' op expects f32 values and a whole row of limits, but got '!tile.row<16xf32>' and '!tile.row<32xf32>'}}
  %y = tile.any_above %v, %l : !tile.row<16xf32>, <32xf32>
  return
}

// -----

func.func @any_above_reals(%v: !tile.row<16xi32>, %l: !tile.row<16xf32>) {
  // expected-error @below {{'tile.any_above' op expects f32 values and a whole row of limits, but got '!tile.row<16xi32>' and '!tile.row<16xf32>'}}
  %y = tile.any_above %v, %l : !tile.row<16xi32>, <16xf32>
  return
}
