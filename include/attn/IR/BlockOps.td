// Lists of blocks: made from a region, and turned around for gradients.
#ifndef ATTN_IR_BLOCKOPS_TD
#define ATTN_IR_BLOCKOPS_TD

include "attn/IR/AttnDialect.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Four lists come out: on tensors they are results, on memrefs `outs`.
class Attn_ListingOp<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits # [
        DeclareOpInterfaceMethods<ConditionallySpeculatable>,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface,
                                  ["reifyResultShapes"]>]> {
  let results = (outs Variadic<AnyRankedTensor>:$lists);
  let hasVerifier = 1;
  code listingMethods = [{
    /// The operands that come in.
    ::mlir::OperandRange inputs() {
      return getOperation()->getOperands().drop_back(getOuts().size());
    }
    bool isOnTensors() { return getOuts().empty() || getNumResults() != 0; }
    /// The lists: results, or `outs`.
    ::mlir::ValueRange outputs() {
      if (getNumResults() != 0)
        return ::mlir::ValueRange(getLists());
      return ::mlir::ValueRange(getOuts());
    }
  }];
  let extraClassDefinition = [{
    ::mlir::Speculation::Speculatability $cppClass::getSpeculatability() {
      return isOnTensors() ? ::mlir::Speculation::Speculatable
                           : ::mlir::Speculation::NotSpeculatable;
    }
    void $cppClass::getEffects(::llvm::SmallVectorImpl<
        ::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>>
        &effects) {
      if (!isOnTensors())
        ::attn::addListEffects(*this, inputs().size(), effects);
    }
  }];
}

def Attn_BlockListsOp : Attn_ListingOp<"block_lists", [
    AttrSizedOperandSegments, IsolatedFromAbove,
    DeclareOpInterfaceMethods<OpAsmOpInterface,
                              ["getAsmBlockArgumentNames"]>]> {
  let summary = "the blocks in which a region sees pairs";
  let description = [{
    The lists that `attn.forward` takes as `blocks`, of a region as it takes in
    `sees`: for each batch entry, head and block of queries the blocks of keys
    of which some pairs are seen, and those of which all are. A block at the
    border has the pairs that there are.

    ```mlir
    %pc, %pi, %fc, %fi = attn.block_lists queries(%nq) keys(%nk) batch(1) heads(1) size 128 x 128
        captures(%doc : tensor<?xi32>)
        sees (%b, %h, %i, %j, %n, %m, %d) {
          %x = attn.read %d[%i] : tensor<?xi32>
          %y = attn.read %d[%j] : tensor<?xi32>
          %r = arith.cmpi eq, %x, %y : i32
          attn.yield %r : i1
        } : tensor<1x1x?xi32>, tensor<1x1x?x?xi32>, tensor<1x1x?xi32>, tensor<1x1x?x?xi32>
    ```

    The results are counts and indices of partial blocks, and of full ones.
    Indices rise, and behind as many as are counted they are undefined. No array
    of all pairs is made.

    #### Constraints

    - (C1) There are four lists: on tensors results, and `outs` is absent or has
      one destination of the same type for each; on memrefs `outs`. Captures are
      tensors, or memrefs, as these are.
    - (C2) Lists are i32: counts `[batch, heads, ceil(queries / block)]`,
      indices the same and `ceil(keys / block)` columns.
    - (C3) The sizes of a block are positive multiples of 64, and batch and
      heads are positive.
    - (C4) The region and its captures are as for `attn.forward`.
  }];
  let arguments = (ins Index:$queries, Index:$keys,
                       Variadic<Attn_Shaped>:$captures,
                       Variadic<Attn_Shaped>:$outs,
                       I64Attr:$batch, I64Attr:$heads,
                       DenseI64ArrayAttr:$blocks);
  let regions = (region AnyRegion:$sees);
  let hasRegionVerifier = 1;
  let extraClassDeclaration = listingMethods;
  let assemblyFormat = [{
    `queries` `(` $queries `)` `keys` `(` $keys `)` `batch` `(` $batch `)`
    `heads` `(` $heads `)` `size` custom<BlockSize>($blocks)
    custom<Sees>($captures, type($captures), $sees)
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    (`:` type($lists)^)?
  }];
}

def Attn_TransposeBlocksOp : Attn_ListingOp<"transpose_blocks"> {
  let summary = "lists of blocks by keys, of those by queries";
  let description = [{
    The lists that `attn.backward` takes as `transposed`: for each block of keys
    the blocks of queries in whose lists it is.

    ```mlir
    %tpc, %tpi, %tfc, %tfi = attn.transpose_blocks %pc, %pi, %fc, %fi
        : tensor<1x1x32xi32>, tensor<1x1x32x64xi32>, tensor<1x1x32xi32>, tensor<1x1x32x64xi32>
       -> tensor<1x1x64xi32>, tensor<1x1x64x32xi32>, tensor<1x1x64xi32>, tensor<1x1x64x32xi32>
    ```

    Indices rise, and behind as many as are counted they are undefined.

    #### Constraints

    - (C1) There are four lists, in the form of `attn.block_lists`.
    - (C2) Lists that come in are i32: counts `[batch, heads, rows]` and
      indices `[batch, heads, rows, columns]`, with a column for each block of
      keys, and both pairs of the same shape.
    - (C3) Lists that come out are i32: counts `[batch, heads, columns]` and
      indices `[batch, heads, columns, rows]`.
  }];
  let arguments = (ins Attn_Shaped:$partial_counts,
                       Attn_Shaped:$partial_indices, Attn_Shaped:$full_counts,
                       Attn_Shaped:$full_indices, Variadic<Attn_Shaped>:$outs);
  let extraClassDeclaration = listingMethods;
  let assemblyFormat = [{
    $partial_counts `,` $partial_indices `,` $full_counts `,` $full_indices
    (`outs` `(` $outs^ `:` type($outs) `)`)? attr-dict
    `:` type($partial_counts) `,` type($partial_indices) `,`
    type($full_counts) `,` type($full_indices) (`->` type($lists)^)?
  }];
}

#endif // ATTN_IR_BLOCKOPS_TD
