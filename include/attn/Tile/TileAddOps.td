//===- TileAddOps.td - Sums of what elements have ----------*- tablegen -*-===//

#ifndef ATTN_TILE_TILEADDOPS_TD
#define ATTN_TILE_TILEADDOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_TotalOp : Tile_Op<"total", [Pure]> {
  let summary = "the sum of all values of a row";
  let description = [{
    One number for the warp; of a partial row the sum of all parts.

    ```mlir
    %sum = tile.total %values : !tile.row<16xf32>
    ```
  }];
  let arguments = (ins Tile_Row:$values);
  let results = (outs F32:$result);
  let assemblyFormat = "$values attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def Tile_AddElementsOp : Tile_Op<"add_elements", [
    SingleBlock, MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "adds a function of each element to an array in global memory";
  let description = [{
    The region is that of a `tile.map` over the first operand, a fragment, and
    ends in a `tile.add`: which value is added, and to which element of the
    array behind `offset`.  In which order values come to an element is open,
    and each is added at once.  Nobody else reads or writes these elements in
    the same launch.

    Traffic counts a word for every element of the fragment, also for those that
    `if` leaves out.

    ```mlir
    tile.add_elements %s to %array[%offset]
        : !tile.frag<16x64xf32, acc> to !tile.ptr<f32> {
    ^bb0(%row: i32, %column: i32, %x: f32):
      %there = arith.cmpi slt, %column, %keys : i32
      tile.add %x at %column : i32 if %there
    }
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$inputs,
                       Tile_Ptr:$base, I64:$offset);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $inputs `to` $base `[` $offset `]` `:` type($inputs) `to` type($base)
    attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Tile_AddOp : Tile_Op<"add", [Pure, Terminator,
                                 HasParent<"AddElementsOp">]> {
  let summary = "what an element adds, and where";
  let description = [{
    An i32 `index` is sign-extended.  With `if` an element that does not hold is
    left out.
  }];
  let arguments = (ins F32:$value, AnyTypeOf<[I32, I64]>:$index,
                       Optional<I1>:$exists);
  let assemblyFormat = [{
    $value `at` $index `:` type($index) (`if` $exists^)? attr-dict
  }];
}

#endif
