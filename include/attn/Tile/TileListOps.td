//===- TileListOps.td - Lists of blocks, ranks of sequences -*- tablegen -*-===//

#ifndef ATTN_TILE_TILELISTOPS_TD
#define ATTN_TILE_TILELISTOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_AnyOp : Tile_Op<"any", [Pure]> {
  let summary = "whether any value of a row is above 0";
  let description = [{
    One answer for the warp, of all values: of a partial row of every part.
    Unlike that of `tile.any_above` it is exact.

    ```mlir
    %some = tile.any %counts : !tile.row<16xf32, partial>
    ```
  }];
  let arguments = (ins Tile_Row:$values);
  let results = (outs I1:$result);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Tile_StoreNumberOp : Tile_Op<"store_number", [MemoryEffects<[MemWrite]>]> {
  let summary = "stores an i32 into an array, once for the warp";
  let description = [{
    The counterpart of `tile.load_number`.

    ```mlir
    tile.store_number %block to %list[%place] : !tile.ptr<i32>, i64
    ```
  }];
  let arguments = (ins I32:$value, Tile_Ptr:$base,
                       AnyTypeOf<[I32, I64]>:$index);
  let assemblyFormat = "$value `to` $base `[` $index `]` attr-dict "
                       "`:` type($base) `,` type($index)";
  let hasVerifier = 1;
}

def Tile_RankOp : Tile_Op<"rank", [MemoryEffects<[MemRead, MemWrite]>,
    HasParent<"KernelOp">]> {
  let summary = "ranks sequences by length, in a table of the block";
  let description = [{
    Sequence i has the rows from number i to number i + 1 of `offsets` and, with
    tiles of `rows` rows, the slots floor(number i / rows) + i on
    (Schedule/Ragged.h).  Its length is number i of `lengths`, or with
    `differences` the difference of number i + 1 and that.  Number i of an array
    is at element `at + i * stride`.

    Entry p of the table becomes two i32: the first slot of the sequence with
    rank p if sequences have their slots by rank, and which sequence it is.  The
    shortest has rank 0, with `descending` the longest; those of one length are
    in their own order.  If there are more sequences than entries of 8 bytes,
    the table stays as it is.

    All warps of a block execute it, and may read the table (`tile.get_number`)
    when they have met.

    ```mlir
    tile.rank %cu_q[%at, %stride] by %cu_k[%at, %stride] differences
      count %batch rows 128 to %table
      : !tile.ptr<i32>, !tile.ptr<i32> to !tile.smem<16x32xf32, sw128>
    ```
  }];
  let arguments = (ins Tile_Ptr:$offsets, I64:$at, I64:$stride,
                       Tile_Ptr:$lengths, I64:$lengths_at, I64:$lengths_stride,
                       I32:$count, ConfinedAttr<I32Attr, [IntPositive]>:$rows,
                       Tile_Smem:$table, UnitAttr:$differences,
                       UnitAttr:$descending);
  let assemblyFormat = [{
    $offsets `[` $at `,` $stride `]` `by` $lengths `[` $lengths_at `,`
    $lengths_stride `]` (`differences` $differences^)?
    (`descending` $descending^)? `count` $count `rows` $rows `to` $table
    attr-dict `:` type($offsets) `,` type($lengths) `to` type($table)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr int64_t kEntryBytes = 8;
    /// Sequences that the table has room for.
    int64_t entries() {
      return getTable().getType().totalBytes() / kEntryBytes;
    }
  }];
}

def Tile_GetNumberOp : Tile_Op<"get_number", [MemoryEffects<[MemRead]>]> {
  let summary = "loads an i32 of a buffer, the same for all lanes";
  let description = [{
    Of the buffer's bytes as they lie, whatever its layout.

    ```mlir
    %first = tile.get_number %table[%place] : !tile.smem<16x32xf32, sw128>
    ```
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$index);
  let results = (outs I32:$result);
  let assemblyFormat = "$buffer `[` $index `]` attr-dict `:` type($buffer)";
}

#endif
