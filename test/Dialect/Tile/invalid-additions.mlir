// RUN: attn-opt %s -split-input-file -verify-diagnostics

func.func @array_of_pairs(%p: !tile.ptr<bf16>, %s: !tile.frag<16x64xf32, acc>, %o: i64) {
  // expected-error @below {{expects an array of f32, but got '!tile.ptr<bf16>'}}
  tile.add_elements %s to %p[%o] : !tile.frag<16x64xf32, acc> to <bf16> {
  ^bb0(%r: i32, %c: i32, %x: f32):
    tile.add %x at %c : i32
  }
  return
}

// -----

func.func @row_first(%p: !tile.ptr<f32>, %s: !tile.row<16xf32>, %o: i64) {
  // expected-error @below {{expects a fragment in layout acc in front}}
  tile.add_elements %s to %p[%o] : !tile.row<16xf32> to <f32> {
  ^bb0(%r: i32, %c: i32, %x: f32):
    tile.add %x at %c : i32
  }
  return
}

// -----

func.func @partial_row(%p: !tile.ptr<f32>, %s: !tile.frag<16x64xf32, acc>, %t: !tile.row<16xf32, partial>, %o: i64) {
  // expected-error @below {{and whole rows of as many, but got '!tile.row<16xf32, partial>'}}
  tile.add_elements %s, %t to %p[%o] : !tile.frag<16x64xf32, acc>, !tile.row<16xf32, partial> to <f32> {
  ^bb0(%r: i32, %c: i32, %x: f32, %y: f32):
    tile.add %x at %c : i32
  }
  return
}

// -----

func.func @arguments(%p: !tile.ptr<f32>, %s: !tile.frag<16x64xf32, acc>, %o: i64) {
  // expected-error @below {{expects block arguments ('i32', 'i32', 'f32'), but got ('i32', 'f32')}}
  tile.add_elements %s to %p[%o] : !tile.frag<16x64xf32, acc> to <f32> {
  ^bb0(%c: i32, %x: f32):
    tile.add %x at %c : i32
  }
  return
}

// -----

func.func @total_of_indices(%s: !tile.row<16xi32>) {
  // expected-error @below {{expects a row of f32, but got '!tile.row<16xi32>'}}
  %t = tile.total %s : <16xi32>
  return
}
