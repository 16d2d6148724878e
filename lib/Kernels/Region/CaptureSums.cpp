//===- CaptureSums.cpp - Gradients of what a score reads ------------------===//

#include "Region/CaptureSums.h"

using namespace mlir;
using namespace attn;
using namespace attn::tile;

//===----------------------------------------------------------------------===//
// Numbers of heads
//===----------------------------------------------------------------------===//

void HeadSums::declare(Arguments &arguments, TileBuilder &b,
                       const KernelRequest &request) {
  int64_t sums = request.problem.clauses.headSums();
  if (!arguments.has(Role::scratchSums))
    arguments.perStrip(Role::scratchSums, b.getF32Type(),
                       sums * (kStripRows / kRows));
}

Value HeadSums::numbers(TileBuilder &b, Scalar batch, Scalar head, int64_t sum,
                        Scalar row, Scalar count) const {
  int64_t sums = request.problem.clauses.headSums();
  int64_t ofBlock = request.launches.stripsOfBlock;
  Scalar strips =
      b.ceilDiv(arguments.get(b, Role::queries), kStripRows * ofBlock) *
      ofBlock;
  Scalar flat =
      b.wide(batch * arguments.get(b, Role::heads) + head) * sums + sum;
  Scalar begin =
      flat * b.wide(strips * (kStripRows / kRows)) + b.wide(row / kRows);
  auto type = ViewType::get(b.getContext(), ViewType::kVector, b.getF32Type(),
                            /*align=*/4);
  return ViewOp::create(b, type, arguments.get(b, Role::scratchSums), begin,
                        count, b.wide(b.i32(1)));
}

void HeadSums::leave(TileBuilder &b, Scalar batch, Scalar head, int64_t sum,
                     Scalar row, Value values) const {
  Scalar end = arguments.get(b, Role::queries);
  int64_t rows = cast<RowType>(values.getType()).getRows();
  Value own = b.map(values, values.getType(),
                    [&](Scalar r, Scalar, ArrayRef<Scalar> x) -> Value {
                      return b.select(row + r < end, x[0], b.f32(0));
                    });
  Scalar total = b.wrap(TotalOp::create(b, b.getF32Type(), own));
  // One number for all rows, and zeros for those behind the first 16.
  Value numbers = b.map({}, b.rowType(kRows),
                        [&](Scalar r, Scalar, ArrayRef<Scalar>) -> Value {
                          return b.select(r == b.i32(0), total, b.f32(0));
                        });
  Scalar most = b.i32(rows / kRows);
  Scalar count = b.min(b.ceilDiv(b.max(end - row, b.i32(0)), kRows), most);
  StoreRowOp::create(b, numbers, this->numbers(b, batch, head, sum, row, count),
                     b.i32(0));
}

int64_t attn::sumOfSinks(const KernelRequest &request) {
  return request.problem.clauses.headGradients;
}

//===----------------------------------------------------------------------===//
// What scores have read
//===----------------------------------------------------------------------===//

static SmallVector<GradientRead> readsOf(const KernelRequest &request) {
  if (!request.score)
    return {};
  return gradientReads(*request.score, request.gradients);
}

static ArgumentRole gradientRole(unsigned target) {
  return {Role::captureGradient, Facet::itself, int(target)};
}

void CaptureSums::declare(Arguments &arguments, TileBuilder &b,
                          const KernelRequest &request) {
  llvm::SmallDenseSet<unsigned> declared;
  bool hasSums = false;
  for (const GradientRead &one : readsOf(request)) {
    hasSums |= one.isOfHead;
    if (one.isOfHead || !declared.insert(one.target).second)
      continue;
    ArgumentRole role = gradientRole(one.target);
    arguments.pointer(role, b.getF32Type());
    arguments.scalar(role.at(Facet::offset), b.getI64Type());
  }
  if (hasSums)
    HeadSums::declare(arguments, b, request);
}

CaptureSums::CaptureSums(const Arguments &arguments,
                         const KernelRequest &request)
    : arguments(arguments), reads(readsOf(request)), heads(arguments, request) {
  if (any())
    score.emplace(arguments, *request.score, request.problem.dtype);
}

SmallVector<Value> CaptureSums::none(TileBuilder &b, int64_t rows) const {
  SmallVector<Value> sums;
  for (const GradientRead &one : reads)
    if (one.isOfHead)
      sums.push_back(b.fill(b.f32(0), b.rowType(rows, /*partial=*/true)));
  return sums;
}

void CaptureSums::add(TileBuilder &b, const RegionCode::Rows &rows,
                      const Scores &scores, MutableArrayRef<Value> sums) const {
  unsigned number = 0;
  for (const GradientRead &one : reads) {
    if (one.isOfHead) {
      Value pulled = score->pulled(b, rows, scores.products, scores.gradient,
                                   scores.column, one.read);
      sums[number] = b.rowSum(pulled, sums[number]);
      ++number;
      continue;
    }
    ArgumentRole role = gradientRole(one.target);
    score->addPulled(b, rows, scores.products, scores.gradient, scores.column,
                     one.read, arguments.get(b, role),
                     arguments.get(b, role.at(Facet::offset)), scores.endOfRows,
                     scores.endOfColumns);
  }
}

void CaptureSums::leave(TileBuilder &b, const RegionCode::Place &place,
                        ValueRange sums) const {
  for (auto [number, partial] : llvm::enumerate(sums)) {
    Value values = RowCombineOp::create(b, b.rowType(place.count),
                                        /*max=*/false, partial);
    heads.leave(b, place.batch, place.head, int64_t(number), place.row, values);
  }
}
