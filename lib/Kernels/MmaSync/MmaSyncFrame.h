//===- MmaSyncFrame.h - What kernels on mma.sync share ----------*- C++ -*-===//
//
// One block owns `query` rows of one head, and walks over the key blocks that
// they see.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_MMASYNC_MMASYNCFRAME_H
#define ATTN_LIB_KERNELS_MMASYNC_MMASYNCFRAME_H

#include "MmaSync/Products.h"
#include "Region/Scoring.h"
#include "Walk/KeyBlocks.h"
#include "Walk/KeyParts.h"
#include "Walk/RaggedRows.h"

namespace attn {

struct MmaSyncFrame {
  MmaSyncFrame(TileBuilder &builder, const KernelRequest &request);

  /// What head dimensions are padded to: whole fragments, as rows and columns.
  static constexpr int64_t kStep = 16;

  /// Declares what every kernel is passed.
  void declareArguments();
  /// The same, and creates a kernel that needs no more.
  tile::KernelOp declare();
  /// Which rows this block owns and of which head.  Under a mask tiles differ
  /// in length: the longest of several heads are the first ones (TileOrder).
  void locateRows();
  /// What they see, behind what a kernel says of its warps.
  void locateHead();

  /// The rows of an operand for the batch entry and a head, from a column on.
  mlir::Value view(llvm::StringRef operand, int64_t columns, int64_t align,
                   Scalar head, Scalar rows, Scalar column = Scalar());

  TileBuilder &b;
  const KernelRequest &request;
  const Problem &problem;
  mlir::Type element;
  int64_t query, key, stages, warps;
  Products products;

  KeyParts parts; ///< whose O and LSE another kernel makes whole
  Arguments arguments;
  Scoring scoring;
  std::optional<KeyBlocks> blocks;
  Scalar queries, keys, head, keyHead, batch, firstRow;
  Tile tile;       ///< of a sequence, if it is of one
  Scalar part;     ///< of several
  Scalar usedKeys; ///< of the keys, where the device says how many

private:
  Scalar numberOfTile();
};

} // namespace attn

#endif
