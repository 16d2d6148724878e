//===- FlashFrame.h - What the roles of a flash kernel share ----*- C++ -*-===//
//
// The frame of flash on wgmma (flash_wgmma.cpp): its sizes and arguments, the
// buffers, and the rings through which the roles hand them to each other.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_FLASHFRAME_H
#define ATTN_LIB_KERNELS_FLASHFRAME_H

#include "Mask.h"
#include "Ring.h"
#include "TileBlocks.h"
#include "TileOrder.h"

#include <optional>

namespace attn {

struct FlashFrame {
  FlashFrame(TileBuilder &builder, const KernelRequest &request);

  /// Creates the kernel, with its arguments, and reserves shared memory.
  tile::KernelOp declare();
  mlir::Value map(llvm::StringRef operand) const;
  /// Receives a tile; everybody but the producer does.
  Tile pop(Place message) const;
  /// The warps of the first warpgroup.
  int64_t producerWarps() const {
    return transposes ? kProducerWarps : kWarpsPerGroup;
  }

  /// Of a kernel with a transposer.
  static constexpr int64_t kProducerWarps = 1, kTransposerWarps = 3;

  TileBuilder &b;
  const Problem &problem;
  const KernelRequest &request;
  mlir::Type element;
  bool transposes; ///< values have 8 bits
  int64_t query, key, stages, queryStages, staging;
  bool overlap, pingPong, persistent;
  int64_t groups;    ///< consumer warpgroups
  int64_t dim, dimV; ///< head dimensions, padded

  Arguments arguments;
  Scalar queries;
  std::optional<KeyBand> band;
  std::optional<TileBlocks> blocks;
  mlir::Value bufferQ, bufferK, queue;
  llvm::SmallVector<mlir::Value> buffersO; ///< what O is staged in
  Ring ringQ, ringK;
  /// Values as they are loaded, and as consumers multiply by them: the same, or
  /// the transpose in a ring of its own.
  mlir::Value bufferLoadedV, bufferV;
  Ring ringLoadedV, ringV;

private:
  void reserve();
  mlir::Type outputElement() const;
};

/// The producer (FlashProducer.cpp): draws tiles, tells the other roles, starts
/// every load.
void produceTiles(const FlashFrame &frame);

/// The transposer (FlashTransposer.cpp): writes the transpose of every block of
/// values.
void transposeValues(const FlashFrame &frame);

} // namespace attn

#endif
