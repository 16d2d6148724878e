//===- CaptureLaunches.cpp - Launches around gradients of captures --------===//

#include "attn/Kernels/CaptureLaunches.h"

#include "Region/SinkSums.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

SmallVector<CaptureGradient>
attn::captureGradients(const KernelRequest &request, ArrayRef<int64_t> ranks) {
  SmallVector<CaptureGradient> all;
  for (auto [target, rank] : llvm::enumerate(ranks))
    all.push_back({unsigned(target), rank});
  if (request.problem.clauses.sinkGradients) {
    // Sinks have the number behind all captures.
    auto last = llvm::max_element(request.gradients);
    CaptureGradient &ofSinks = all[last - request.gradients.begin()];
    ofSinks.isOfSinks = ofSinks.hasHeads = true;
  }
  if (request.score)
    for (const GradientRead &one :
         gradientReads(*request.score, request.gradients))
      (one.isOfHead ? all[one.target].hasHeads : all[one.target].hasPairs) =
          true;
  return all;
}

namespace {

class CaptureKernel {
public:
  CaptureKernel(TileBuilder &b, const KernelRequest &request,
                const CaptureGradient &gradient)
      : b(b), request(request), gradient(gradient),
        role(Role::captureGradient, Facet::itself, int(gradient.target)),
        numbers(arguments, request) {
    arguments.pointer(role, b.getF32Type());
    arguments.scalar(role.at(Facet::offset), b.getI64Type());
    for (int64_t dim = 0; dim < gradient.rank; ++dim)
      arguments.scalar(role.at(kCapturedSizes[dim]), b.getI64Type());
  }

  KernelOp cleared();
  KernelOp gathered();

private:
  Scalar count() {
    Scalar all = b.wide(b.i32(1));
    for (int64_t dim = 0; dim < gradient.rank; ++dim)
      all = all * arguments.get(b, role.at(kCapturedSizes[dim]));
    return all;
  }
  Scalar warp() { return b.programId(0) * kCapturingWarps + b.warpId(); }
  /// So many rows of the array, behind so many elements.
  Value view(int64_t columns, Scalar begin, Scalar rows) {
    auto type =
        ViewType::get(b.getContext(), columns, b.getF32Type(), /*align=*/4);
    return ViewOp::create(b, type, arguments.get(b, role),
                          arguments.get(b, role.at(Facet::offset)) + begin,
                          rows, b.wide(b.i32(std::max<int64_t>(columns, 1))));
  }
  Value vector(Scalar begin, Scalar count) {
    auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                              /*align=*/4);
    return ViewOp::create(b, type, arguments.get(b, role),
                          arguments.get(b, role.at(Facet::offset)) + begin,
                          count, b.wide(b.i32(1)));
  }
  Scalar addOf(Scalar element, Scalar total, int64_t sum,
               function_ref<Scalar(const RegionCode::Rows &)> place);
  Scalar sumOf(Scalar batch, Scalar head, int64_t sum);

  TileBuilder &b;
  const KernelRequest &request;
  const CaptureGradient &gradient;
  ArgumentRole role;
  Arguments arguments;
  HeadSums numbers;
};

} // namespace

KernelOp CaptureKernel::cleared() {
  constexpr int64_t rows = 16, columns = kClearedElements / rows;
  KernelOp kernel = arguments.createKernel(b, request, kCapturingWarps);
  kernel->removeAttr(kLaunchAttr);
  Scalar begin = b.wide(warp()) * kClearedElements, all = count();
  Scalar left = all - begin;
  Scalar isWhole = b.constantLike(left, kClearedElements) <= left;
  b.when(isWhole, [&] {
    Value zeros = b.fill(b.f32(0), b.accType(rows, columns));
    StoreFragmentOp::create(b, zeros, view(columns, begin, b.i32(rows)),
                            b.i32(0), b.i32(0));
  });
  Scalar some = b.select(isWhole, b.constantLike(left, 0), left);
  Scalar rest = b.narrow(b.max(some, b.constantLike(left, 0)));
  Value zeros = b.fill(b.f32(0), b.rowType(rows));
  b.loop(b.i32(0), b.ceilDiv(rest, rows), {},
         [&](Scalar step, ValueRange) -> SmallVector<Value> {
           StoreRowOp::create(b, zeros, vector(begin, rest), step * rows);
           return {};
         });
  ReturnOp::create(b);
  return kernel;
}

/// The numbers of a sum of a head.
Scalar CaptureKernel::sumOf(Scalar batch, Scalar head, int64_t sum) {
  constexpr int64_t atOnce = 64;
  Scalar count = b.ceilDiv(arguments.get(b, Role::queries), HeadSums::kRows);
  Value all = numbers.numbers(b, batch, head, sum, b.i32(0), count);
  Type type = b.rowType(atOnce);
  ValueRange sums =
      b.loop(b.i32(0), b.ceilDiv(count, atOnce), {b.fill(b.f32(0), type)},
             [&](Scalar step, ValueRange carried) -> SmallVector<Value> {
               Value some = LoadRowOp::create(b, type, all, step * atOnce);
               return {b.map({carried[0], some}, type,
                             [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                               return x[0] + x[1];
                             })};
             });
  return b.wrap(TotalOp::create(b, b.getF32Type(), sums[0]));
}

/// A sum of the heads that have read an element.
Scalar
CaptureKernel::addOf(Scalar element, Scalar total, int64_t sum,
                     function_ref<Scalar(const RegionCode::Rows &)> place) {
  Scalar heads = arguments.get(b, Role::heads);
  auto ofBatch =
      b.loop(b.i32(0), arguments.get(b, Role::batch), {total},
             [&](Scalar batch, ValueRange carried) -> SmallVector<Value> {
               return llvm::to_vector(b.loop(
                   b.i32(0), heads, carried,
                   [&](Scalar head, ValueRange so) -> SmallVector<Value> {
                     RegionCode::Rows rows;
                     rows.place = {batch, head, b.i32(0), HeadSums::kRows};
                     Scalar hasRead = place(rows) == element;
                     return llvm::to_vector(b.choose(
                         hasRead,
                         [&]() -> SmallVector<Value> {
                           return {b.wrap(so[0]) + sumOf(batch, head, sum)};
                         },
                         [&]() -> SmallVector<Value> { return {so[0]}; }));
                   }));
             });
  return b.wrap(ofBatch[0]);
}

KernelOp CaptureKernel::gathered() {
  if (!gradient.isOfSinks)
    RegionCode::declare(arguments, b, {request.score});
  HeadSums::declare(arguments, b, request);
  for (Role size : {Role::queries, Role::keys, Role::heads, Role::batch})
    arguments.scalar(size, b.getI32Type());
  KernelOp kernel = arguments.createKernel(b, request, kCapturingWarps);
  kernel->removeAttr(kLaunchAttr);
  Scalar element = b.wide(warp());
  b.when(element < count(), [&] {
    Scalar total = b.f32(0);
    if (gradient.isOfSinks) {
      total = addOf(element, total, sumOfSinks(request),
                    [&](const RegionCode::Rows &rows) {
                      return b.wide(rows.place.head);
                    });
    } else {
      RegionCode code(arguments, *request.score, request.problem.dtype);
      int64_t sum = 0;
      for (const GradientRead &one :
           gradientReads(*request.score, request.gradients)) {
        if (!one.isOfHead)
          continue;
        if (one.target == gradient.target)
          total = addOf(element, total, sum, [&](const RegionCode::Rows &rows) {
            return code.placeOfHead(b, rows, one.read);
          });
        ++sum;
      }
    }
    Value own = vector(element, b.i32(1));
    Type type = b.rowType(HeadSums::kRows);
    Value values = b.fill(total, type);
    if (gradient.hasPairs) {
      Value before = LoadRowOp::create(b, type, own, b.i32(0));
      values = b.map({before, values}, type,
                     [&](Scalar, Scalar, ArrayRef<Scalar> x) -> Value {
                       return x[0] + x[1];
                     });
    }
    StoreRowOp::create(b, values, own, b.i32(0));
  });
  ReturnOp::create(b);
  return kernel;
}

KernelOp attn::buildCleared(OpBuilder &builder, Location loc,
                            const KernelRequest &request,
                            const CaptureGradient &gradient) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return CaptureKernel(b, request, gradient).cleared();
}

KernelOp attn::buildGathered(OpBuilder &builder, Location loc,
                             const KernelRequest &request,
                             const CaptureGradient &gradient) {
  OpBuilder::InsertionGuard guard(builder);
  TileBuilder b(loc, builder);
  return CaptureKernel(b, request, gradient).gathered();
}
