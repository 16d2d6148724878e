//===- TileOps.td - What a kernel does ---------------------*- tablegen -*-===//

#ifndef ATTN_TILE_TILEOPS_TD
#define ATTN_TILE_TILEOPS_TD

include "attn/Tile/TileDialect.td"
include "attn/Tile/TileTypes.td"
include "attn/Tile/TrafficInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// Kernels and launches
//===----------------------------------------------------------------------===//

def Tile_KernelOp : Tile_Op<"kernel", [FunctionOpInterface, IsolatedFromAbove,
    Symbol, AutomaticAllocationScope]> {
  let summary = "a GPU kernel";
  let description = [{
    A function that a grid of blocks executes, `warps` warps a block.  Its
    arguments are base addresses (`!tile.ptr`), tensor maps and scalars; it
    returns nothing.
    `min_blocks_per_sm` is how many blocks the plan counts on per
    multiprocessor, which bounds the registers of a thread.  Warps may be dealt
    out to `tile.roles`.  `cluster` blocks, neighbours along dimension 0 of a
    grid that is a multiple of it, run side by side and reach each other's
    shared memory.  The blocks of a `cooperative` kernel may wait for one
    another: all of them run at the same time, or the launch fails.  The
    attributes `schedule`, `machine` and `problem` say what it was built for.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs,
    I32Attr:$warps, DefaultValuedAttr<I32Attr, "1">:$min_blocks_per_sm,
    DefaultValuedAttr<I32Attr, "1">:$cluster, UnitAttr:$cooperative);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "mlir::StringRef":$name,
    "mlir::FunctionType":$type, "int64_t":$warps, "int64_t":$minBlocksPerSm)>];
  let extraClassDeclaration = [{
    mlir::ArrayRef<mlir::Type> getArgumentTypes() {
      return getFunctionType().getInputs();
    }
    mlir::ArrayRef<mlir::Type> getResultTypes() {
      return getFunctionType().getResults();
    }
    mlir::Region *getCallableRegion() { return &getBody(); }
    /// Threads of a block.
    int64_t threads() { return 32 * int64_t(getWarps()); }
    /// Whether it may be launched before the launch before it has ended.
    bool awaitsLaunch();
  }];
}

def Tile_ReturnOp : Tile_Op<"return", [Pure, Terminator, HasParent<"KernelOp">]> {
  let summary = "ends a kernel";
  let assemblyFormat = "attr-dict";
}

def Tile_LaunchOp : Tile_Op<"launch", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "launches a kernel over a grid";
  let description = [{
    Host side.  A `!tile.ptr` argument of the kernel takes a memref (its
    aligned pointer; the offset is a scalar argument like the strides), a
    `!tile.tensor_map` a memref of rank 4, whose map is made for the launch.  A
    launch with an empty grid does nothing.
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Index:$grid_x, Index:$grid_y,
    Index:$grid_z, Variadic<AnyType>:$kernel_operands);
  let assemblyFormat = [{
    $kernel `grid` `(` $grid_x `,` $grid_y `,` $grid_z `)`
    `args` `(` $kernel_operands `)` attr-dict (`:` type($kernel_operands)^)?
  }];
}

def Tile_CounterOp : Tile_Op<"counter"> {
  let summary = "numbers in device memory that kernels share and leave at 0";
  let description = [{
    Host side: i32s that hold 0 and that no other launch in flight uses.  The
    kernels they are given to leave them at 0 again (`tile.draw`,
    `tile.publish`).
  }];
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_ScratchOp : Tile_Op<"scratch"> {
  let summary = "device memory for the launches of a function";
  let description = [{
    Host side: elements with any contents, row-major, which nobody else uses
    before the function's launches are done.  There is one of `sizes` for each dynamic
    extent.
  }];
  let arguments = (ins Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "(`(` $sizes^ `)`)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "mlir::Type":$type), [{
    build($_builder, $_state, type, mlir::ValueRange());
  }]>];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Position
//===----------------------------------------------------------------------===//

def Tile_ProgramIdOp : Tile_Op<"program_id", [Pure]> {
  let summary = "the block's position in the grid, dimension 0, 1 or 2";
  let arguments = (ins ConfinedAttr<I32Attr,
    [IntMinValue<0>, IntMaxValue<2>]>:$dim);
  let results = (outs I32:$result);
  let assemblyFormat = "$dim attr-dict";
}

def Tile_GridSizeOp : Tile_Op<"grid_size", [Pure]> {
  let summary = "blocks of the grid along dimension 0, 1 or 2";
  let arguments = (ins ConfinedAttr<I32Attr,
    [IntMinValue<0>, IntMaxValue<2>]>:$dim);
  let results = (outs I32:$result);
  let assemblyFormat = "$dim attr-dict";
}

def Tile_WarpIdOp : Tile_Op<"warp_id", [Pure]> {
  let summary = "the warp's position in the block";
  let results = (outs I32:$result);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Tile_ViewOp : Tile_Op<"view", [Pure]> {
  let summary = "rows of a global array";
  let description = [{
    Row i starts at element `offset + i * stride` of the array.  `rows` is the
    number of rows that exist.  The alignment of the view's type is a promise
    of who builds the kernel, kept by who launches it.
  }];
  let arguments = (ins Tile_Ptr:$base, I64:$offset, I32:$rows, I64:$stride);
  let results = (outs Tile_View:$result);
  let assemblyFormat = [{
    $base `[` $offset `]` `rows` `(` $rows `)` `stride` `(` $stride `)`
    attr-dict `:` type($base) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_LoadNumberOp : Tile_Op<"load_number", [MemoryEffects<[MemRead]>]> {
  let summary = "a whole number of an array, the same for all lanes";
  let description = "It decides what a warp does: a block of a list, how many "
                    "there are, or the exponent that `tile.split_view` left.  "
                    "An i64 that is no i32 is the nearest one.";
  let arguments = (ins Tile_Ptr:$base, AnyTypeOf<[I32, I64]>:$index);
  let results = (outs I32:$result);
  let assemblyFormat =
      "$base `[` $index `]` attr-dict `:` type($base) `,` type($index)";
  let hasVerifier = 1;
}

def Tile_AllocOp : Tile_Op<"alloc", [MemoryEffects<[MemAlloc]>]> {
  let summary = "reserves a buffer in shared memory for the whole kernel";
  let description = "The name is for people: diagnostics of the footprint "
                    "check use it.  Contents are undefined.";
  let arguments = (ins StrAttr:$name);
  let results = (outs Tile_Smem:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Tile_AliasOp : Tile_Op<"alias", [Pure]> {
  let summary = "the same bytes under another shape";
  let description = "The result may not be larger than the buffer.";
  let arguments = (ins Tile_Smem:$buffer);
  let results = (outs Tile_Smem:$result);
  let assemblyFormat = "$buffer attr-dict `:` type($buffer) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_CopyAsyncOp : Tile_Op<"copy_async", [
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands", "isCollective"]>]> {
  let summary = "starts copying rows of a view into a stage of a buffer";
  let description = [{
    Collective: the warps of the block copy the rows
    `row .. row + rows(buffer) - 1` together; `row` is not negative.  Rows
    behind the view and columns behind the view's columns become zero.  The
    copy belongs to the next group that its warp commits.

    Of a vector, as many elements from `row` on become the only row of a stage.

    `rolled` asks for a loop where the copy would be written out: one address at
    a time, for kernels that are short of registers.
  }];
  let arguments = (ins Tile_View:$view, I32:$row, Tile_Smem:$buffer,
                       I32:$stage, UnitAttr:$rolled);
  let assemblyFormat = [{
    $view `[` $row `]` `to` $buffer `[` $stage `]` (`rolled` $rolled^)? attr-dict
    `:` type($view) `to` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_CommitGroupOp : Tile_Op<"commit_group",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "closes the warp's current group of asynchronous copies";
  let assemblyFormat = "attr-dict";
}

def Tile_WaitGroupOp : Tile_Op<"wait_group",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most so many groups of the warp are in flight";
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>]>:$in_flight);
  let assemblyFormat = "$in_flight attr-dict";
}

def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all warps of the block arrive before any goes on";
  let assemblyFormat = "attr-dict";
}

include "attn/Tile/TileRoleOps.td"
include "attn/Tile/TileExchangeOps.td"

//===----------------------------------------------------------------------===//
// Matrices in shared memory
//===----------------------------------------------------------------------===//

def Tile_LoadMatrixOp : Tile_Op<"load_matrix", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "loads an operand fragment from shared memory (ldmatrix)";
  let description = [{
    Per warp.  The fragment is the part of the stage at (`row`, `column`), or
    with `transpose` the transpose of that part: for S = Q Kᵀ the `rhs` (d x
    keys) is the transpose of a part of K (keys x d).  `row` and `column` are
    multiples of 8.

    For dK = dSᵀ Q the `lhs` (keys x queries) is the transpose of a part of dS.
    A swizzled buffer has elements of 16 bits.

    f32 becomes a factor of f32: `lhs`, `lhs_paired` and the transpose of rows
    of K as `rhs`; rows of V as `rhs_paired`, which needs no transpose; and the
    transpose of rows of dS as `lhs_paired`.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$stage, I32:$row, I32:$column,
                       UnitAttr:$transpose);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $buffer `[` $stage `,` $row `,` $column `]` (`transpose` $transpose^)?
    attr-dict `:` type($buffer) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreMatrixOp : Tile_Op<"store_matrix", [AttrSizedOperandSegments,
    MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "rounds an accumulator and stores it to shared memory";
  let description = [{
    Per warp, at (`row`, `column`) of a stage of the buffer, the first one if
    none is named; without a column at column 0.  A column is a multiple of 8.

    A left factor in the type of a buffer of panels goes there as it is.
  }];
  let arguments = (ins Tile_Frag:$fragment, Tile_Smem:$buffer, I32:$row,
                       Optional<I32>:$column, Optional<I32>:$stage);
  let assemblyFormat = [{
    $fragment `to` $buffer `[` $row (`,` $column^)? `]`
    (`stage` `(` $stage^ `)`)? attr-dict
    `:` type($fragment) `to` type($buffer)
  }];
  let builders = [OpBuilder<(ins "mlir::Value":$fragment,
      "mlir::Value":$buffer, "mlir::Value":$row,
      CArg<"mlir::Value", "{}">:$column), [{
    build($_builder, $_state, fragment, buffer, row, column,
          /*stage=*/mlir::Value());
  }]>];
  let hasVerifier = 1;
}

def Tile_StoreTransposedOp : Tile_Op<"store_transposed",
    [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "stores the transpose of a left factor to shared memory";
  let description = [{
    Per warp: element (i, j) of the fragment goes to (`row + j`, `column + i`)
    of a stage.  `row` is a multiple of 8 and `column` of 16.  What a product
    gave with keys as rows becomes a left factor with keys as columns.
  }];
  let arguments = (ins Tile_Frag:$fragment, Tile_Smem:$buffer, I32:$stage,
                       I32:$row, I32:$column);
  let assemblyFormat = [{
    $fragment `to` $buffer `[` $stage `,` $row `,` $column `]` attr-dict
    `:` type($fragment) `to` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_CopyOutOp : Tile_Op<"copy_out", [MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "stores rows of a buffer to a view";
  let description = [{
    Per warp: rows `source_row .. + count - 1` of the buffer's stage 0 go to
    rows `row ..` of the view; what lies behind the view is dropped.  The warp
    sees its own earlier stores to the buffer.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$source_row, Tile_View:$view,
                       I32:$row, I32Attr:$count);
  let assemblyFormat = "$buffer `[` $source_row `]` `to` $view `[` $row `]` "
      "`count` $count attr-dict `:` type($buffer) `to` type($view)";
  let hasVerifier = 1;
}

include "attn/Tile/TileStatisticsOps.td"
include "attn/Tile/TileReadOps.td"
include "attn/Tile/TileListOps.td"
include "attn/Tile/TileAddOps.td"

//===----------------------------------------------------------------------===//
// Arithmetic on fragments and rows
//===----------------------------------------------------------------------===//

def Tile_FillOp : Tile_Op<"fill", [Pure]> {
  let summary = "a fragment or row of one value";
  let arguments = (ins AnyTypeOf<[F32, I32]>:$value);
  let results = (outs AnyTypeOf<[Tile_Frag, Tile_Row]>:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_MmaOp : Tile_Op<"mma", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "acc + lhs * rhs on the tensor cores (mma.sync)";
  let description = [{
    Factors are of one 16-bit type, or of tf32 and then both paired or neither.

    Products are exact, but the tensor cores cut their sums off where f32 ends:
    with every instruction, which contracts 32 bytes, an accumulator loses half
    a unit of its last place on average, always towards zero.
  }];
  let arguments = (ins Tile_Frag:$lhs, Tile_Frag:$rhs, Tile_Frag:$acc);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $acc attr-dict
    `:` type($lhs) `,` type($rhs) `,` type($acc)
  }];
  let hasVerifier = 1;
}

def Tile_WgmmaOp : Tile_Op<"wgmma", [AttrSizedOperandSegments,
    MemoryEffects<[MemRead, MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "starts acc + lhs * rhs on the tensor cores (wgmma)";
  let description = [{
    The four warps of a warpgroup execute it together; each brings 16 rows.  The
    left factor is a fragment of the warp, or lies in shared memory: then warp w
    of the warpgroup takes the rows from `row + 16 w` on.  With `lhs_transpose`
    it is the transpose of what lies there (k x m, of 16 bits), and `row` a
    column, a multiple of a panel's 64.  The right factor is a
    stage of a buffer (k x n), or with `transpose` the transpose of one (n x k).
    Of a stage that is wider than the product the first columns take part, or
    those from `rhs_column` on, a multiple of a panel's 64.
    Without `acc` the sum starts at 0; an `acc` that is pending goes on with the
    sum of a product in flight, in the same registers, and takes its place.
    Columns of the factors beyond the contracted extent take no part.

    Factors of 8 bits are contracted along their columns (`transpose`); the
    right one is `sw128_paired` when the left one is a fragment, and only then.

    One op is one group of instructions: they run one behind the other while the
    warp goes on, and `tile.wgmma_wait` ends them.  Until then the buffers must
    stay as they are.  An `open` one is not: the next op, which goes on with its
    sum before anything is waited for, belongs to the same group.
  }];
  let arguments = (ins AnyTypeOf<[Tile_Frag, Tile_Smem]>:$lhs,
    Optional<I32>:$lhs_stage, Optional<I32>:$lhs_row, UnitAttr:$lhs_transpose,
    Tile_Smem:$rhs, I32:$rhs_stage, Optional<I32>:$rhs_column,
    UnitAttr:$transpose,
    Optional<AnyTypeOf<[Tile_Frag, Tile_Pending]>>:$acc, UnitAttr:$open);
  let results = (outs Tile_Pending:$result);
  let assemblyFormat = [{
    $lhs (`[` $lhs_stage^ `,` $lhs_row `]`)? (`transpose` $lhs_transpose^)? `,`
    $rhs `[` $rhs_stage (`,` $rhs_column^)? `]` (`transpose` $transpose^)?
    (`acc` `(` $acc^ `:` type($acc) `)`)? (`open` $open^)? attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "mlir::Type":$result, "mlir::Value":$lhs,
      "mlir::Value":$lhsStage, "mlir::Value":$lhsRow, "mlir::Value":$rhs,
      "mlir::Value":$rhsStage, "bool":$transpose, "mlir::Value":$acc), [{
    build($_builder, $_state, result, lhs, lhsStage, lhsRow, rhs, rhsStage,
          /*rhs_column=*/mlir::Value(), transpose, acc);
  }]>, OpBuilder<(ins "mlir::Type":$result, "mlir::Value":$lhs,
      "mlir::Value":$lhsStage, "mlir::Value":$lhsRow, "mlir::Value":$rhs,
      "mlir::Value":$rhsStage, "mlir::Value":$rhsColumn, "bool":$transpose,
      "mlir::Value":$acc), [{
    build($_builder, $_state, result, lhs, lhsStage, lhsRow,
          /*lhs_transpose=*/false, rhs, rhsStage, rhsColumn, transpose, acc);
  }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The contracted extent.
    int64_t depth();
    /// Whether it belongs to the group of the product that it goes on with.
    bool joins();
  }];
}

def Tile_WgmmaWaitOp : Tile_Op<"wgmma_wait",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most so many products of the warp are in flight";
  let description = [{
    Takes the products that are then done, all of them, oldest first, and gives
    their accumulators.  `in_flight` is the number of younger ones in the block.
    Without products only the buffers of the older ones are free again.
  }];
  let arguments = (ins ConfinedAttr<I32Attr, [IntMinValue<0>]>:$in_flight,
                       Variadic<Tile_Pending>:$products);
  let results = (outs Variadic<Tile_Frag>:$fragments);
  let assemblyFormat = [{
    $in_flight (`,` $products^)? attr-dict
    (`:` type($products)^ `->` type($fragments))?
  }];
  let hasVerifier = 1;
}

def Tile_CastOp : Tile_Op<"cast", [Pure]> {
  let summary = "rounds an accumulator to the left operand of the next product, "
                "or the reverse, or a factor of f32 to tf32";
  let description = [{
    The layouts agree lane by lane, so this is a conversion of values and a
    relabelling of registers; nothing crosses lanes.  An accumulator becomes
    `lhs`, or `lhs_paired` in tf32; a left operand of 16 bits an accumulator,
    which has its values; a factor of f32 keeps its layout.  tf32 is rounded
    to nearest, ties away from zero (cvt.rna).
  }];
  let arguments = (ins Tile_Frag:$source);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

include "attn/Tile/TileRewriteOps.td"
include "attn/Tile/TileSplitOps.td"

def Tile_ExtractOp : Tile_Op<"extract", [Pure]> {
  let summary = "columns of a fragment";
  let arguments = (ins Tile_Frag:$source, I64Attr:$column);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $source `[` $column `]` attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ConcatOp : Tile_Op<"concat", [Pure]> {
  let summary = "two fragments of the same rows, side by side";
  let arguments = (ins Tile_Frag:$left, Tile_Frag:$right);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $left `,` $right attr-dict
    `:` type($left) `,` type($right) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [Pure, SingleBlock]> {
  let summary = "an elementwise function of fragments and rows";
  let description = [{
    The result is a fragment (then the region is called with row, column and
    one element per operand, a row operand giving the value of that row) or a
    row (then with row and one element per operand).  Row and column are i32
    and count from the fragment's corner.  The region has scalar ops only and
    may use scalars of the kernel.

    ```mlir
    %p = tile.map %s, %m : !tile.frag<16x64xf32, acc>, !tile.row<16xf32>
        -> !tile.frag<16x64xf32, acc> {
    ^bb0(%row: i32, %column: i32, %x: f32, %y: f32):
      %d = arith.subf %x, %y : f32
      tile.yield %d : f32
    }
    ```
  }];
  let arguments = (ins Variadic<AnyTypeOf<[Tile_Frag, Tile_Row]>>:$inputs);
  let results = (outs AnyTypeOf<[Tile_Frag, Tile_Row]>:$result);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    ($inputs^ `:` type($inputs))? `->` type($result) attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, HasParent<"MapOp">]> {
  let summary = "the value of an element";
  let arguments = (ins AnyTypeOf<[F32, I32]>:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Tile_RowReduceOp : Tile_Op<"row_reduce", [Pure]> {
  let summary = "reduces every row of an accumulator";
  let description = [{
    `max` combines the four lanes of a row at once and gives a whole row; NaN
    is passed over (IEEE maximumNumber), it reaches the output through the
    exponentials.  `add` leaves each lane its part: a partial row; `max` does so
    if its result is one.  With `init` the result includes it.
  }];
  let arguments = (ins Tile_Reduction:$kind, Tile_Frag:$source,
                       Optional<Tile_Row>:$init);
  let results = (outs Tile_Row:$result);
  let assemblyFormat = [{
    $kind $source (`init` `(` $init^ `:` type($init) `)`)? attr-dict
    `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_RowCombineOp : Tile_Op<"row_combine", [Pure]> {
  let summary = "adds the four parts of every row, or takes their maximum";
  let arguments = (ins UnitAttr:$max, Tile_Row:$source);
  let results = (outs Tile_Row:$result);
  let assemblyFormat = [{
    (`max` $max^)? $source attr-dict `:` type($source) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_KeepColumnsOp : Tile_Op<"keep_columns",
    [Pure, AllTypesMatch<["source", "result"]>]> {
  let summary = "a run of columns in every row, and -inf elsewhere";
  let description = [{
    Keeps the columns `first[row] .. last[row]` of an accumulator, or those up
    to `last[row]`.  Columns count from the fragment's corner; a row's run may
    be empty, and may begin before the fragment or end behind it.

    ```mlir
    %y = tile.keep_columns %x from %first : !tile.row<16xi32> to %last
        : !tile.frag<16x64xf32, acc>, !tile.row<16xi32>
    ```
  }];
  let arguments = (ins Tile_Frag:$source, Optional<Tile_Row>:$first,
                       Tile_Row:$last);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $source (`from` $first^ `:` type($first))? `to` $last attr-dict
    `:` type($source) `,` type($last)
  }];
  let hasVerifier = 1;
}

def Tile_AnyAboveOp : Tile_Op<"any_above", [Pure]> {
  let summary = "whether any value of a row exceeds its row's limit";
  let description = [{
    One answer for the warp, taken to be rarely yes.  The values are those of an
    accumulator or of a row (a partial one by one).  A NaN is no reason for yes,
    but yes is always allowed: the kernel must be right either way.  (Under that
    license the values of an accumulator are compared as integers.)
  }];
  let arguments = (ins AnyTypeOf<[Tile_Frag, Tile_Row]>:$values,
                       Tile_Row:$limits);
  let results = (outs I1:$result);
  let assemblyFormat = [{
    $values `,` $limits attr-dict `:` type($values) `,` type($limits)
  }];
  let hasVerifier = 1;
}

#endif
