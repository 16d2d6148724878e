//===- Flash.cpp - Are the built kernels right, byte for byte? ------------===//

#include "Harness/BuiltKernel.h"

#include <limits>

using namespace mlir;
using namespace attn;

namespace {
class Flash : public BuiltKernel {};
} // namespace

TEST_F(Flash, MasksRowsAndStages) {
  for (const Mask &mask : kMasks)
    for (int64_t stages : {1, 2, 3})
      for (auto [queries, keys] : {std::pair<int64_t, int64_t>{70, 90},
                                   {90, 70},
                                   {1, 130},
                                   {130, 1},
                                   {32, 32}})
        check(oneHead(queries, keys, 32, 16, mask),
              mmaSyncTiles(32, 32, stages, 2));
}

TEST_F(Flash, HeadDimensions) {
  for (int64_t stages : {1, 2})
    for (auto [d, dv] : {std::pair<int64_t, int64_t>{8, 8},
                         {64, 64},
                         {40, 24},
                         {17, 33},
                         {96, 128},
                         {128, 96},
                         {256, 256}})
      check(oneHead(50, 60, d, dv, {MaskKind::causal}, DataType::f16),
            mmaSyncTiles(32, 32, stages, 2));
}

TEST_F(Flash, HeadsBatchesAndTypes) {
  checkHeads(16, 16, mmaSyncTiles(16, 16, 2, 1), mmaSyncTiles(64, 16, 1, 2));
}

TEST_F(Flash, AllWarpOrders) {
  for (int64_t stages : {1, 2, 3})
    for (WarpOrder order : {WarpOrder::forward, WarpOrder::reverse,
                            WarpOrder::shuffled, WarpOrder::shuffled}) {
      InterpreterOptions options;
      options.order = order;
      options.seed += 17;
      check(oneHead(100, 120, 32, 48, {MaskKind::causal}),
            mmaSyncTiles(64, 16, stages, 4), options);
    }
}

TEST_F(Flash, RowsThatSeeNoKeyAreZero) {
  // Bottom-right: the first 60 of 80 queries see none of the 20 keys.
  check(oneHead(80, 20, 16, 16, {MaskKind::causalBottomRight}),
        mmaSyncTiles(32, 16, 1, 2));
  check(oneHead(80, 20, 16, 16, {MaskKind::causalBottomRight}),
        mmaSyncTiles(32, 16, 2, 2));
  check(oneHead(40, 0, 16, 16), mmaSyncTiles(32, 16, 2, 2));
}

TEST_F(Flash, NaNStaysInTheRowsThatSeeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t stages : {1, 2}) {
    FlashCase flash(oneHead(80, 80, 16, 16, {MaskKind::causal}),
                    mmaSyncTiles(32, 16, stages, 2));
    flash.k[37 * 16 + 5] = nan;
    flash.consultOracle();
    check(flash);
  }
}

TEST_F(Flash, ALargeCaseInTime) {
  check(oneHead(200, 300, 128, 128, {MaskKind::causal}),
        mmaSyncTiles(64, 64, 2, 4));
}
