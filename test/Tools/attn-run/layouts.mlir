// Layouts that types leave open until sizes are known, and arrays for which
// there is no memory.
// RUN: not attn-run --on interpreter --function far --queries 5 %s 2>&1 | FileCheck %s --check-prefix=FAR
// RUN: attn-run --on interpreter --function apart --queries 4 %s
// RUN: not attn-run --on interpreter --function apart --queries 5 %s 2>&1 | FileCheck %s --check-prefix=APART
// RUN: not attn-run --on interpreter --function much %s 2>&1 | FileCheck %s --check-prefix=MUCH

!q = memref<1x2x?x16xf16>
!k = memref<1x2x8x16xf16>

// FAR: error: expects argument 2 to have an end within 17592186044416 bytes of its beginning, but got 'memref<1x2x?x16xf16, strided<[?, ?, 4398046511104, 1]>>' of sizes 1, 2, 5, 16
!far = memref<1x2x?x16xf16, strided<[?, ?, 4398046511104, 1]>>
func.func @far(%q: !q, %k: !k, %o: !far) {
  attn.forward %q, %k, %k outs(%o : !far) : !q, !k, !k
  return
}

// APART: error: expects argument 2 to have rows that do not lie on each other, so a stride of 80 or more in dimension 1, but got 'memref<1x2x?x16xf16, strided<[?, 64, 16, 1]>>' of sizes 1, 2, 5, 16
!apart = memref<1x2x?x16xf16, strided<[?, 64, 16, 1]>>
func.func @apart(%q: !q, %k: !k, %o: !apart) {
  attn.forward %q, %k, %k outs(%o : !apart) : !q, !k, !k
  return
}

// MUCH: error: expects arrays of at most {{[0-9]+}} bytes in all, a third of this computer's memory, but got {{[0-9]+}}
!much = memref<1x2x8x16xf16, strided<[?, 4398046511104, 16, 1]>>
func.func @much(%q: !k, %k: !k, %o: !much) {
  attn.forward %q, %k, %k outs(%o : !much) : !k, !k, !k
  return
}
