//===- TileRewriteOps.td - 8-bit matrices, rewritten -------*- tablegen -*-===//
//
// Tensor cores take 8-bit factors in one order only, and both factors of a
// product in one type.  So what TMA has put into shared memory is rewritten
// there, by warps beside those that multiply: by columns (`tile.transpose`), or
// in the type of the other factor (`tile.widen_rows`).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILEREWRITEOPS_TD
#define ATTN_TILE_TILEREWRITEOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_TransposeOp : Tile_Op<"transpose",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "transposes rows of an 8-bit matrix in shared memory";
  let description = [{
    Per warp: rows `row .. row + 31` of a stage, with all their columns, become
    columns `row ..` of a stage of the target.  `row` is a multiple of 32.

    wgmma contracts 8-bit factors along the columns only, so the V of O += P V
    (keys x d) must become its transpose (d x keys), in the layout that suits a
    P in registers.
  }];
  let arguments = (ins Tile_Smem:$source, I32:$source_stage, I32:$row,
                       Tile_Smem:$target, I32:$target_stage);
  let assemblyFormat = [{
    $source `[` $source_stage `,` $row `]` `to` $target `[` $target_stage `]`
    attr-dict `:` type($source) `to` type($target)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows that an execution of the op transposes.
    static constexpr int64_t kRows = 32;
  }];
}

def Tile_WidenRowsOp : Tile_Op<"widen_rows",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "rows of an 8-bit matrix in shared memory, in 16 bits";
  let description = [{
    Per warp: columns `column .. + 63` of rows `row .. row + 15` of a stage
    become those of the same rows of a stage of the target.  Rows are multiples
    of 16, columns of a panel's 64; columns behind those of the buffers are left
    out.

    Every number of f8E4M3FN is one of bf16 and of f16, and a NaN stays one.
    The copy engine moves bytes as they are: a cache of 8 bits comes from memory
    in half the bytes, and becomes what is multiplied here.
  }];
  let arguments = (ins Tile_Smem:$source, I32:$source_stage, I32:$row,
                       I32:$column, Tile_Smem:$target, I32:$target_stage);
  let assemblyFormat = [{
    $source `[` $source_stage `,` $row `,` $column `]`
    `to` $target `[` $target_stage `]`
    attr-dict `:` type($source) `to` type($target)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows and columns that an execution of the op widens.
    static constexpr int64_t kRows = 16, kColumns = 64;
  }];
}

#endif
