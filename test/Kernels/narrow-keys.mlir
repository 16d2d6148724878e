// Keys and values of eight bits under queries of 16: the interpreter against
// fp64, by the schedule that is chosen.
// RUN: attn-run --on interpreter --function decode %s | FileCheck %s --check-prefix=DECODE
// RUN: attn-run --on interpreter --function prefill %s | FileCheck %s --check-prefix=PREFILL
// RUN: attn-run --on interpreter --function ragged %s | FileCheck %s --check-prefix=RAGGED
// RUN: not attn-run --on interpreter --function prefill --machine a100_80g %s 2>&1 | FileCheck %s --check-prefix=REFUSED

!q = tensor<2x8x1x64xbf16>
!k = tensor<2x2x3000x64xf8E4M3FN>
!s = tensor<2x2xf32>

// DECODE: problem {{ *}}bf16 with k and v in f8e4m3, {{.*}} lengths(k), scales(k, v)
// DECODE: o {{.*}}(limit 4e-03){{$}}
func.func @decode(%q: !q, %k: !k, %v: !k, %n: tensor<2xi32>, %sk: !s, %sv: !s) -> !q {
  %o = attn.forward %q, %k, %v lengths(k %n : tensor<2xi32>) scales(k %sk, v %sv : !s, !s) : !q, !k, !k -> !q
  return %o : !q
}

!h = tensor<1x4x300x80xf16>
!c = tensor<1x2x500x80xf8E4M3FN>

// PREFILL: problem {{ *}}f16 with k and v in f8e4m3, {{.*}}causal_bottom_right
// PREFILL: o {{.*}}(limit 6e-04){{$}}
// PREFILL-NEXT: lse {{.*}}(limit {{[^)]*}}){{$}}
// REFUSED: expects a schedule
// REFUSED: mma_sync expects q, k and v of one type, but got k and v in f8e4m3 and q in f16
func.func @prefill(%q: !h, %k: !c, %v: !c) -> (!h, tensor<1x4x300xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) : !h, !c, !c -> !h, tensor<1x4x300xf32>
  return %o, %lse : !h, tensor<1x4x300xf32>
}

!rq = tensor<200x4x64xbf16>
!rk = tensor<200x2x64xf8E4M3FN>

// RAGGED: o {{.*}}(limit 4e-03){{$}}
func.func @ragged(%q: !rq, %k: !rk, %v: !rk, %n: tensor<4xi32>) -> !rq {
  %o = attn.forward %q, %k, %v mask(causal) ragged(%n, %n, longest 150, 150 : tensor<4xi32>, tensor<4xi32>) : !rq, !rk, !rk -> !rq
  return %o : !rq
}
