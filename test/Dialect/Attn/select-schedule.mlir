// A script decides schedules, or asks for them.
// RUN: attn-opt %s -split-input-file --transform-interpreter -verify-diagnostics | FileCheck %s

// What a script gives stands above what the op has.
!q = tensor<1x4x300x64xbf16>
// CHECK-LABEL: func.func @given(
// CHECK: attn.forward {{.*}} {schedule = #attn.schedule<flash, query = 64, key = 64, stages = 1, warps = 4>}
func.func @given(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q mask(causal) {schedule = #attn.schedule<flash, query = 128, key = 32, stages = 1, warps = 8>} : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    // CHECK: transform.attn.select_schedule %{{.*}} machine = "a100_80g" schedule = <flash, query = 64, key = 64, stages = 1, warps = 4> : (!transform.any_op) -> !transform.any_param
    %s = transform.attn.select_schedule %a machine = "a100_80g" schedule = <flash, query = 64, key = 64, stages = 1, warps = 4> : (!transform.any_op) -> !transform.any_param
    // expected-remark @below {{is "flash, query = 64, key = 64, stages = 1, warps = 4"}}
    transform.debug.emit_param_as_remark %s, "is" : !transform.any_param
    transform.yield
  }
}

// -----

// Without one the op's own is kept and told; the machine is the module's.
!q = tensor<1x4x300x64xbf16>
module attributes {attn.machine = #attn.machine<a100_80g>, transform.with_named_sequence} {
  // CHECK-LABEL: func.func @own(
  // CHECK: attn.forward {{.*}} {schedule = #attn.schedule<flash, query = 128, key = 32, stages = 1, warps = 8>}
  // CHECK: attn.backward {{.*}} {schedule = #attn.schedule<{{.*}}
  func.func @own(%q: !q, %l: tensor<1x4x300xf32>) -> (!q, !q) {
    %o = attn.forward %q, %q, %q mask(causal) {schedule = #attn.schedule<flash, query = 128, key = 32, stages = 1, warps = 8>} : !q, !q, !q -> !q
    %d:3 = attn.backward %q, %q, %q, %q, %o, %l : !q, !q, !q, !q, !q, tensor<1x4x300xf32> -> !q, !q, !q
    return %o, %d#0 : !q, !q
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward", "attn.backward"]} in %m : (!transform.any_op) -> !transform.any_op
    %s = transform.attn.select_schedule %a : (!transform.any_op) -> !transform.any_param
    // expected-remark @below {{is "flash, query = 128, key = 32, stages = 1, warps = 8", "}}
    transform.debug.emit_param_as_remark %s, "is" : !transform.any_param
    transform.yield
  }
}

// -----

// A script gets over a schedule that does not fit: the op stays as it was, and
// the next alternative chooses.
!q = tensor<1x4x300x64xbf16>
// CHECK-LABEL: func.func @second(
// CHECK: attn.forward {{.*}} {schedule = #attn.schedule<flash, query = 64, key = 32, stages = 1, warps = 4>}
func.func @second(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op) {
    %f = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.alternatives %f : !transform.any_op {
    ^bb0(%g: !transform.any_op):
      %a = transform.structured.match ops{["attn.forward"]} in %g : (!transform.any_op) -> !transform.any_op
      transform.attn.select_schedule %a machine = "a100_80g" schedule = <flash, query = 64, key = 32000, stages = 1, warps = 4> : (!transform.any_op) -> !transform.any_param
    }, {
    ^bb0(%g: !transform.any_op):
      %a = transform.structured.match ops{["attn.forward"]} in %g : (!transform.any_op) -> !transform.any_op
      transform.attn.select_schedule %a machine = "a100_80g" schedule = <flash, query = 64, key = 32, stages = 1, warps = 4> : (!transform.any_op) -> !transform.any_param
    }
    transform.yield
  }
}

// -----

!q = tensor<1x4x300x64xbf16>
func.func @does_not_fit(%q: !q) -> !q {
  // expected-error @below {{expects a schedule that fits a100_80g, but got flash, query = 64, key = 32000, stages = 1, warps = 4: }}
  // expected-note @below {{the best that fits: }}
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    %s = transform.attn.select_schedule %a machine = "a100_80g" schedule = <flash, query = 64, key = 32000, stages = 1, warps = 4> : (!transform.any_op) -> !transform.any_param
    transform.yield
  }
}

// -----

!q = tensor<1x4x300x64xbf16>
func.func @no_machine(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{expects a machine, or a module with 'attn.machine', but got none}}
    %s = transform.attn.select_schedule %a : (!transform.any_op) -> !transform.any_param
    transform.yield
  }
}

// -----

!q = tensor<1x4x300x64xbf16>
func.func @unknown_machine(%q: !q) -> !q {
  %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
  return %o : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{h100}}
    %s = transform.attn.select_schedule %a machine = "abacus" : (!transform.any_op) -> !transform.any_param
    transform.yield
  }
}

// -----

!q = tensor<1x4x300x64xbf16>
// expected-note @below {{the target}}
func.func @no_attention(%q: !q) -> !q {
  return %q : !q
}
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%m: !transform.any_op {transform.readonly}) {
    %a = transform.structured.match ops{["func.func"]} in %m : (!transform.any_op) -> !transform.any_op
    // expected-error @below {{expects attn.forward or attn.backward, but got 'func.func'}}
    %s = transform.attn.select_schedule %a machine = "h100_sxm" : (!transform.any_op) -> !transform.any_param
    transform.yield
  }
}
