// Keys in pages: a table in random order, numbers of no page behind an entry's
// last one, NaN in rows that nobody uses, and entries that share pages where the
// pool is small.
// RUN: attn-run --on interpreter --function paged --guard %s | FileCheck %s --check-prefix=PAGED
// RUN: attn-run --on interpreter --function paged --seed 2 --inputs nan-key %s | FileCheck %s --check-prefix=PAGED
// RUN: attn-run --on interpreter --function shared --seed 5 %s | FileCheck %s --check-prefix=SHARED
// RUN: attn-run --on interpreter --function ragged --seed 7 %s | FileCheck %s --check-prefix=RAGGED
// RUN: attn-run --on interpreter --function latent --seed 3 %s | FileCheck %s --check-prefix=LATENT
// RUN: attn-run --on interpreter --function open --batch 2 --queries 5 --keys 90 %s | FileCheck %s --check-prefix=OPEN
// RUN: not attn-run --on interpreter --function paged --reference causal %s | FileCheck %s --check-prefix=CAUSAL
// RUN: not attn-run --on interpreter --function open --batch 2 --queries 5 %s 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: not attn-run --on interpreter --function none %s 2>&1 | FileCheck %s --check-prefix=NONE

!q = tensor<3x4x7x64xbf16>
!pool = tensor<25x2x16x64xbf16>
!used = tensor<3xi32>
!table = tensor<3x8xi32>
!lse = tensor<3x4x7xf32>

// PAGED: problem {{.*}} pages of 16 keys with lengths(k)
// PAGED: o         3x4x7x64xbf16 {{.*}}(limit 4e-03){{$}}
// PAGED-NEXT: lse  {{.*}}(limit 1e-04){{$}}
func.func @paged(%q: !q, %k: !pool, %v: !pool, %used: !used, %table: !table) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %v mask(window<40, 0>) lengths(k %used : !used)
      pages(%table : !table) : !q, !pool, !pool -> !q, !lse
  return %o, %lse : !q, !lse
}

// CAUSAL: o {{.*}}WRONG
func.func @causal(%q: !q, %k: !pool, %v: !pool, %used: !used, %table: !table) -> (!q, !lse) {
  %o, %lse = attn.forward %q, %k, %v mask(causal_bottom_right) lengths(k %used : !used)
      pages(%table : !table) : !q, !pool, !pool -> !q, !lse
  return %o, %lse : !q, !lse
}

// SHARED: o {{.*}}(limit 4e-03){{$}}
func.func @shared(%q: !q, %k: tensor<3x2x16x64xbf16>, %used: !used, %table: !table, %sinks: tensor<4xf32>) -> !q {
  %o = attn.forward %q, %k, %k sinks(%sinks : tensor<4xf32>) lengths(k %used : !used)
      pages(%table : !table) : !q, tensor<3x2x16x64xbf16>, tensor<3x2x16x64xbf16> -> !q
  return %o : !q
}

// RAGGED: o         21x4x64xbf16 {{.*}}(limit 4e-03){{$}}
func.func @ragged(%q: tensor<21x4x64xbf16>, %k: !pool, %v: !pool, %cq: tensor<4xi32>, %used: !used, %table: !table) -> tensor<21x4x64xbf16> {
  %o = attn.forward %q, %k, %v mask(causal_bottom_right) ragged(%cq, longest 9 : tensor<4xi32>)
      lengths(k %used : !used) pages(%table : !table)
      : tensor<21x4x64xbf16>, !pool, !pool -> tensor<21x4x64xbf16>
  return %o : tensor<21x4x64xbf16>
}

// LATENT: o         1x64x1x512xbf16 {{.*}}(limit 4e-03){{$}}
func.func @latent(%q: tensor<1x64x1x576xbf16>, %k: tensor<4x1x64x576xbf16>, %used: tensor<1xi32>, %table: tensor<1x3xi32>) -> tensor<1x64x1x512xbf16> {
  %o = attn.forward %q, %k values(keys, first 512) lengths(k %used : tensor<1xi32>)
      pages(%table : tensor<1x3xi32>) : tensor<1x64x1x576xbf16>, tensor<4x1x64x576xbf16> -> tensor<1x64x1x512xbf16>
  return %o : tensor<1x64x1x512xbf16>
}

// OPEN: problem {{.*}}batch 2, {{.*}}queries 5, keys 96
// OPEN: o {{.*}}(limit 4e-03){{$}}
// WIDTH: error: expects the number of pages of an entry, which is dynamic: give --keys
func.func @open(%q: tensor<?x4x?x64xbf16>, %k: tensor<?x2x16x64xbf16>, %v: tensor<?x2x16x64xbf16>, %used: tensor<?xi32>, %table: tensor<?x?xi32>) -> tensor<?x4x?x64xbf16> {
  %o = attn.forward %q, %k, %v lengths(k %used : tensor<?xi32>) pages(%table : tensor<?x?xi32>)
      : tensor<?x4x?x64xbf16>, tensor<?x2x16x64xbf16>, tensor<?x2x16x64xbf16> -> tensor<?x4x?x64xbf16>
  return %o : tensor<?x4x?x64xbf16>
}

// NONE: error: expects at least 1 page of k, but got none
func.func @none(%q: !q, %k: tensor<0x2x16x64xbf16>, %used: !used, %table: !table) -> !q {
  %o = attn.forward %q, %k, %k lengths(k %used : !used) pages(%table : !table)
      : !q, tensor<0x2x16x64xbf16>, tensor<0x2x16x64xbf16> -> !q
  return %o : !q
}
