//===- Passes.td - From WHAT to HOW to MACHINE -------------*- tablegen -*-===//

#ifndef ATTN_CONVERSION_PASSES_TD
#define ATTN_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def RaisePass : Pass<"attn-raise", "mlir::ModuleOp"> {
  let summary = "make attn.forward of the attention of other dialects";
  let description = [{
    Before: tensors, and among their ops attention in somebody else's form.
    After: each that `attn.forward` can express is one, with the reshapes and
    transposes that it takes, and a remark says what it has become.  Each that
    it cannot express stays as it was, and a remark says why.

    Ops of dialects that are not registered are read in generic form
    (`--allow-unregistered-dialect`):

    | op | of |
    |---|---|
    | `stablehlo.composite`, `stablehlo.custom_call` | StableHLO, under the names `attn.forward` and `tenstorrent.scaled_dot_product_attention` |
    | `tm_tensor.attention` | torch-mlir |
    | `onnx.Attention` | onnx-mlir, opset 23 to 25 |
    | `iree_linalg_ext.attention` | IREE |

    With `linalg` also the pattern softmax(scale Q K^T + mask) V of linalg ops,
    whatever is fused, broadcast, collapsed or transposed in it; without, a
    remark tells of it.  Query heads that share keys, of which K and V are
    broadcast, become groups.

    ```mlir
    %o = "tm_tensor.attention"(%q, %k, %v, %out) <{operandSegmentSizes = array<i32: 3, 1>}>
        : (tensor<8x100x64xf16>, tensor<8x100x64xf16>, tensor<8x100x64xf16>, tensor<8x100x64xf16>)
       -> tensor<8x100x64xf16>
    // remark: 'tm_tensor.attention' becomes an attn.forward: mask none, scale 0.125, 1 heads over 1
    ```

    A mask must be a band: a named one, a constant, or made of row numbers.
    Numbers can change, and the remark says how: sums and statistics of
    `attn.forward` are f32, and factors of f32 are multiplied in `tf32x3`.
  }];
  let options = [
    Option<"linalg", "linalg", "bool", /*default=*/"false",
           "also raise softmax(Q K^T) V of linalg ops">,
    Option<"reportOnly", "report-only", "bool", /*default=*/"false",
           "change nothing, and say in remarks what would be raised">,
  ];
  let dependentDialects = ["::attn::AttnDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def AttnToTilePass : Pass<"convert-attn-to-tile", "mlir::ModuleOp"> {
  let summary = "build the kernel that each attn op's schedule names";
  let description = [{
    Before: `attn.forward` on memrefs, each with a `schedule`; the module, or one
    around it, says its `attn.machine`.  After: one `gpu.module` in each module
    with such ops, with a `tile.kernel` per kind of problem, and a `tile.launch` in place of each op, with the grid, extents,
    strides and mask worked out on the host, and an assertion for each limit of
    sizes (Schedule/Limits.h) that they may turn out to break.  Ops that differ
    only in batch, rows or strides share a kernel.

    Query heads that are planned as rows of one (`-attn-select-schedule`) are
    that in views of the same memory: kernels do not know of it.

    The pass decides nothing.  An op without a schedule, or with one that no
    builder exists for, is an error.
  }];
  let dependentDialects = ["::attn::tile::TileDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::scf::SCFDialect", "::mlir::math::MathDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect"];
}

def TileToNVVMPass : Pass<"convert-tile-to-nvvm", "mlir::ModuleOp"> {
  let summary = "lower tile kernels to NVVM, and launches to gpu.launch_func";
  let description = [{
    Before: `gpu.module`s with `tile.kernel`s and `tile.launch`es on the host.
    After: `llvm.func` kernels that hold NVVM ops, `arith` and `scf` on scalars,
    and `gpu.launch_func`.  A tensor map is an aggregate of 128 bytes among the
    operands of a launch, encoded by a call of `attn_encode_tensor_map` of
    libattn_runtime; counters and scratch are memory of the GPU, in asynchronous
    form as upstream's `-gpu-to-llvm` wants it.

    A fragment becomes the registers that each lane holds of it, a buffer its
    address, a view its address, stride and row count.  Fences, lane indices
    and address arithmetic are made here and nowhere else.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::scf::SCFDialect",
    "::mlir::gpu::GPUDialect", "::mlir::memref::MemRefDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif
