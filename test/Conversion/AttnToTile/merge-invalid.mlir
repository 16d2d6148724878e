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
gpu.module @device {
  gpu.func @kernel(%o: !o, %l: !l, %to: !o) kernel {
    // expected-error @below {{'attn.merge' op expects to stand in a function of the host, which launches kernels, but got 'gpu.func'}}
    attn.merge (%o, %l) outs(%to : !o) : (!o, !l)
    gpu.return
  }
}
