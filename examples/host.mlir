// A whole program: tensors of the host, attention on the GPU, numbers printed.
//   attn-opt examples/host.mlir -attn-to-binary="memory=host"
// docs/in-your-stack.md has the rest of the way to mlir-runner.
!q = tensor<1x4x256x64xf32>
!k = tensor<1x2x256x64xf32>
!row = tensor<4xf32>

func.func @attention(%q: !q, %k: !k, %v: !k) -> !q {
  %o = attn.forward %q, %k, %v mask(causal) : !q, !k, !k -> !q
  return %o : !q
}

func.func private @printMemrefF32(memref<*xf32>)

func.func @main() {
  %q = arith.constant dense<0.5> : !q
  %k = arith.constant dense<0.25> : !k
  %v = arith.constant dense<2.0> : !k
  %o = call @attention(%q, %k, %v) : (!q, !k, !k) -> !q
  %part = tensor.extract_slice %o[0, 3, 255, 0] [1, 1, 1, 4] [1, 1, 1, 1] : !q to !row
  %row = bufferization.to_buffer %part : !row to memref<4xf32, strided<[1], offset: ?>>
  %any = memref.cast %row : memref<4xf32, strided<[1], offset: ?>> to memref<*xf32>
  call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  return
}
