// attn-run without a GPU: compiles to tile level, interprets the kernels,
// compares with fp64.
// RUN: attn-run --on interpreter --function memrefs --guard %s | FileCheck %s --check-prefix=TEXT
// RUN: attn-run --on interpreter --function tensors --json %s | FileCheck %s --check-prefix=JSON
// RUN: attn-run --on interpreter --function strided --batch 2 --queries 5 --keys 40 --machine l4 %s | FileCheck %s --check-prefix=STRIDED
// RUN: attn-run --on interpreter --function masked --inputs large %s | FileCheck %s --check-prefix=MASKED
// RUN: attn-run --on interpreter --function memrefs --inputs nan-key %s | FileCheck %s --check-prefix=TEXT
// RUN: attn-run --on interpreter --function memrefs --inputs inf %s | FileCheck %s --check-prefix=TEXT

// TEXT:      function  memrefs of
// TEXT-NEXT: problem   bf16, batch 1, heads 2 over 1, queries 20, keys 33, head dims 24 and 40, mask causal_bottom_right, scale 0.2
// TEXT-NEXT: device    interpreter, compiled for h100_sxm
// TEXT-NEXT: kernel    attn_kernels::{{.*}}: flash, query = {{.*}} bytes of shared memory
// TEXT-NEXT: o         1x2x20x40xbf16 {{.*}}max error {{.*}}, relative error {{.*}} (limit 4e-03){{$}}
// TEXT-NEXT: lse       1x2x20xf32 {{.*}}max error {{.*}} (limit 1e-04){{$}}
// TEXT-NEXT: moved     {{[0-9]+}} bytes of global memory, {{[0-9]+}} of shared memory
func.func @memrefs(%q: memref<1x2x20x24xbf16>, %k: memref<1x1x33x24xbf16>,
                   %v: memref<1x1x33x40xbf16>, %o: memref<1x2x20x40xbf16>,
                   %lse: memref<1x2x20xf32>) {
  attn.forward %q, %k, %v mask(causal_bottom_right) scale(0.2)
      outs(%o, %lse : memref<1x2x20x40xbf16>, memref<1x2x20xf32>)
      : memref<1x2x20x24xbf16>, memref<1x1x33x24xbf16>, memref<1x1x33x40xbf16>
  return
}

// JSON: "on":"interpreter"
// JSON-SAME: "outputs":[{"name":"o","type":"1x1x18x16xf16","ok":true
// JSON-SAME: "unwritten_elements":0,"damaged_bytes":0,"wrong_nan":0,"wrong_masked":0}
// JSON-SAME: "ok":true}
func.func @tensors(%q: tensor<1x1x18x16xf16>, %k: tensor<1x1x18x16xf16>,
                   %v: tensor<1x1x18x16xf16>) -> tensor<1x1x18x16xf16> {
  %o = attn.forward %q, %k, %v mask(causal)
      : tensor<1x1x18x16xf16>, tensor<1x1x18x16xf16>, tensor<1x1x18x16xf16>
     -> tensor<1x1x18x16xf16>
  return %o : tensor<1x1x18x16xf16>
}

// [batch, rows, heads, d] in memory, padded, with sizes given here; what lies
// between the rows is poison and stays so.
// STRIDED: problem   f16, batch 2, heads 2 over 2, queries 5, keys 40,
// STRIDED: compiled for l4
// STRIDED: o         2x2x5x8xf16 {{.*}}(limit 6e-04){{$}}
!q = memref<?x2x?x8xf16, strided<[?, 16, 32, 1]>>
func.func @strided(%q: !q, %k: !q, %v: !q, %o: !q) {
  attn.forward %q, %k, %v outs(%o : !q) : !q, !q, !q
  return
}

// A window that most queries see nothing through: exactly 0 and -infinity.
// MASKED: o         {{.*}}(limit 4e-03){{$}}
// MASKED-NEXT: lse  {{.*}}(limit 1e-04){{$}}
func.func @masked(%q: memref<1x1x40x16xbf16>, %k: memref<1x1x4x16xbf16>,
                  %v: memref<1x1x4x16xbf16>, %o: memref<1x1x40x16xbf16>,
                  %lse: memref<1x1x40xf32>) {
  attn.forward %q, %k, %v mask(window<1, 0>)
      outs(%o, %lse : memref<1x1x40x16xbf16>, memref<1x1x40xf32>)
      : memref<1x1x40x16xbf16>, memref<1x1x4x16xbf16>, memref<1x1x4x16xbf16>
  return
}
