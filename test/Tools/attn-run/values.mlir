// V as the first columns of K, interpreted, against fp64 of K read twice.
// RUN: attn-run --on interpreter --function latent --schedule 'column_split, query = 128' --guard %s | FileCheck %s --check-prefix=LATENT
// RUN: attn-run --on interpreter --function narrow --guard %s | FileCheck %s --check-prefix=NARROW
// RUN: attn-run --on interpreter --function narrow --machine a100_80g --inputs large --guard %s | FileCheck %s --check-prefix=NARROW
// RUN: attn-run --on interpreter --function narrow --schedule score_spill --guard %s | FileCheck %s --check-prefix=NARROW
// RUN: attn-run --on interpreter --function narrow --schedule output_spill --guard %s | FileCheck %s --check-prefix=NARROW
// RUN: attn-run --on interpreter --function narrow --machine l4 --schedule streamed_query --guard %s | FileCheck %s --check-prefix=NARROW

// LATENT: o         1x128x1x512xbf16 {{.*}}relative error {{.*}} (limit {{.*}}){{$}}
func.func @latent(%q: memref<1x128x1x576xbf16>, %k: memref<1x1x200x576xbf16>, %o: memref<1x128x1x512xbf16>) {
  attn.forward %q, %k values(keys, first 512) outs(%o : memref<1x128x1x512xbf16>) : memref<1x128x1x576xbf16>, memref<1x1x200x576xbf16>
  return
}

// NARROW: o         2x4x37x48xbf16 {{.*}}relative error {{.*}} (limit {{.*}}){{$}}
func.func @narrow(%q: memref<2x4x37x80xbf16>, %k: memref<2x2x90x80xbf16>, %o: memref<2x4x37x48xbf16>) {
  attn.forward %q, %k values(keys, first 48) mask(causal_bottom_right) outs(%o : memref<2x4x37x48xbf16>) : memref<2x4x37x80xbf16>, memref<2x2x90x80xbf16>
  return
}
