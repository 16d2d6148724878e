// Who writes an attribute that the op does not know believes that it does
// something.
// RUN: attn-opt %s -split-input-file -verify-diagnostics | FileCheck %s
// RUN: attn-opt %s -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONCE

// ONCE-COUNT-8: warning:
// ONCE-NOT: warning:

!t = tensor<1x1x8x8xf16>
// CHECK-LABEL: @flag
// CHECK: attn.forward %{{.*}} {causal} :
func.func @flag(%q: !t) -> !t {
  // expected-warning @+3 {{'attn.forward' op ignores the unknown attribute 'causal'}}
  // expected-note @+2 {{the clause for it is mask(causal), in front of the attributes}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), values(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), outs(..); attributes: alignment, schedule}}
  %o = attn.forward %q, %q, %q {causal} : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @nothing_like_it(%q: !t) -> !t {
  // expected-warning @+2 {{'attn.forward' op ignores the unknown attribute 'dropout'}}
  // expected-note @+1 {{clauses: mask(..), scale(..), precision(..), values(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), outs(..); attributes: alignment, schedule}}
  %o = attn.forward %q, %q, %q {dropout = 0.1} : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @other_names(%q: !t) -> !t {
  // expected-warning @+5 {{ignores the unknown attribute 'softmax_scale'}}
  // expected-note @+4 {{the clause for it is scale(..), in front of the attributes}}
  // expected-warning @+3 {{ignores the unknown attribute 'window'}}
  // expected-note @+2 {{the clause for it is mask(window<left, right>), in front of the attributes}}
  // expected-note @+1 {{clauses: mask(..)}}
  %o = attn.forward %q, %q, %q {softmax_scale = 0.1, window = 3} : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @misspelt(%q: !t) -> !t {
  // expected-warning @+3 {{ignores the unknown attribute 'aligment'}}
  // expected-note @+2 {{the nearest name is 'alignment'}}
  // expected-note @+1 {{clauses: mask(..)}}
  %o = attn.forward %q, %q, %q {aligment = 4} : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x8x8xf16>
!lse = tensor<1x1x8xf32>
func.func @gradients(%q: !t, %lse: !lse) -> !t {
  // expected-warning @+3 {{'attn.backward' op ignores the unknown attribute 'is_causal'}}
  // expected-note @+2 {{the clause for it is mask(causal), in front of the attributes}}
  // expected-note @+1 {{clauses: lse_low(..), dlse(..), weights(..), mask(..), scale(..), precision(..), captures(..), sees(..), score(..), document(..), softcap(..), alibi(..), bias(..), blocks(..), sinks(..), ragged(..), lengths(..), pages(..), scales(..), transposed(..), gradients(..), outs(..); attributes: alignment, deterministic, schedule}}
  %dq, %dk, %dv = attn.backward %q, %q, %q, %q, %q, %lse {deterministic, is_causal = true} : !t, !t, !t, !t, !t, !lse -> !t, !t, !t
  return %dq : !t
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @forward_is_always_deterministic(%q: !t) -> !t {
  // expected-warning @+2 {{'attn.forward' op ignores the unknown attribute 'deterministic'}}
  // expected-note @+1 {{clauses: mask(..)}}
  %o = attn.forward %q, %q, %q {deterministic} : !t, !t, !t -> !t
  return %o : !t
}

// -----

!t = tensor<1x1x8x8xf16>
func.func @masks_by_name(%q: !t) -> !t {
  // expected-warning @+3 {{ignores the unknown attribute 'causal_bottom_right'}}
  // expected-note @+2 {{the clause for it is mask(causal_bottom_right), in front of the attributes}}
  // expected-note @+1 {{clauses: mask(..)}}
  %o = attn.forward %q, %q, %q {causal_bottom_right, my.tag, schedule = #attn.schedule<flash>} : !t, !t, !t -> !t
  return %o : !t
}
