// Without a driver the error has the loader's own words, and the default is
// the interpreter.
// UNSUPPORTED: gpu
// RUN: not attn-run --on gpu %s 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: attn-run %s | FileCheck %s --check-prefix=DEFAULT
// GPU: attn-run: error: {{cannot open the CUDA driver: libcuda.so.1|there is no GPU}}
// DEFAULT: device    interpreter
!t = tensor<1x1x4x16xf16>
func.func @f(%q: !t, %k: !t, %v: !t) -> !t {
  %o = attn.forward %q, %k, %v : !t, !t, !t -> !t
  return %o : !t
}
