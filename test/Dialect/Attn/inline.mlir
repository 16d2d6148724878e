// Calls of functions with attention are inlined, and so are those that only
// launch it.
// RUN: attn-opt %s -inline | FileCheck %s
// RUN: attn-opt %s -inline -attn-to-tile=machine=h100_sxm | FileCheck %s --check-prefix=TILE
// RUN: attn-opt %s -attn-to-tile=machine=h100_sxm -inline | FileCheck %s --check-prefix=TILE

!t = tensor<1x2x64x64xbf16>

// CHECK-LABEL: func.func @model(
// CHECK-COUNT-2: attn.forward
// CHECK-NOT: call
// TILE-LABEL: func.func @model(
// TILE-COUNT-2: tile.launch
// TILE-NOT: call
func.func @model(%q: !t, %k: !t) -> !t {
  %a = func.call @layer(%q, %k) : (!t, !t) -> !t
  %b = func.call @layer(%a, %k) : (!t, !t) -> !t
  return %b : !t
}

func.func private @layer(%q: !t, %k: !t) -> !t {
  %o = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
  return %o : !t
}
