// Decoding with one query a head: too few tiles for a GPU, so its keys go to
// eight parts, and a merge makes the whole.  What is below @split is a script
// of upstream's transform dialect, which attn-opt --transform-interpreter runs.
!q = tensor<1x4x1x64xbf16>
!k = tensor<1x2x4096x64xbf16>

func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = attn.forward %q, %k, %v : !q, !k, !k -> !q
  return %o : !q
}

func.func @split(%q: !q, %k: !k, %v: !k) -> !q {
  %o = attn.forward %q, %k, %v : !q, !k, !k -> !q
  return %o : !q
}

!op = !transform.any_op
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%module: !op {transform.readonly}) {
    %split = transform.structured.match ops{["func.func"]}
        attributes {sym_name = "split"} in %module : (!op) -> !op
    %whole = transform.structured.match ops{["attn.forward"]} in %split : (!op) -> !op
    %o, %lse, %part, %merge, %loop =
        transform.structured.tile_reduction_using_forall %whole
        by num_threads = [0, 0, 0, 8] tile_sizes = [] : (!op) -> (!op, !op, !op, !op, !op)
    %schedule = transform.attn.select_schedule %part
        machine = "h100_sxm" schedule = <flash, query = 64, key = 64>
        : (!op) -> !transform.any_param
    transform.debug.emit_param_as_remark %schedule, "each part is computed by" at %part
        : !transform.any_param, !op
    transform.yield
  }
}
