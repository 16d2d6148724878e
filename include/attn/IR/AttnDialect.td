// The attn dialect: attention as mathematics.
#ifndef ATTN_IR_ATTNDIALECT_TD
#define ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/DialectBase.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::attn";
  let summary = "attention as mathematics: what is computed, never how";
  let description = [{
    The top of the compiler. Its ops say which attention is computed, on which
    tensors; they know no tile, no thread and no byte. How it is computed is a
    *decision*, made by `-attn-select-schedule` and kept in the IR as one
    attribute that a person can read, test and overrule:

    ```mlir
    module attributes {attn.machine = #attn.machine<h100_sxm>} {
      func.func @f(%q: tensor<4x32x4096x128xbf16>, %k: tensor<4x8x4096x128xbf16>,
                   %v: tensor<4x8x4096x128xbf16>) -> tensor<4x32x4096x128xbf16> {
        %o = attn.forward %q, %k, %v mask(causal)
            {schedule = #attn.schedule<flash, query = 128, key = 64, stages = 2, warps = 4>}
            : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
            -> tensor<4x32x4096x128xbf16>
        return %o : tensor<4x32x4096x128xbf16>
      }
    }
    ```

    ### Rationale: one op for attention, not a composition

    Two matmuls and a softmax can say the same, but then every pass would first
    have to find attention again, and the facts that the cost model needs (the
    head grouping, the mask, the head dimensions) would be spread over a dozen
    ops. Raising happens once, at the border; below it attention is one op.

    ### Rationale: no encoding of memory order

    Shapes are always `[batch, heads, rows, head_dim]`. The order in memory is
    the buffer's strides, which memref types already express, so that
    `[batch, rows, heads, head_dim]` needs no second spelling and no copy.

    ### The module attribute `attn.machine`

    A `#attn.machine` on a module names the GPU for which the ops in it are
    compiled. It is not an attribute of the op: what is computed does not
    depend on where.
  }];
  // Reifying a dynamic result shape asks the operands: tensor.dim.  Regions are
  // of arith, index and math.
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::index::IndexDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasCanonicalizer = 1;
}

#endif // ATTN_IR_ATTNDIALECT_TD
