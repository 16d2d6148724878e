//===- TileTypes.td - Pointers, views, buffers, fragments --*- tablegen -*-===//

#ifndef ATTN_TILE_TILETYPES_TD
#define ATTN_TILE_TILETYPES_TD

include "attn/Tile/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Tile_FragmentLayout : I32EnumAttr<"FragmentLayout",
    "which operand of a tensor-core product a fragment is", [
      I32EnumAttrCase<"acc", 0>, I32EnumAttrCase<"lhs", 1>,
      I32EnumAttrCase<"rhs", 2>, I32EnumAttrCase<"lhs_paired", 3>,
      I32EnumAttrCase<"rhs_paired", 4>]> {
  let cppNamespace = "::attn::tile";
  let genSpecializedAttr = 0;
}

def Tile_Reduction : I32EnumAttr<"Reduction", "how a row is reduced", [
      I32EnumAttrCase<"max", 0>, I32EnumAttrCase<"add", 1>]> {
  let cppNamespace = "::attn::tile";
}

class Tile_Type<string name, string mnem> : TypeDef<Tile_Dialect, name> {
  let mnemonic = mnem;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Tile_Ptr : Tile_Type<"Ptr", "ptr"> {
  let summary = "base address of an array in global memory";
  let description = "`!tile.ptr<bf16>`: element type only; extents and strides "
                    "are scalars of the kernel.";
  let parameters = (ins "mlir::Type":$elementType);
}

def Tile_View : Tile_Type<"View", "view"> {
  let summary = "rows of a matrix (or of a vector) in global memory";
  let description = [{
    `!tile.view<?x128xbf16, align = 16>`: a run-time number of rows of 128
    contiguous elements; every row starts at a multiple of `align` bytes.
    `!tile.view<?xf32, align = 4>`: one element per row.
  }];
  let parameters = (ins "int64_t":$columns, "mlir::Type":$elementType,
                        "int64_t":$align);
  let extraClassDeclaration = [{
    /// A vector (one element per row) has no column count.
    static constexpr int64_t kVector = 0;
    bool isVector() const { return getColumns() == kVector; }
    /// Bytes of one row.
    int64_t rowBytes() const;
  }];
}

def Tile_SmemLayout : I32EnumAttr<"SmemLayout",
    "where the elements of a buffer lie", [
      I32EnumAttrCase<"padded", 0>, I32EnumAttrCase<"sw128", 1>,
      I32EnumAttrCase<"sw128_paired", 2>, I32EnumAttrCase<"staggered", 3>]> {
  let cppNamespace = "::attn::tile";
  let genSpecializedAttr = 0;
}

def Tile_Smem : Tile_Type<"Smem", "smem"> {
  let summary = "a buffer in shared memory";
  let description = [{
    `!tile.smem<64x128xbf16>`: 64 rows of 128 columns; with a third, leading
    extent a ring of stages, `!tile.smem<2x64x128xbf16>`.  There are four
    layouts.

    Without a word, *padded*.  A row of 16-bit elements takes its columns
    rounded up to an *odd* number of sectors of 32 bytes, and in the upper four
    of eight rows the two halves of each have changed places.  Eight rows at one
    column then lie in eight different groups of four banks, so `ldmatrix`,
    16-byte copies and fragment stores meet no bank conflict.  A row of f32
    takes an odd number of 16-byte pieces, with the same effect.

    What a copy brings of a sector of global memory should lie in one of shared
    memory: if it lies across two, it crosses the way from L2 twice.  Padded
    rows all begin at whole sectors, as those of an array do whose length is a
    multiple of 32 bytes.  (With rows of f32 every other one is across: 1.5
    times the bytes by counters of an H100, 2026-11-21.)

    `!tile.smem<2x64x80xbf16, staggered>` is for rows of an array whose length
    is an odd number of 16 bytes, as with 72 columns: every other one begins in
    the middle of a sector, and so do these.  A row takes an odd number of
    16-byte pieces, which also spreads eight of them over all banks.

    `!tile.smem<2x64x128xbf16, sw128>` is what TMA writes and wgmma reads:
    panels of 128 bytes of columns, one behind the other, each with all rows;
    in a panel row r takes 128 bytes and its 16-byte piece j lies at place
    j ^ (r % 8).  A stage begins at a multiple of 1024 bytes.

    `!tile.smem<2x64x128xf8E4M3FN, sw128_paired>`: the same, but within a piece,
    16 columns, byte 4q + e holds column 8 (e / 2) + 2q + e % 2.  Those are the
    columns that a lane has of an accumulator, one behind the other, so that
    wgmma multiplies a rounded accumulator by the rows of such a buffer where
    it is, with nothing crossing lanes (`lhs` of 8 bits in `!tile.frag`).

    Elements have 16 bits, in the two swizzled layouts also 8, in padded and
    sw128 also 32 (f32).  A padded buffer of f32 may have any number of rows:
    statistics lie in rows too (`tile.put_row`).  In sw128 it has a multiple of
    8.
  }];
  let parameters = (ins "int64_t":$stages, "int64_t":$rows, "int64_t":$columns,
                        "mlir::Type":$elementType, "SmemLayout":$layout);
  let builders = [TypeBuilderWithInferredContext<(ins "int64_t":$stages,
      "int64_t":$rows, "int64_t":$columns, "mlir::Type":$elementType), [{
    return $_get(elementType.getContext(), stages, rows, columns, elementType,
                 SmemLayout::padded);
  }]>];
  let extraClassDeclaration = [{
    /// Bytes of a panel's row, and of the block whose rows a swizzle permutes.
    static constexpr int64_t kPanelBytes = 128, kSwizzleBytes = 1024;

    /// Columns of a piece in `sw128_paired`.
    static constexpr int64_t kPairedColumns = 16;

    /// Whether there are panels: sw128, with its pieces as they are or paired.
    bool isSwizzled() const {
      return getLayout() == SmemLayout::sw128 || isPaired();
    }
    bool isPaired() const { return getLayout() == SmemLayout::sw128_paired; }
    /// The byte of a piece of `sw128_paired` that holds a column.
    static int64_t pairedByte(int64_t column) {
      return column % 8 / 2 * 4 + column / 8 * 2 + column % 2;
    }
    /// Whether rows 4 to 7 of eight have the halves of 32 bytes swapped.
    bool swapsHalves() const {
      return getLayout() == SmemLayout::padded && elementBytes() == 2;
    }
    /// Bytes of one element.
    int64_t elementBytes() const;
    /// Bytes from one row to the next; in a panel, if the layout has panels.
    int64_t pitchBytes() const;
    /// Columns of a panel, and how many panels there are.
    int64_t panelColumns() const { return kPanelBytes / elementBytes(); }
    int64_t panels() const;
    /// Bytes from one panel to the next.
    int64_t panelBytes() const { return getRows() * kPanelBytes; }
    /// Bytes from one stage to the next.
    int64_t stageBytes() const;
    /// Bytes of the whole buffer, padding included.
    int64_t totalBytes() const { return getStages() * stageBytes(); }
    /// Bytes of the elements of one stage, padding not included.
    int64_t tileBytes() const {
      return getRows() * getColumns() * elementBytes();
    }
    /// What divides the address of a stage.
    int64_t alignment() const { return isSwizzled() ? kSwizzleBytes : 128; }
  }];
}

def Tile_TensorMap : Tile_Type<"TensorMap", "tensor_map"> {
  let summary = "how TMA finds the boxes of an array in global memory";
  let description = [{
    `!tile.tensor_map<128x96xbf16>`: of an array [batch, heads, rows, 96] of
    bf16, boxes of 128 rows (at most 256) and all columns, moved panel by panel
    of 128 bytes and laid out as `sw128`.  What lies outside the array reads as
    zero and is not written.  The map is made by who launches the kernel, from
    the array's address, extents and strides; rows, heads and batch entries
    begin at multiples of 16 bytes.  The array may be narrower: then nobody asks
    for columns that it does not have.

    `!tile.tensor_map<64x?xbf16>`: an array of any number of columns, which who
    launches the kernel knows; outside of these too, zeros are read and nothing
    is written.
  }];
  let parameters = (ins "int64_t":$boxRows, "int64_t":$columns,
                        "mlir::Type":$elementType);
  let extraClassDeclaration = [{
    static constexpr int64_t kMaxBoxRows = 256;
    static constexpr int64_t kAnyColumns = mlir::ShapedType::kDynamic;
    bool hasAnyColumns() const { return getColumns() == kAnyColumns; }
    /// Whether arrays of so many columns have such a map.
    bool fits(int64_t columns) const {
      return hasAnyColumns() || columns <= getColumns();
    }
  }];
}

def Tile_Mbarrier : Tile_Type<"Mbarrier", "mbarrier"> {
  let summary = "a ring of mbarriers in shared memory";
  let description = [{
    `!tile.mbarrier<2>`: two barriers.  A barrier goes from phase to phase: a
    phase ends when as many arrivals as `tile.mbarrier` says have come and all
    bytes announced in it have landed.  Phases count from 0; who waits names
    the parity of the phase whose end it waits for.
  }];
  let parameters = (ins "int64_t":$slots);
}

def Tile_Queue : Tile_Type<"Queue", "queue"> {
  let summary = "a ring of small messages in shared memory";
  let description = [{
    `!tile.queue<2x4>`: two slots of four i32.  One warp pushes; all readers pop
    every message.
  }];
  let parameters = (ins "int64_t":$slots, "int64_t":$values);
  let extraClassDeclaration = [{
    /// A message is one piece of so many values or two.
    static constexpr int64_t kPieceValues = 4, kMaxValues = 2 * kPieceValues;
    int64_t pieces() const {
      return (getValues() + kPieceValues - 1) / kPieceValues;
    }
    /// Bytes of a slot's values, and of a slot with its two barriers.
    int64_t messageBytes() const { return 16 * pieces(); }
    int64_t slotBytes() const { return messageBytes() + 16; }
  }];
}

def Tile_Frag : Tile_Type<"Frag", "frag"> {
  let summary = "a matrix distributed over the registers of one warp";
  let description = [{
    `!tile.frag<32x64xf32, acc>`.  The layout is that of mma.sync m16n8k16, or
    m16n8k8 for factors of 32 bits:
    * `acc` (f32, rows multiple of 16, columns of 8): in a 16x8 piece lane l
      holds rows l/4 and l/4+8, columns 2(l%4) and 2(l%4)+1;
    * `lhs` (16-bit, rows and columns multiple of 16): in a 16x16 piece four
      pairs, at (l/4, 2(l%4)), (l/4+8, ..), (l/4, ..+8), (l/4+8, ..+8);
    * `lhs` (8-bit, rows multiple of 16, columns of 32): as the accumulator, so
      that rounding one crosses no lanes; in a 16x16 piece two quadruples, in
      rows l/4 and l/4+8, of columns 2(l%4), 2(l%4)+1 and those + 8;
    * `rhs` (16-bit, rows (k) multiple of 16, columns (n) of 16): in a 16x8 piece
      two pairs, k = 2(l%4) and 2(l%4)+8, column l/4;
    * `lhs` (32-bit, rows multiple of 16, columns of 8): in a 16x8 piece four
      numbers, at (l/4, l%4), (l/4+8, ..), (l/4, ..+4), (l/4+8, ..+4);
    * `rhs` (32-bit, rows (k) multiple of 8, columns (n) of 16): in an 8x8 piece
      two numbers, k = l%4 and l%4+4, column l/4;
    * `lhs_paired`, `rhs_paired` (32-bit): the same, but with k = 2(l%4) and
      2(l%4)+1.  That is where an accumulator has its columns, so that one is a
      left factor as it is; the sum over k does not mind the order.

    Factors of 32 bits are f32 as they come, and tf32 (ten bits of fraction) as
    the tensor cores take them.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns,
                        "mlir::Type":$elementType, "FragmentLayout":$layout);
  let extraClassDeclaration = [{
    /// 32-bit registers of one lane.
    int64_t registers() const;
    /// Columns of a piece: the least that a fragment may have.
    int64_t columnStep() const;
    /// Which side of a product the fragment is on, whatever the order of k.
    bool isLhs() const {
      return getLayout() == FragmentLayout::lhs ||
             getLayout() == FragmentLayout::lhs_paired;
    }
    bool isRhs() const {
      return getLayout() == FragmentLayout::rhs ||
             getLayout() == FragmentLayout::rhs_paired;
    }
    bool isPaired() const {
      return getLayout() == FragmentLayout::lhs_paired ||
             getLayout() == FragmentLayout::rhs_paired;
    }
    /// Bytes that an element takes in a register: 4 of a tf32.
    int64_t elementBytes() const;
    /// What is contracted by one instruction.
    int64_t depthStep() const { return 32 / elementBytes(); }
    /// Bytes of the matrix.
    int64_t bytes() const;
  }];
}

def Tile_Pending : Tile_Type<"Pending", "pending"> {
  let summary = "an accumulator that the tensor cores still work on";
  let description = [{
    `!tile.pending<16x128xf32>`: what `tile.wgmma` returns.  Only
    `tile.wgmma_wait` takes it and gives the fragment (layout `acc`), so that no
    op can touch registers in flight.
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns);
}

def Tile_Row : Tile_Type<"Row", "row"> {
  let summary = "one value per row of a fragment";
  let description = [{
    `!tile.row<32xf32>`: the four lanes that share a row all hold its value.
    `!tile.row<32xf32, partial>`: each lane holds its part of a sum or maximum;
    only `tile.row_combine` makes it readable.  Until then a sum may be
    multiplied by a whole row and added to another, since both are linear, and
    `tile.any_above` may compare a maximum.
  }];
  let parameters = (ins "int64_t":$rows, "mlir::Type":$elementType,
                        "bool":$partial);
  let extraClassDeclaration = [{
    /// Registers of one lane: two rows of every sixteen.
    int64_t registers() const { return getRows() / 8; }
  }];
}

#endif
