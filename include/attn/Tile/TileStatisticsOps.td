//===- TileStatisticsOps.td - Numbers of rows and columns --*- tablegen -*-===//
//
// One number for each row of a fragment, or for each column: how statistics come
// from memory, go there, and pass from warp to warp.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TILE_TILESTATISTICSOPS_TD
#define ATTN_TILE_TILESTATISTICSOPS_TD

def Tile_PutRowOp : Tile_Op<"put_row", [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "stores one value per row of a fragment to shared memory";
  let description = [{
    Per warp: value i goes to (`row`, `column + i`) of the buffer's stage 0.
    Warps that have parts of the same rows hand each other statistics this way.
  }];
  let arguments = (ins Tile_Row:$values, Tile_Smem:$buffer, I32:$row,
                       I32:$column);
  let assemblyFormat = [{
    $values `to` $buffer `[` $row `,` $column `]` attr-dict
    `:` type($values) `to` type($buffer)
  }];
  let hasVerifier = 1;
}

def Tile_GetRowOp : Tile_Op<"get_row", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "loads what `tile.put_row` stored";
  let arguments = (ins Tile_Smem:$buffer, I32:$row, I32:$column);
  let results = (outs Tile_Row:$values);
  let assemblyFormat = [{
    $buffer `[` $row `,` $column `]` attr-dict
    `:` type($buffer) `->` type($values)
  }];
  let hasVerifier = 1;
}

def Tile_GetColumnsOp : Tile_Op<"get_columns", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface>]> {
  let summary = "loads one value per column of a fragment from shared memory";
  let description = [{
    Per warp: all rows of the fragment are the values at (`row`, `column ..`) of
    a stage.  Where queries are the columns of an accumulator, their statistics
    come this way.  `column` is a multiple of 8.
  }];
  let arguments = (ins Tile_Smem:$buffer, I32:$stage, I32:$row, I32:$column);
  let results = (outs Tile_Frag:$result);
  let assemblyFormat = [{
    $buffer `[` $stage `,` $row `,` $column `]` attr-dict
    `:` type($buffer) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_StoreRowOp : Tile_Op<"store_row", [MemoryEffects<[MemWrite]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "stores one value per row to a vector in global memory";
  let description = "Per warp: value i goes to row `row + i` of the view; "
                    "what lies behind the view is dropped.";
  let arguments = (ins Tile_Row:$values, Tile_View:$view, I32:$row);
  let assemblyFormat = [{
    $values `to` $view `[` $row `]` attr-dict
    `:` type($values) `to` type($view)
  }];
  let hasVerifier = 1;
}

def Tile_LoadRowOp : Tile_Op<"load_row", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "loads one value per row from a vector in global memory";
  let description = "Per warp: value i is that of row `row + i` of the view, "
                    "which has a row at least; 0 behind the view.";
  let arguments = (ins Tile_View:$view, I32:$row);
  let results = (outs Tile_Row:$values);
  let assemblyFormat = [{
    $view `[` $row `]` attr-dict `:` type($view) `->` type($values)
  }];
  let hasVerifier = 1;
}

def Tile_RowDotOp : Tile_Op<"row_dot", [MemoryEffects<[MemRead]>,
    DeclareOpInterfaceMethods<Tile_TrafficInterface,
      ["getTrafficOperands"]>]> {
  let summary = "the inner products of rows of two views";
  let description = [{
    Per warp: value i is the sum over all columns of `lhs[row + i]` times
    `rhs[row + i]`, in f32; 0 behind the views, which have as many rows.  The
    gradient of a softmax needs those of O and its gradient.  The views are alike
    but for their alignment: rows of two arrays begin where each puts them.
  }];
  let arguments = (ins Tile_View:$lhs, Tile_View:$rhs, I32:$row);
  let results = (outs Tile_Row:$values);
  let assemblyFormat = [{
    $lhs `,` $rhs `[` $row `]` attr-dict
    `:` type($lhs) `,` type($rhs) `->` type($values)
  }];
  let hasVerifier = 1;
}

#endif
