// The ops that stand in the regions of attention, and those that make lists of
// blocks.
#ifndef ATTN_IR_REGIONOPS_TD
#define ATTN_IR_REGIONOPS_TD

include "attn/IR/AttnDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Where these ops may stand.
defvar Attn_InRegion = ParentOneOf<["ForwardOp", "BackwardOp", "BlockListsOp"]>;

def Attn_ReadOp : Op<Attn_Dialect, "read", [
    Pure, Attn_InRegion,
    TypesMatchWith<"the result has the element type of the array", "array",
                   "result",
                   "::llvm::cast<::mlir::ShapedType>($_self).getElementType()">]> {
  let summary = "an element of a captured array";
  let description = [{
    In a region of attention, the element of an array that the op captures:

    ```mlir
    %slope = attn.read %slopes[%h] : tensor<32xf32>
    ```

    A constant index must be one of the array. That the others are within it is
    the promise of whoever wrote the region; `attn-run` checks it on the arrays
    of a run, for every visible pair of the rows that it compares. Nothing writes the array
    while the op runs, so a read has no effect.
  }];
  let arguments = (ins Attn_Shaped:$array, Variadic<Index>:$indices);
  let results = (outs AnyType:$result);
  let hasVerifier = 1;
  let assemblyFormat = "$array `[` $indices `]` attr-dict `:` type($array)";
}

def Attn_YieldOp : Op<Attn_Dialect, "yield", [
    Pure, Terminator, Attn_InRegion]> {
  let summary = "what a region of attention gives";
  let description = [{
    Of `sees` an i1, whether a query sees a key; of `score` an f32, what a score
    becomes.
  }];
  let arguments = (ins AnyType:$result);
  let assemblyFormat = "$result attr-dict `:` type($result)";
}

#endif // ATTN_IR_REGIONOPS_TD
