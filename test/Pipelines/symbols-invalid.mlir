// Places and names that cannot be.
// RUN: attn-opt %s -split-input-file -verify-diagnostics -attn-to-nvvm=machine=h100_sxm

!t = memref<1x2x256x64xbf16>
// expected-error @below {{'func.func' op expects another name than 'attn_encode_tensor_map', which is libattn's: host code calls it for tensor maps}}
// expected-note @below {{it may also be declared here, as llvm.func of type '!llvm.func<i32 (ptr, i32, i64, ptr, ptr, i32, ptr)>'}}
func.func @attn_encode_tensor_map() {
  return
}
func.func @f(%q: !t, %o: !t) {
  attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
  return
}

// -----

// Declared as it is.
!t = memref<1x2x256x64xbf16>
llvm.func @attn_encode_tensor_map(!llvm.ptr, i32, i64, !llvm.ptr, !llvm.ptr, i32, !llvm.ptr) -> i32
func.func @f(%q: !t, %o: !t) {
  attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
  return
}

// -----

!t = memref<1x2x256x64xbf16>
gpu.module @mine {
  gpu.func @f(%q: !t, %o: !t) kernel {
    // expected-error @below {{'attn.forward' op expects to stand in a function of the host, which launches kernels, but got 'gpu.func'}}
    attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
    gpu.return
  }
}

// -----

!t = memref<1x2x256x64xbf16>
func.func @launches(%q: !t, %o: !t) {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1) threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
    // expected-error @below {{'attn.forward' op expects to stand in a function of the host, which launches kernels, but got 'gpu.launch'}}
    attn.forward %q, %q, %q outs(%o : !t) : !t, !t, !t
    gpu.terminator
  }
  return
}
