// The pipeline in parts gives what it gives at once, and after -attn-to-nvvm
// upstream makes the binary as well.
// RUN: attn-opt %s -attn-to-binary="machine=h100_sxm format=isa" | sed 's/LLVMIRToISATimeInMs = [0-9]*//' > %t.once
// RUN: attn-opt %s -attn-attach-machine=machine=h100_sxm -attn-select-schedule -canonicalize -attn-bufferize -attn-deallocate-buffers -convert-attn-to-tile -canonicalize -cse -o %t.tile
// RUN: attn-opt %t.tile -attn-allocate-on-device -attn-attach-nvvm-target -convert-tile-to-nvvm -attn-lower-kernels -o %t.nvvm
// RUN: attn-opt %t.nvvm -attn-serialize-kernels=format=isa | sed 's/LLVMIRToISATimeInMs = [0-9]*//' > %t.parts
// RUN: diff %t.once %t.parts
// RUN: mlir-opt %t.nvvm --gpu-module-to-binary=format=isa --gpu-to-llvm | FileCheck %s

// CHECK: gpu.binary @attn_kernels
// CHECK: llvm.call @mgpuMemAlloc
// CHECK: gpu.launch_func {{.*}}@attn_kernels::@
!t = tensor<1x2x256x64xbf16>
func.func @attention(%q: !t, %k: !t) -> !t {
  %o = attn.forward %q, %k, %k mask(causal) : !t, !t, !t -> !t
  return %o : !t
}
