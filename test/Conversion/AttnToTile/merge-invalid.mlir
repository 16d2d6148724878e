// RUN: attn-opt %s -attn-attach-machine -convert-attn-to-tile -split-input-file -verify-diagnostics

!o = tensor<1x2x4x8xf16>
!l = tensor<1x2x4xf32>
func.func @tensors(%o: !o, %l: !l) -> !o {
  // expected-error @below {{'attn.merge' op expects memrefs here: bufferize first}}
  %0 = attn.merge (%o, %l) : (!o, !l) -> !o
  return %0 : !o
}

// -----

!o = memref<1x2x4x8xf16>
!l = memref<1x2x4xf32>
module {
  module {
    func.func @nested(%o: !o, %l: !l, %to: !o) {
      // expected-error @below {{expects to stand in a function of the outermost module, but got a nested module}}
      attn.merge (%o, %l) outs(%to : !o) : (!o, !l)
      return
    }
  }
}
