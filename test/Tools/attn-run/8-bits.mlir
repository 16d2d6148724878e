// 8 bits on the interpreter: inputs rounded to e4m3, output bf16, weights
// rounded to three bits.  Errors are there, and below their limits.
// RUN: attn-run --on interpreter --function ragged --guard %s | FileCheck %s --check-prefix=RAGGED
// RUN: attn-run --on interpreter --function dynamic --queries 70 --keys 65 --batch 2 --seed 3 %s | FileCheck %s --check-prefix=DYNAMIC
// RUN: attn-run --on interpreter --function masked --inputs large %s | FileCheck %s --check-prefix=MASKED
// RUN: attn-run --on interpreter --function masked --inputs nan-key %s | FileCheck %s --check-prefix=MASKED
// RUN: attn-run --on interpreter --function masked --inputs inf %s | FileCheck %s --check-prefix=MASKED
// RUN: not attn-run --on interpreter --function masked --machine l4 %s 2>&1 | FileCheck %s --check-prefix=OTHER

// RAGGED:      problem   f8e4m3, batch 1, heads 2 over 1, queries 100, keys 150, head dims 80 and 48, mask causal_bottom_right
// RAGGED:      kernel    attn_kernels::{{.*}}f8e4m3{{.*}}
// RAGGED-NEXT: o         1x2x100x48xbf16 {{.*}}relative error {{[12]}}.{{[0-9]+}}e-02 (limit 5e-02){{$}}
// RAGGED-NEXT: lse       1x2x100xf32 {{.*}}max error {{.*}}e-0{{[5-9]}} (limit 6e-03){{$}}
func.func @ragged(%q: memref<1x2x100x80xf8E4M3FN>, %k: memref<1x1x150x80xf8E4M3FN>,
                  %v: memref<1x1x150x48xf8E4M3FN>, %o: memref<1x2x100x48xbf16>,
                  %lse: memref<1x2x100xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right)
      outs(%o, %lse : memref<1x2x100x48xbf16>, memref<1x2x100xf32>)
      : memref<1x2x100x80xf8E4M3FN>, memref<1x1x150x80xf8E4M3FN>, memref<1x1x150x48xf8E4M3FN>
  return
}

// Rows padded by 16 bytes, as the promise says of strides that are not known.
// DYNAMIC: problem   f8e4m3, batch 2, heads 2 over 2, queries 70, keys 65,
// DYNAMIC: o         2x2x70x16xbf16 {{.*}}(limit 5e-02){{$}}
!q = memref<?x2x?x16xf8E4M3FN, strided<[?, 32, 64, 1]>>
!o = memref<?x2x?x16xbf16, strided<[?, 16, 32, 1]>>
func.func @dynamic(%q: !q, %k: !q, %v: !q, %o: !o) {
  attn.forward %q, %k, %v outs(%o : !o) {alignment = 16 : i64} : !q, !q, !q
  return
}

// A window that most queries see nothing through: exactly 0 and -infinity.
// MASKED:      o         1x1x70x32xbf16 {{.*}}(limit 5e-02){{$}}
// MASKED-NEXT: lse       1x1x70xf32 {{.*}}(limit 4e-03){{$}}
// OTHER: error: 'attn.forward' op expects a schedule that fits l4 and has a kernel, but got none
// OTHER: note: flash: mma_sync expects bf16, f16 or f32, but got f8e4m3
func.func @masked(%q: memref<1x1x70x32xf8E4M3FN>, %k: memref<1x1x4x32xf8E4M3FN>,
                  %v: memref<1x1x4x32xf8E4M3FN>, %o: memref<1x1x70x32xbf16>,
                  %lse: memref<1x1x70xf32>) {
  attn.forward %q, %k, %v mask(window<1, 0>)
      outs(%o, %lse : memref<1x1x70x32xbf16>, memref<1x1x70xf32>)
      : memref<1x1x70x32xf8E4M3FN>, memref<1x1x4x32xf8E4M3FN>, memref<1x1x4x32xf8E4M3FN>
  return
}
