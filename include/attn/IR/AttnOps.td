// Ops of the attn dialect.
#ifndef ATTN_IR_ATTNOPS_TD
#define ATTN_IR_ATTNOPS_TD

include "attn/IR/AttnAttrs.td"
include "attn/IR/AttnDialect.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_Shaped : AnyTypeOf<[AnyRankedTensor, AnyMemRef],
                            "ranked tensor or memref">;

def Attn_ForwardOp : Op<Attn_Dialect, "forward", [
    DeclareOpInterfaceMethods<ConditionallySpeculatable>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                              ["reifyResultShapes"]>]> {
  let summary = "attention, forward: softmax(scale Q K^T + mask) V";
  let description = [{
    For each batch entry and head,

    ```
    S   = scale * Q K^T            where the mask lets query i see key j, else -inf
    O   = softmax(S) V             rows of the softmax over the keys
    LSE = log(sum_j exp(S_ij))     natural logarithm
    ```

    ```mlir
    %o, %lse = attn.forward %q, %k, %v mask(causal) scale(0.125)
        : tensor<4x32x4096x128xbf16>, tensor<4x8x4096x128xbf16>, tensor<4x8x4096x128xbf16>
       -> tensor<4x32x4096x128xbf16>, tensor<4x32x4096xf32>

    attn.forward %q, %k, %v mask(window<1024, 0>) outs(%o : memref<1x8x?x64xf16>)
        : memref<1x8x?x64xf16>, memref<1x8x?x64xf16>, memref<1x8x?x64xf16>
    ```

    **Shapes.** Q is `[batch, heads, queries, d]`, K `[batch, kv_heads, keys, d]`,
    V `[batch, kv_heads, keys, e]`, O `[batch, heads, queries, e]` and LSE
    `[batch, heads, queries]`. Head `h` of Q reads head
    `h / (heads / kv_heads)` of K and V: multi-head, grouped-query and
    multi-query attention are the same op. Batch, queries and keys may be
    dynamic; sizes that a constraint calls equal but that are not both static
    must be equal at run time.

    **Mask.** Absent is `none`; see `#attn.mask`. A query that sees no key,
    which includes every query when there are no keys, gives O = 0 and
    LSE = -inf.

    **Scale.** Absent is `1/sqrt(d)`. It is held as f32, the precision in which
    scores are scaled. Zero and negative scales are ordinary mathematics.

    **Precision.** Scores, softmax statistics and sums are f32. The element type
    of the operands is the precision of both products; nothing is computed in
    less unasked. Of f32 the products are those of `precision`, see
    `#attn.precision`: absent is `tf32x3`, whose error is about that of f32
    arithmetic. O has the element type of Q, but for f8E4M3FN it is bf16: without
    a scale of its own an f8 result would keep three bits of the mantissa.

    **Outputs.** On tensors the results are O and, if a second one is asked for,
    LSE. `outs` may name a destination for each result; its contents are never
    read. On memrefs `outs` are the outputs, and there are no results.

    **Alignment.** The optional attribute `alignment` is a promise of the
    caller, in bytes: every row of Q, K, V and O begins at a multiple of it.
    Without it an array is taken to begin at a multiple of 16, and a row at what
    the strides in its type then tell; a stride that is dynamic tells nothing,
    and its array moves element by element. The promise speaks for dynamic
    strides, and for arrays that begin anywhere.

    **Schedule.** The optional attribute `schedule` records how the op is to be
    computed. It does not change what is computed.

    #### Constraints

    - (C1) Operands are all tensors without encoding, or all memrefs.
    - (C2) There are one or two outputs. On tensors they are results, and
      `outs` is absent or has one destination of the same type for each. On
      memrefs they are `outs`, and there are no results.
    - (C3) Q, K, V and O have rank 4, LSE has rank 3.
    - (C4) A memref has a strided layout whose innermost stride is 1.
    - (C5) Q, K and V have one element type: bf16, f16, f32 or f8E4M3FN.
    - (C6) O has the element type of Q, or bf16 if that is f8E4M3FN; LSE has
      f32.
    - (C7) Q, K and V have the same batch size.
    - (C8) Head counts are static and positive, also in the outputs; K and V
      have the same, and that of Q is a multiple of it.
    - (C9) K and V have the same number of rows.
    - (C10) Head dimensions are static and positive, also in O; those of Q and
      K agree.
    - (C11) The shape of O is `[batch, heads, queries, e]`.
    - (C12) The shape of LSE is `[batch, heads, queries]`.
    - (C13) Sizes stay where the cost model is exact (`attn::check`): rows below
      2^30, batch and heads up to 2^20, head dimensions up to 65536, and
      batch x heads x queries x keys x head dimension up to 2^58. Batch, queries
      and keys may be 0.
    - (C14) The sides of a window are between 0 and 2^30.
    - (C15) The scale is finite.
    - (C16) An output memref is none of Q, K and V.
    - (C17) The alignment is a power of two, at least the bytes of an element
      and at most 16.
    - (C18) A precision is given for operands of f32 only.

    #### Rationale: not a `DestinationStyleOpInterface`

    The op is in destination style by form, and bufferizes in place into its
    `outs`. But upstream's interface demands a destination for every result,
    and whoever writes attention as mathematics has none to name. Without the
    interface, upstream treats the op like any that can reify its result
    shapes, and creates destinations where it needs them.

    #### Rationale: no softmax statistics as inputs

    Attention that resumes from a partial result (split keys, ring attention)
    is a matter of how. Partial results combine through O and LSE alone.
  }];
  let arguments = (ins Attn_Shaped:$q, Attn_Shaped:$k, Attn_Shaped:$v,
                       Variadic<Attn_Shaped>:$outs,
                       OptionalAttr<Attn_MaskAttr>:$mask,
                       OptionalAttr<F32Attr>:$scale,
                       OptionalAttr<Attn_PrecisionAttr>:$precision,
                       OptionalAttr<I64Attr>:$alignment,
                       OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` `(` custom<MaskBody>($mask)^ `)`)?
    (`scale` `(` $scale^ `)`)?
    (`precision` `(` custom<PrecisionBody>($precision)^ `)`)?
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict `:` type($q) `,` type($k) `,` type($v) (`->` type($results)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    bool isOnTensors() {
      return ::llvm::isa<::mlir::RankedTensorType>(getQ().getType());
    }
    /// Types of the outputs: of the results on tensors, of `outs` on memrefs.
    ::mlir::TypeRange outputTypes() {
      return isOnTensors() ? ::mlir::TypeRange(getResults().getTypes())
                           : ::mlir::TypeRange(getOuts().getTypes());
    }
    /// Whether the second output, LSE, is asked for.
    bool hasLse() { return outputTypes().size() == 2; }

    /// The mask, `none` when absent.
    ::attn::Mask maskOrNone();
    /// The scale, `1/sqrt(d)` when absent.
    double scaleOrDefault();
    /// The precision of f32, `tf32x3` when absent.
    ::attn::Precision precisionOrDefault();
  }];
}

#endif // ATTN_IR_ATTNOPS_TD
