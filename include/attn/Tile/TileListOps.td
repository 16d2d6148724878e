//===- TileListOps.td - What makes lists of blocks ---------*- tablegen -*-===//

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

#endif
