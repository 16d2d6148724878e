// A script lowers as well: passes and pipelines by name.
// RUN: attn-opt %s --transform-interpreter | FileCheck %s

// CHECK: tile.kernel @flash_mma_sync_bf16_64
// CHECK-LABEL: func.func @f(
// CHECK: tile.launch @attn_kernels::@flash_mma_sync_bf16_64
!q = tensor<1x4x300x64xbf16>
module attributes {transform.with_named_sequence} {
  module @payload {
    func.func @f(%q: !q) -> !q {
      %o = attn.forward %q, %q, %q : !q, !q, !q -> !q
      return %o : !q
    }
  }
  transform.named_sequence @__transform_main(%m: !transform.any_op) {
    %a = transform.structured.match ops{["attn.forward"]} in %m : (!transform.any_op) -> !transform.any_op
    transform.attn.select_schedule %a machine = "a100_80g" schedule = <flash, query = 64, key = 64> : (!transform.any_op) -> !transform.any_param
    %p = transform.structured.match ops{["builtin.module"]} attributes {sym_name = "payload"} in %m : (!transform.any_op) -> !transform.any_op
    transform.apply_registered_pass "attn-to-tile" with options = {machine = "a100_80g"} to %p : (!transform.any_op) -> !transform.any_op
    transform.yield
  }
}
