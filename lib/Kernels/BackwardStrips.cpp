//===- BackwardStrips.cpp - Before and after flash_backward ---------------===//
//
// Sums of dQ go through the cache in the form in which the main launch adds to
// them.  Before it they begin as zeros, in the launch that leaves statistics;
// behind it they become rows of the problem's type, strip by strip.
//
//===----------------------------------------------------------------------===//

#include "BackwardFrame.h"
#include "Softmax.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

/// The place of one of a warp's images of dQ.
static Scalar imagePlace(const BackwardFrame &f, const StripRows &at,
                         int64_t image) {
  Scalar part = f.splitsColumns ? f.b.i32(image) : at.strip;
  return (at.block * f.groups + part) * kWarpsPerGroup + at.warp;
}

KernelOp attn::prepareSums(BackwardFrame &f) {
  TileBuilder &b = f.b;
  return prepareStrips(
      f, [&] { f.declareSums(); },
      [&](const StripRows &at) {
        Value zeros = b.fill(b.f32(0), f.imageType());
        for (int64_t image = 0; image < f.imagesOfWarp(); ++image)
          StoreRegistersOp::create(b, ValueRange{zeros},
                                   f.arguments.get(b, "scratch_dq"),
                                   imagePlace(f, at, image));
      });
}

KernelOp attn::finishStrips(BackwardFrame &f) {
  TileBuilder &b = f.b;
  f.arguments.operand("dq", f.element);
  f.declareSums();
  for (StringRef size : {"queries", "heads"})
    f.arguments.scalar(size, b.getI32Type());
  f.arguments.scalar("scale", b.getF32Type());
  KernelOp kernel = f.arguments.createKernel(b, f.request, kWarpsPerGroup);
  // The sums that the main launch added to last are still in L2.
  StripRows at(f, /*fromEnd=*/true);
  auto type = ViewType::get(b.getContext(), f.problem.headDim, f.element,
                            f.request.alignmentOf("dq"));
  Value view = f.arguments.view(b, "dq", type, at.batch, at.head,
                                f.arguments.get(b, "queries"));
  Value factors = b.fill(f.arguments.get(b, "scale"), b.rowType(kWarpRows));
  for (int64_t image = 0; image < f.imagesOfWarp(); ++image) {
    auto sums = LoadRegistersOp::create(b, TypeRange(f.imageType()),
                                        f.arguments.get(b, "scratch_dq"),
                                        imagePlace(f, at, image));
    StoreFragmentOp::create(b, scaleRows(b, sums.getResult(0), factors), view,
                            at.row, b.i32(image * f.gradientColumns));
  }
  ReturnOp::create(b);
  return kernel;
}
