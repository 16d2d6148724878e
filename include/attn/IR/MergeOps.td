// Parts of an attention made whole, and the gradients of a part.
#ifndef ATTN_IR_MERGEOPS_TD
#define ATTN_IR_MERGEOPS_TD

include "attn/IR/AttnDialect.td"
include "attn/IR/MergeInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// What is common to both is written once, over the interface.
class Attn_MergingOp<string mnemonic>
    : Op<Attn_Dialect, mnemonic, [
        AttrSizedOperandSegments, Attn_MergeOpInterface,
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static ::attn::Direction direction();
    ::llvm::SmallVector<std::string> givenInputs();
    static ::llvm::ArrayRef<::llvm::StringLiteral> outputRoles();
    static size_t leastOutputs();
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() {
      return ::attn::verifyMerge(*this);
    }
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return isOnTensors() ? ::mlir::Speculation::Speculatable
                           : ::mlir::Speculation::NotSpeculatable;
    }
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      ::attn::addEffects(*this, inputs().size(), effects);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &reified) {
      return ::attn::reifyShapes(*this, builder, reified);
    }
  }];
}

def Attn_MergeOp : Attn_MergingOp<"merge"> {
  let summary = "attention from that over disjoint sets of its keys";
  let description = [{
    Each part (O_i, LSE_i) is the result of `attn.forward` with the same queries
    over some of the keys, no key in two of them. For each row,

    ```
    LSE = log(sum_i exp(LSE_i))
    w_i = exp(LSE_i - LSE)
    O   = sum_i w_i O_i
    ```

    is what `attn.forward` gives over all of these keys. So keys can be split
    over blocks, devices or time: by tiling, in ring attention, or behind a
    shared prefix.

    ```mlir
    %o, %lse = attn.merge (%o0, %lse0), (%o1, %lse1)
        : (tensor<4x32x512x128xbf16>, tensor<4x32x512xf32>),
          (tensor<4x32x512x128xf32>, tensor<4x32x512xf32>)
       -> tensor<4x32x512x128xbf16>, tensor<4x32x512xf32>

    attn.merge (%o0, %lse0), (%o1, %lse1) outs(%o : memref<1x8x?x64xf16>)
        : (memref<1x8x?x64xf16>, memref<1x8x?xf32>), (memref<1x8x?x64xf16>, memref<1x8x?xf32>)
    ```

    **Nothing seen.** A part with LSE_i = -inf has seen no key and takes no part:
    what its O_i holds is not looked at, be it a NaN. A row of which all parts
    are so gets O = 0 and LSE = -inf, as in `attn.forward`. A row with an LSE_i
    of NaN or +inf becomes NaN, and so does what a NaN in O_i reaches.

    **Sinks.** A score that is in the sum and has no value belongs to no set of
    keys, and would be counted once for each part: parts are of attention
    without one.

    **Precision.** Weights and sums are f32, and each O_i has been rounded to its
    type: in f32 parts lose nothing, in bf16 2^-9 of themselves each. LSE is one
    word of f32. Merging in another order, or group by group, differs by
    roundings.

    **Outputs, alignment.** As for `attn.forward`: one output, O, or two; the
    alignment is that of all arrays with rows.

    No schedule is chosen: every array is moved once. Gradients are
    `attn.merge_backward`.

    #### Constraints

    - (C1) Operands are all tensors without encoding, or all memrefs.
    - (C2) There is a part at least, and an LSE for each.
    - (C3) There are one or two outputs, O and LSE. On tensors they are results,
      and `outs` is absent or has one destination of the same type for each. On
      memrefs they are `outs`, and there are no results.
    - (C4) O and its parts have rank 4, LSEs have rank 3.
    - (C5) A memref has a strided layout whose innermost stride is 1, in global
      memory, and keeps the limits of layouts of `attn.forward`.
    - (C6) O and its parts are bf16, f16 or f32. A part has the element type of
      O, or one of both is f32. LSEs have f32.
    - (C7) All arrays have the same shape, but for the last dimension, which LSEs
      do not have. Heads and that dimension are static and positive.
    - (C8) Sizes are within the limits of `attn.forward`.
    - (C9) An output memref is none of the operands that come in, and no two are
      the same.
    - (C10) The alignment is a power of two, at least the bytes of an element of
      every array with rows, and at most 16.
  }];
  let arguments = (ins Variadic<Attn_Shaped>:$parts,
                       Variadic<Attn_Shaped>:$part_lses,
                       Variadic<Attn_Shaped>:$outs,
                       OptionalAttr<I64Attr>:$alignment);
  let assemblyFormat = [{
    custom<Parts>($parts, $part_lses) (`outs` `(` $outs^ `:` type($outs) `)`)?
    attr-dict `:` custom<PartTypes>(type($parts), type($part_lses))
    (`->` type($results)^)?
  }];
}

def Attn_MergeBackwardOp : Attn_MergingOp<"merge_backward"> {
  let summary = "the gradients of a part of attn.merge";
  let description = [{
    Of `O, LSE = attn.merge .., (O_i, LSE_i), ..`, the gradients of a loss in one
    part from those in O and LSE:

    ```
    w_i    = exp(LSE_i - LSE)
    dO_i   = w_i dO
    dLSE_i = w_i (dLSE + <dO, O_i - O>)     a product for each row
    ```

    ```mlir
    %do0, %dlse0 = attn.merge_backward %do, %o, %lse, %o0, %lse0 dlse(%dlse : tensor<4x32x512xf32>)
        : tensor<4x32x512x128xbf16>, tensor<4x32x512x128xbf16>, tensor<4x32x512xf32>,
          tensor<4x32x512x128xf32>, tensor<4x32x512xf32>
       -> tensor<4x32x512x128xf32>, tensor<4x32x512xf32>
    ```

    O and LSE are results of the merge and not checked to be. `dlse` is the
    gradient in LSE, where the loss depends on it; absent is 0. A part with
    LSE_i = -inf has gradients of 0, whatever the other arrays hold there.

    **Precision.** As for `attn.merge`; dO_i has the element type of O_i.

    #### Constraints

    - (C1) Operands are all tensors without encoding, or all memrefs.
    - (C3) There are two outputs, dO_i and dLSE_i, in the form of `attn.merge`.
    - (C4) O, O_i and their gradients have rank 4, LSEs and their gradients have
      rank 3.
    - (C5) Memrefs are as for `attn.merge`.
    - (C6) Element types of O and O_i are as for `attn.merge`; dO has that of O
      and dO_i that of O_i. LSEs and their gradients have f32.
    - (C7) Shapes are as for `attn.merge`.
    - (C8) Sizes are within the limits of `attn.forward`.
    - (C9) An output memref is none of the operands that come in, and no two are
      the same.
    - (C10) The alignment is as for `attn.merge`.

    #### Rationale: one part at a time

    An op that gave the gradients of all parts would read dO and O once for all
    and not once for each, of 2 n + 2 arrays instead of 4 n. Parts are few and
    their gradients go separate ways, so the simpler op was taken.
  }];
  let arguments = (ins Attn_Shaped:$d_o, Attn_Shaped:$o, Attn_Shaped:$lse,
                       Attn_Shaped:$part, Attn_Shaped:$part_lse,
                       Optional<Attn_Shaped>:$dlse,
                       Variadic<Attn_Shaped>:$outs,
                       OptionalAttr<I64Attr>:$alignment);
  let assemblyFormat = [{
    $d_o `,` $o `,` $lse `,` $part `,` $part_lse
    (`dlse` `(` $dlse^ `:` type($dlse) `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($d_o) `,` type($o) `,` type($lse) `,` type($part) `,`
    type($part_lse) (`->` type($results)^)?
  }];
}

#endif // ATTN_IR_MERGEOPS_TD
