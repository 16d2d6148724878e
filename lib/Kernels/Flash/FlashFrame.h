//===- FlashFrame.h - What the roles of a flash kernel share ----*- C++ -*-===//
//
// The frame of flash on wgmma (flash_wgmma.cpp): its sizes and arguments, the
// buffers, and the rings through which the roles hand them to each other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_FLASH_FLASHFRAME_H
#define ATTN_LIB_KERNELS_FLASH_FLASHFRAME_H

#include "Build/Ring.h"
#include "Region/Scoring.h"
#include "Walk/BandRuns.h"
#include "Walk/Mask.h"
#include "Walk/RowsOfHeads.h"
#include "Walk/TileBlocks.h"
#include "Walk/TileOrder.h"

#include "attn/Schedule/Footprint.h"

#include <memory>
#include <optional>

namespace attn {

struct FlashFrame {
  FlashFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel, with its arguments, and reserves shared memory.
  tile::KernelOp declare();
  mlir::Value map(llvm::StringRef operand) const;
  /// What boxes of queries, or of keys and values, that have no rows are loaded
  /// by; null where all have some.
  mlir::Value emptyMap(Role rows) const;
  /// From here on a role works for that pair, and goes round in its rings.
  void enter(Scalar pair);
  /// Receives a tile; everybody but the producer does.
  Tile pop(Place message) const;
  /// Whether warps beside the producer rewrite what it loads.
  bool hasHelper() const { return helper != Helper::none; }
  /// The warps of the first warpgroup.
  int64_t producerWarps() const {
    return hasHelper() ? kProducerWarps : kWarpsPerGroup;
  }

  /// Of a kernel with a helper.
  static constexpr int64_t kProducerWarps = 1;

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  mlir::Type kvElement; ///< of keys and values as they are loaded
  bool transposes;      ///< values have 8 bits
  bool splits;          ///< operands are f32 and come in parts of bf16
  bool widens;          ///< keys and values have 8 bits, and queries 16
  Helper helper;
  KeyParts parts; ///< whose O and LSE another kernel makes whole
  int64_t query, key, stages, queryStages, staging;
  RowsOfHeads heads; ///< whose rows a tile has
  bool overlap, pingPong, persistent;
  int64_t groups; ///< consumer warpgroups of a tile
  int64_t pairs;  ///< of them that a block has, each with a tile and rings
  RegisterBudget budget;
  int64_t helperWarps; ///< of a kernel with a helper
  int64_t dim, dimV;   ///< head dimensions, padded
  Landing landing;     ///< of operands that are split

  Arguments arguments;
  Scoring scoring;
  Scalar queries;
  std::optional<KeyBand> band;
  std::unique_ptr<TileLists> lists;  ///< of a pattern, or runs of bands
  std::optional<RowLocator> locator; ///< of rows that lie where the device says
  std::optional<TileBlocks> blocks;
  TileQueue queue;
  mlir::Value ranks; ///< of sequences by length, if blocks draw tiles
  /// Factors as consumers multiply by them: each a buffer, or three of parts.
  llvm::SmallVector<mlir::Value> buffersQ, buffersK, buffersV;
  llvm::SmallVector<mlir::Value> buffersO; ///< what O is staged in
  Ring ringQ, ringK, ringV;
  /// Keys and values as they are loaded: the same, but for those that are
  /// rewritten in a ring of their own.
  mlir::Value bufferLoadedK, bufferLoadedV;
  Ring ringLoadedK, ringLoadedV;
  /// Where operands that are split come to, a few rows at a time.
  mlir::Value bufferLanding;
  Ring ringLanding;

  mlir::Type outputElement() const;
  /// Of tiles as they are drawn.
  TileOrder order() const;

private:
  void reserve();
  /// Of keys and values that are rewritten in the type of queries.
  void reserveWidened();
  /// What O is staged in, unless it leaves from registers.
  void reserveStaging();
  TileQueue queueFor(int64_t readers) const;
};

/// The producer (FlashProducer.cpp): draws tiles, tells the other roles, starts
/// every load.  Every pair has one.
void produceTiles(const FlashFrame &frame, int64_t pair = 0);

/// The transposer (FlashTransposer.cpp): writes the transpose of every block of
/// values.
void transposeValues(const FlashFrame &frame);

/// The widener (FlashWidener.cpp): writes every block of keys and values in the
/// type of queries.
void widenKeys(const FlashFrame &frame);

/// The producer and the helper of a kernel that splits (FlashSplitter.cpp):
/// one starts loads of a few rows, the other writes the parts of every factor.
void landOperands(const FlashFrame &frame);
void splitOperands(const FlashFrame &frame);

} // namespace attn

#endif
