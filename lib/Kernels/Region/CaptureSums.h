//===- CaptureSums.h - Gradients of what a score reads ----------*- C++ -*-===//
//
// A kernel that has gradients of scores in registers adds from them to those of
// captures (CaptureGradients.h of the dialect), and for sinks it has D:
//
//   of a pair   an addition in global memory for each element, of what is not 0
//   of a head   sums of rows, which a warp carries from block to block; behind
//               the last one it leaves one number for its rows, in scratch
//   of sinks    likewise, of  -exp(sink - LSE) D  of each row
//
// The numbers of heads are added up by a launch behind the others, in one order
// (CaptureLaunches.h).  They lie, for every batch entry and head, one sum
// behind the other, each with a number for every 16 rows of its strips.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_KERNELS_REGION_CAPTURESUMS_H
#define ATTN_LIB_KERNELS_REGION_CAPTURESUMS_H

#include "Region/RegionCode.h"

#include "attn/IR/CaptureGradients.h"

namespace attn {

/// What numbers of heads lie in.
class HeadSums {
public:
  HeadSums(const Arguments &arguments, const KernelRequest &request)
      : arguments(arguments), request(request) {}

  static void declare(Arguments &arguments, TileBuilder &builder,
                      const KernelRequest &request);
  /// So many numbers of a sum, from that of a row on, as a vector.
  mlir::Value numbers(TileBuilder &builder, Scalar batch, Scalar head,
                      int64_t sum, Scalar row, Scalar count) const;
  /// Leaves the sum of a warp's values, one for each of its rows from `row` on.
  void leave(TileBuilder &builder, Scalar batch, Scalar head, int64_t sum,
             Scalar row, mlir::Value values) const;
  /// Rows that a number is of.
  static constexpr int64_t kRows = 16;

private:
  const Arguments &arguments;
  const KernelRequest &request;
};

/// The number of the sum of sinks, behind those of reads.
int64_t sumOfSinks(const KernelRequest &request);

class CaptureSums {
public:
  static void declare(Arguments &arguments, TileBuilder &builder,
                      const KernelRequest &request);
  CaptureSums(const Arguments &arguments, const KernelRequest &request);

  bool any() const { return !reads.empty(); }
  /// Sums of rows that have none yet.
  llvm::SmallVector<mlir::Value> none(TileBuilder &builder, int64_t rows) const;
  /// Of gradients of scores, which are 0 where a pair is hidden; `sums` are
  /// those so far, and become those behind.
  struct Scores {
    mlir::Value products, gradient;
    Scalar column;                  ///< the first
    Scalar endOfRows, endOfColumns; ///< of own rows, of those that stream past
  };
  void add(TileBuilder &builder, const RegionCode::Rows &rows,
           const Scores &scores, llvm::MutableArrayRef<mlir::Value> sums) const;
  /// Leaves them for rows of queries.
  void leave(TileBuilder &builder, const RegionCode::Place &place,
             mlir::ValueRange sums) const;

private:
  const Arguments &arguments;
  std::optional<RegionCode> score;
  llvm::SmallVector<GradientRead> reads;
  HeadSums heads;
};

} // namespace attn

#endif
