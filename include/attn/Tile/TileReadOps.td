//===- TileReadOps.td - Numbers that a lane reads by itself -*- tablegen -*-===//

#ifndef ATTN_TILE_TILEREADOPS_TD
#define ATTN_TILE_TILEREADOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_ReadOp : Tile_Op<"read", [NoMemoryEffect]> {
  let summary = "an element of an array, each lane its own";
  let description = [{
    Element `offset + index` of an array that nothing writes while the kernel
    runs; an i32 `index` is sign-extended, and a sum that gives it does not wrap
    around.  The result is wide enough for kernels: f32 of floats, i32 of
    integers of up to 32 bits, with their sign (of i1 0 or 1), else i64.

    With `if` an element that does not exist is not touched, and the result is
    0.  It may stand in a `tile.map`, where every element of the result has an
    index of its own.

    ```mlir
    %x = tile.read %table[%offset + %index : i32] if %exists
        : !tile.ptr<bf16> -> f32
    ```
  }];
  let arguments = (ins Tile_Ptr:$base, I64:$offset,
                       AnyTypeOf<[I32, I64]>:$index, Optional<I1>:$exists);
  let results = (outs AnyTypeOf<[F32, I32, I64]>:$result);
  let assemblyFormat = [{
    $base `[` $offset `+` $index `:` type($index) `]` (`if` $exists^)? attr-dict
    `:` type($base) `->` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The type of what is read of such elements.
    static mlir::Type resultOf(mlir::Type element);
  }];
}

#endif
