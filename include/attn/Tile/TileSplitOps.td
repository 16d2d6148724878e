//===- TileSplitOps.td - f32 as sums of narrower numbers ---*- tablegen -*-===//
//
// Tensor cores multiply f32 in no more than tf32.  Products in its precision
// are sums of products of parts, in one of two ways:
//
// * two parts of tf32 and three products, for mma.sync (`tile.split`);
// * three parts of bf16 and six products, for wgmma, which takes tf32 in one
//   order only, and from shared memory in no fewer bytes (`tile.split_bf16`,
//   `tile.split_rows`);
// * two parts of f16 and three products, for wgmma too, of factors whose
//   largest number is known before they are multiplied: they are brought to
//   where f16 has room by a power of two (`tile.split_view`, `tile.split_f16`).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILESPLITOPS_TD
#define ATTN_TILE_TILESPLITOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_SplitOp : Tile_Op<"split", [Pure,
    AllTypesMatch<["high", "low"]>]> {
  let summary = "a factor of f32 as the sum of two of tf32";
  let description = [{
    `high` is (1 + 3/8192) times the source, cut off to tf32, and `low` is what
    that leaves of the source, cut off likewise: 22 bits in all.

    Why not the nearest number?  No GPU rounds f32 to tf32 by itself: cvt.rna is
    four instructions.  The multiplication makes up for the cut on average, so
    that low parts have both signs and what is left out of a product, low by
    low, cancels out; a cut alone makes sums too small.  And a NaN stays one.

    Of an infinite element `low` is a NaN, and so are sums of products with it;
    those of `high` alone come out as in f32.

    A product in nearly the precision of f32 is then the sum of three of tf32:

    ```mlir
    %0 = tile.mma %lhs_low, %rhs_high, %small : ...
    %1 = tile.mma %lhs_high, %rhs_low, %0 : ...
    %2 = tile.mma %lhs_high, %rhs_high, %large : ...
    ```
  }];
  let arguments = (ins Tile_Frag:$source);
  let results = (outs Tile_Frag:$high, Tile_Frag:$low);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($high)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    static constexpr float kCutFactor = 1 + 0x3p-13f;
  }];
}

def Tile_SplitBf16Op : Tile_Op<"split_bf16", [Pure,
    AllTypesMatch<["first", "second", "third"]>]> {
  let summary = "an accumulator as the sum of three left factors of bf16";
  let description = [{
    `first` is the source cut off to bf16, `second` what that leaves of it cut
    off likewise, `third` the rest: 24 bits in all, so the sum is the source but
    for 2^-30 of it.  That much is added so that the parts of a number all have
    its sign and none is 0: their products with an infinity are then that
    infinity, and not its opposite or a NaN.

    The rest that is left of an infinity is made 2^100, which is nothing beside
    the first part; numbers above 2^107 lose their low parts by that.  A NaN
    stays one.

    A product in the precision of f32 is the sum of six, without the three
    that are below 2^-22 of it, small ones first:

        third * first + first * third + second * second
        + second * first + first * second + first * first
  }];
  let arguments = (ins Tile_Frag:$source);
  let results = (outs Tile_Frag:$first, Tile_Frag:$second, Tile_Frag:$third);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($first)";
  let hasVerifier = 1;
}

def Tile_SplitRowsOp : Tile_Op<"split_rows",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "f32 in shared memory as the sum of three matrices of bf16";
  let description = [{
    Per warp: columns `column .. + 63` of rows `source_row .. + 7` of a stage
    become those of rows `target_row ..` of a stage of three buffers, as
    `tile.split_bf16` splits.  Rows are multiples of 8, columns of a panel's 64;
    columns behind those of the buffers are left out.
  }];
  let arguments = (ins Tile_Smem:$source, I32:$source_stage, I32:$source_row,
                       I32:$column, Tile_Smem:$first, Tile_Smem:$second,
                       Tile_Smem:$third, I32:$target_stage, I32:$target_row);
  let assemblyFormat = [{
    $source `[` $source_stage `,` $source_row `,` $column `]`
    `to` $first `,` $second `,` $third `[` $target_stage `,` $target_row `]`
    attr-dict `:` type($source) `to` type($first) `,` type($second) `,`
    type($third)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Rows and columns that an execution of the op splits.
    static constexpr int64_t kRows = 8, kColumns = 64;
  }];
}

def Tile_SplitF16Op : Tile_Op<"split_f16", [Pure,
    AllTypesMatch<["first", "second"]>]> {
  let summary = "weights as the sum of two left factors of f16";
  let description = [{
    Of numbers between 0 and 1, 2^14 times as much: `first` is that cut off to
    f16, `second` (1 + 3/16384) times the rest, the nearest of f16: 22 bits of a
    weight above 2^-17, and below it what is a multiple of 2^-38.

    The rest is 2^-24 at least, of any number but 0, so that products of both
    parts with an infinity are that infinity: therefore `first` is cut off, and
    not the nearest, which would leave rests of both signs.  A NaN stays one in
    `first`.

    A product is then the sum of three, small ones first, without second by
    second.  For that one, 2^-23 of the product on average, the factor of the
    rests makes up: without it O of random numbers has twice the error.

        second * first + first * second + first * first
  }];
  let arguments = (ins Tile_Frag:$source);
  let results = (outs Tile_Frag:$first, Tile_Frag:$second);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($first)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The parts add up to 2^this times the source.
    static constexpr int64_t kExponent = 14;
  }];
}

def Tile_SplitViewOp : Tile_Op<"split_view",
    [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands", "isCollective"]>]> {
  let summary = "rows of f32 in global memory as two parts of f16 each";
  let description = [{
    All warps of a block of threads: rows `row .. row + 127` of the source, 16
    for each of eight warps, become rows of the target, 2^e times as large and
    split as `tile.split_f16` splits, by magnitude.  A row of the target has two
    runs of columns, one for each part, in multiples of 64: those of the source,
    and zeros behind.  Both views have as many rows; what lies behind them is
    dropped.

    The power of two is the same for all these rows and brings the largest
    finite magnitude among them to 2^14 .. 2^15, but e is between -113 and what
    it is `at_most`, up to 113.  It is left in `exponents[index]`.  So what a
    row's numbers lose is below 2^-22 of a number, or 2^-39 of the largest in the
    128 rows.

    Warps tell each other of their largest numbers in `largest`, a buffer of 16
    numbers, which no other op may use.
  }];
  let arguments = (ins Tile_View:$source, Tile_View:$target, I32:$row,
                       Tile_Ptr:$exponents, I32:$index,
                       ConfinedAttr<I32Attr, [IntNonNegative,
                                              IntMaxValue<113>]>:$most,
                       Tile_Smem:$largest);
  let assemblyFormat = [{
    $source `to` $target `[` $row `]` `exponent` $exponents `[` $index `]`
    `at_most` $most `by` $largest attr-dict
    `:` type($source) `to` type($target) `,` type($exponents) `,` type($largest)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Warps, rows that each of them splits, and what the columns of a part are
    /// a multiple of.
    static constexpr int64_t kWarps = 8, kRows = 16, kColumns = 64;
    static constexpr int64_t kBlockRows = kWarps * kRows;
    static constexpr int64_t kParts = 2, kNumbers = 16;
    /// The largest magnitude becomes 2^14 .. 2^15; how far numbers are moved.
    static constexpr int32_t kLargest = 14, kLeastMove = -113, kMostMove = 113;
  }];
}

#endif
