// Kernels read scales of operands when they run: the interpreter against fp64.
// RUN: attn-run --on interpreter --function eight_bits %s | FileCheck %s --check-prefix=EIGHT
// RUN: attn-run --on interpreter --function decode %s | FileCheck %s --check-prefix=DECODE
// RUN: attn-run --on interpreter --function scored --machine a100_80g %s | FileCheck %s --check-prefix=SCORED
// RUN: attn-run --on interpreter --function ragged %s | FileCheck %s --check-prefix=RAGGED
// RUN: not attn-run --on interpreter --function plain --reference decode %s | FileCheck %s --check-prefix=PLAIN
// RUN: not attn-opt -attn-to-tile %s 2>&1 | FileCheck %s --check-prefix=REFUSED

!q8 = tensor<2x4x100x32xf8E4M3FN>
!k8 = tensor<2x2x150x32xf8E4M3FN>
!o8 = tensor<2x4x100x32xbf16>
!one = tensor<1x1xf32>
!each = tensor<2x2xf32>

// EIGHT: problem {{.*}} scales(q, k, v)
// EIGHT: o {{.*}}(limit 5e-02){{$}}
// EIGHT-NEXT: lse {{.*}}(limit 4e-03){{$}}
func.func @eight_bits(%q: !q8, %k: !k8, %v: !k8, %sq: !one, %sk: !each, %sv: !each) -> (!o8, tensor<2x4x100xf32>) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) scales(q %sq, k %sk, v %sv : !one, !each, !each)
      : !q8, !k8, !k8 -> !o8, tensor<2x4x100xf32>
  return %o, %lse : !o8, tensor<2x4x100xf32>
}

// Heads that share keys are rows of a tile.
!q = tensor<2x8x1x64xbf16>
!k = tensor<2x2x3000x64xbf16>
// DECODE: problem {{.*}} lengths(k), scales(q, v)
// DECODE: o {{.*}}(limit 4e-03){{$}}
func.func @decode(%q: !q, %k: !k, %v: !k, %n: tensor<2xi32>, %sq: !each, %sv: !each) -> !q {
  %o = attn.forward %q, %k, %v lengths(k %n : tensor<2xi32>) scales(q %sq, v %sv : !each, !each) : !q, !k, !k -> !q
  return %o : !q
}

// PLAIN: o {{.*}}WRONG
func.func @plain(%q: !q, %k: !k, %v: !k, %n: tensor<2xi32>, %sq: !each, %sv: !each) -> !q {
  %o = attn.forward %q, %k, %v lengths(k %n : tensor<2xi32>) : !q, !k, !k -> !q
  return %o : !q
}

// A region sees scaled scores.
!s = tensor<2x4x40x32xf16>
!t = tensor<2x2x70x32xf16>
// SCORED: problem {{.*}} softcap, sinks, scales(k)
// SCORED: o {{.*}}(limit 6e-04){{$}}
func.func @scored(%q: !s, %k: !t, %v: !t, %x: tensor<4xf32>, %sk: tensor<2x1xf32>) -> !s {
  %o = attn.forward %q, %k, %v softcap(0.5) sinks(%x : tensor<4xf32>) scales(k %sk : tensor<2x1xf32>) : !s, !t, !t -> !s
  return %o : !s
}

// RAGGED: o {{.*}}(limit 4e-03){{$}}
func.func @ragged(%q: tensor<150x4x32xbf16>, %k: tensor<200x2x32xbf16>, %v: tensor<200x2x32xbf16>, %cq: tensor<4xi32>, %ck: tensor<4xi32>, %sk: tensor<3x2xf32>, %sv: tensor<3x2xf32>) -> tensor<150x4x32xbf16> {
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) ragged(%cq, %ck, longest 100, 150 : tensor<4xi32>, tensor<4xi32>)
      scales(k %sk, v %sv : tensor<3x2xf32>, tensor<3x2xf32>)
      : tensor<150x4x32xbf16>, tensor<200x2x32xbf16>, tensor<200x2x32xbf16> -> tensor<150x4x32xbf16>
  return %o : tensor<150x4x32xbf16>
}

// REFUSED: expects a schedule that has a kernel, but got column_split
func.func @refused(%q: tensor<1x8x256x512xbf16>, %s: !one) -> tensor<1x8x256x512xbf16> {
  %o = attn.forward %q, %q, %q scales(k %s : !one) {schedule = #attn.schedule<column_split>} : tensor<1x8x256x512xbf16>, tensor<1x8x256x512xbf16>, tensor<1x8x256x512xbf16> -> tensor<1x8x256x512xbf16>
  return %o : tensor<1x8x256x512xbf16>
}
