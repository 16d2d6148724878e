// What was raised compiles like any attention: every form to PTX, and a composite
// to a cubin.
// REQUIRES: ptxas
// RUN: attn-opt %S/Inputs/composite.mlir -attn-raise -attn-to-binary --allow-unregistered-dialect 2>/dev/null | FileCheck %s --check-prefix=CUBIN
// RUN: attn-opt %S/../Conversion/Raise/named.mlir -attn-raise -attn-to-binary="format=isa memory=host" --allow-unregistered-dialect -split-input-file 2>/dev/null | FileCheck %s --check-prefix=NAMED
// RUN: attn-opt %S/../Conversion/Raise/softmax.mlir -attn-raise=linalg=1 -attn-to-binary=format=isa -split-input-file 2>/dev/null | FileCheck %s --check-prefix=LINALG

// CUBIN: gpu.binary @{{.*}} [#gpu.object<#nvvm.target<{{.*}}chip = "sm_90a"{{.*}}, bin = "\7FELF
// CUBIN: func.func @f
// CUBIN-NOT: stablehlo

// NAMED: gpu.binary {{.*}} assembly = "//
// NAMED: @tm_tensor(
// NAMED: gpu.binary
// NAMED: @tm_tensor_heads(
// NAMED: gpu.binary
// NAMED: @composite(
// NAMED: gpu.binary
// NAMED: @tenstorrent(
// NAMED: gpu.binary
// NAMED: @custom_call(
// NAMED: gpu.binary
// NAMED: @iree(
// NAMED: gpu.binary
// NAMED: @onnx(
// NAMED: gpu.binary
// NAMED: @onnx_past(

// LINALG: gpu.binary
// LINALG: @torch(
// LINALG: gpu.binary
// LINALG: @plain(
// LINALG: gpu.binary
// LINALG: @stablehlo(
// LINALG: gpu.binary
// LINALG: @finite(
